"""The grammars of what the model may say about a question and its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hornbeam.grammar.ebnf import alternatives, literal
from hornbeam.grammar.spans import SpanLexicon

ANSWERABLE_GRAMMAR = 'root ::= "yes" | "no"'

_WORDS_PER_SENTENCE = 48
#: A word of any script, without marks that have a meaning here.
ANY_WORD = r"[^\[\]#\x22\\ \x00-\x1f]{1,32}"


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


def phrase_rules(name: str, words: Iterable[str] | None, longest: int) -> str:
    """The rule `name`: one to `longest` words, of `words` or, if None, any; blanks between them may be left
    out only where unspaced scripts would have none."""
    if words is None:
        return f'{name} ::= {name}_word (" " {name}_word){{0,{longest - 1}}}\n{name}_word ::= {ANY_WORD}'
    known = list(words)
    unspaced = [word for word in known if SpanLexicon(word, 2).words[0].kind == "unspaced"]
    gap = '" "?' if unspaced else '" "'
    return (
        f"{name} ::= {name}_word ({gap} {name}_word){{0,{longest - 1}}}\n"
        f"{name}_word ::= {alternatives(literal(word) for word in known)}"
    )


def points_grammar(rules: str, points: int) -> str:
    """ "none", or up to `points` lines that each give a weight and an answer of `rules`."""
    return f'root ::= "none" | point ("\\n" point){{0,{points - 1}}}\npoint ::= [1-9] " " answer\n{rules}'
