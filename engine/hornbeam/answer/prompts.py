"""How a question and its evidence are put to the model, and the grammars of what it may say."""

from __future__ import annotations

from collections.abc import Sequence

from hornbeam.grammar.ebnf import alternatives, literal
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.protocol import LanguageModel
from hornbeam.retrieve.evidence import Evidence

_EXTRACT = """\
Answer the question with a short phrase copied from the numbered evidence, then the number of the evidence.

Example evidence:
[1] Sorvik Optics was founded in Quillhaven in 1979 by Lena Sorvik.
[2] The Glass Ferry is a novel by Aldo Brenn.
Example question: Who wrote The Glass Ferry?
Example answer: Aldo Brenn [2]
Example question: Where was Sorvik Optics founded?
Example answer: Quillhaven in 1979 by Lena Sorvik [1]"""

_SHORT = """\
Answer the question from the numbered evidence alone, in a few words, then give the number of the evidence.

Example evidence:
[1] Sorvik Optics was founded in Quillhaven by Lena Sorvik.
[2] The Glass Ferry is a novel by Aldo Brenn.
Example question: Who wrote The Glass Ferry?
Example answer: Aldo Brenn [2]"""

_SENTENCES = """\
Answer the question from the numbered evidence alone. Keep to one short sentence where that is enough. End \
every sentence with the number of the evidence that it rests on.

Example evidence:
[1] Sorvik Optics was founded in Quillhaven by Lena Sorvik.
[2] The Glass Ferry is a novel by Aldo Brenn.
Example question: Who wrote The Glass Ferry?
Example answer: The Glass Ferry was written by Aldo Brenn. [2]"""

_ANSWERABLE = """\
Decide whether the evidence answers the question. Reply yes or no.

Example evidence: Sorvik Optics was founded in Quillhaven by Lena Sorvik.
Example question: Who founded Sorvik Optics?
Example reply: yes
Example evidence: Sorvik Optics was founded in Quillhaven by Lena Sorvik.
Example question: When did Aldo Brenn die?
Example reply: no"""

ANSWERABLE_GRAMMAR = 'root ::= "yes" | "no"'

_WORDS_PER_SENTENCE = 48


_INSTRUCTIONS = {"extract": _EXTRACT, "short": _SHORT, "sentences": _SENTENCES}


def answer_prompt(model: LanguageModel, style: str, question: str, evidence: Sequence[Evidence]) -> str:
    lines = "\n".join(f"[{piece.label}] {model.neutralise(one_line(piece.text))}" for piece in evidence)
    user = f"Evidence:\n{lines}\nQuestion: {model.neutralise(question)}"
    return model.chat_prompt(_INSTRUCTIONS[style], user)


def answerable_prompt(model: LanguageModel, question: str, evidence: Sequence[Evidence]) -> str:
    lines = " ".join(model.neutralise(one_line(piece.text)) for piece in evidence)
    return model.chat_prompt(_ANSWERABLE, f"Evidence: {lines}\nQuestion: {model.neutralise(question)}")


def extract_rules(passages: dict[int, SpanLexicon]) -> str:
    """The rule `answer`: from any word of a clause to the clause's end, then the label of its piece.

    A passage that could end anywhere would end at once: a small model stops after "The". Linear in the
    evidence.

    Args:
        passages: lexicon of each piece's text, by label; at least one holds a word.
    """
    roots, rules = [], []
    for label, lexicon in passages.items():
        starts = []
        for clause in lexicon.clauses():
            last = clause[-1]
            for index in clause:
                word = lexicon.words[index]
                name = f"e{label}w{index}"
                body = literal(word.text)
                if index < last:
                    gap = '" " ' if lexicon.words[index + 1].spaced else ""
                    body += f" {gap}e{label}w{index + 1}"
                rules.append(f"{name} ::= {body}")
                if word.kind != "mark":
                    starts.append(name)
        if starts:
            roots.append(f"({alternatives(starts)}) {literal(f' [{label}]')}")
    return "\n".join([f"answer ::= {alternatives(roots)}", *rules])


def sentences_rules(labels: Sequence[int], max_sentences: int, words: int = _WORDS_PER_SENTENCE) -> str:
    """The rule `answer`: sentences that each end with a label; at least one label."""
    marks = alternatives(literal(f"[{label}]") for label in labels)
    return "\n".join(
        [
            f'answer ::= sentence (" " sentence){{0,{max_sentences - 1}}}',
            f'sentence ::= word (" " word){{0,{words - 1}}} " " mark',
            r"word ::= [^\[\] \x00-\x1f]{1,32}",
            f"mark ::= {marks}",
        ]
    )


def one_line(text: str) -> str:
    return " ".join(text.split())
