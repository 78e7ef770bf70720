"""How a question and its evidence are put to the model, and the grammars of what it may say."""

from __future__ import annotations

from collections.abc import Sequence

from hornbeam.grammar.ebnf import alternatives, literal
from hornbeam.llm.protocol import LanguageModel
from hornbeam.retrieve.evidence import Evidence

_ANSWER = """\
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


def answer_prompt(model: LanguageModel, question: str, evidence: Sequence[Evidence]) -> str:
    lines = "\n".join(f"[{piece.label}] {model.neutralise(one_line(piece.text))}" for piece in evidence)
    return model.chat_prompt(_ANSWER, f"Evidence:\n{lines}\nQuestion: {model.neutralise(question)}")


def answer_grammar(labels: Sequence[int], max_sentences: int) -> str:
    """Sentences that each end with the label of a piece of evidence: a citation cannot be made up.

    Raises:
        ValueError: no label.
    """
    marks = alternatives(literal(f"[{label}]") for label in labels)
    return "\n".join(
        [
            f'root ::= sentence (" " sentence){{0,{max_sentences - 1}}}',
            f'sentence ::= word (" " word){{0,{_WORDS_PER_SENTENCE - 1}}} " " mark',
            r"word ::= [^\[\] \x00-\x1f]{1,32}",
            f"mark ::= {marks}",
        ]
    )


def answerable_prompt(model: LanguageModel, question: str, evidence: Sequence[Evidence]) -> str:
    lines = " ".join(model.neutralise(one_line(piece.text)) for piece in evidence)
    return model.chat_prompt(_ANSWERABLE, f"Evidence: {lines}\nQuestion: {model.neutralise(question)}")


def one_line(text: str) -> str:
    return " ".join(text.split())
