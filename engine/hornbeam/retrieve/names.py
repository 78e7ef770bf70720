"""Which entities a question names."""

from __future__ import annotations

import functools
import unicodedata

from hornbeam.index.tokens import normalise, tokenise
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.query import EncodedQuery

#: A name of which only some words stand in the question is worth at most this share of one that stands whole.
PARTIAL = 0.6
#: Part of a name's weight that must stand in the question.
MIN_COVERAGE = 0.5


def name_matches(kb: KnowledgeBase, query: EncodedQuery, k: int) -> dict[int, float]:
    """Entity row → score in [0, 1] for the `k` entities whose names share most with the question.

    With the words of a name (or alias) weighted by their idf among all names:

        coverage     weight of its words that are in the question / weight of all its words
        specificity  ½ + ½ · min(1, weight of all its words / weight of a word of a single name)
        score        specificity if the name stands whole in the question,
                     else PARTIAL · coverage · specificity

    So "company", in the name of every second entity, is worth little more than ½ even where it stands whole.
    """
    index = kb.lexical["entities"]
    rows, _ = index.search(query.tokens, k)
    question = normalise(query.text)
    asked = set(query.tokens)
    single = index.idf_of(1)
    idf = functools.cache(index.idf)  # names share their words
    matches: dict[int, float] = {}
    for row in rows.tolist():
        names = [kb.entity_name(row), *kb.entities.get("aliases", row)]
        score = 0.0
        for name in names:
            weights = {token: idf(token) for token in tokenise(name)}
            total = sum(weights.values())
            if not total:
                continue
            coverage = sum(weight for token, weight in weights.items() if token in asked) / total
            specificity = 0.5 + 0.5 * min(1.0, total / single)
            if coverage == 1.0 and _stands_in(normalise(name), question):
                score = max(score, specificity)
            elif coverage >= MIN_COVERAGE:
                score = max(score, PARTIAL * coverage * specificity)
        if score:
            matches[row] = score
    return matches


def as_written(kb: KnowledgeBase, row: int, question: str) -> bool:
    """Whether a name of the entity stands in the question letter by letter, and reads like a name.

    That is with a capital, or in a script without case: "company" and "laptop" are entities of many a graph,
    and a question that has the word may be about anything.
    """
    names = [kb.entity_name(row), *kb.entities.get("aliases", row)]
    return any(name and _capital_or_caseless(name) and _stands_in(name, question) for name in names)


def _capital_or_caseless(name: str) -> bool:
    return any(unicodedata.category(character) in ("Lu", "Lt", "Lo") for character in name)


def _stands_in(name: str, question: str) -> bool:
    """Whether `name` is in `question` between word boundaries; unspaced scripts have none."""
    start = question.find(name)
    while start >= 0:
        end = start + len(name)
        before = start == 0 or _boundary(question[start - 1], name[0])
        after = end == len(question) or _boundary(name[-1], question[end])
        if before and after:
            return True
        start = question.find(name, start + 1)
    return False


def _boundary(left: str, right: str) -> bool:
    def spaced_word(character: str) -> bool:
        # "Lo" is the category of letters without case: Han, Kana, Thai, Hangul.
        return character.isalnum() and unicodedata.category(character) != "Lo"

    return not (spaced_word(left) and spaced_word(right))
