"""Text2KGBench's measures of triples found in sentences.

A triple is right when subject, relation and object are those of a gold triple, lower-cased and without
spaces and underscores. Precision, recall and F1 are means over the sentences of an ontology, then over
ontologies; a sentence in which nothing was found has 0. The official precision leaves out found triples
whose relation is not in the sentence's gold: an oracle that no user has, so both are given.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hornbeam.extract.known_facts import Fact, KnownSentence
from hornbeam.extract.value_forms import iso_date, plain_number
from hornbeam.schema.model import GraphSchema

_MEASURES = ("precision", "recall", "f1")
_DRAWS = 1000
_GAPS = re.compile(r"(_|\s+)")
_ISO = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found in one sentence, ends as the sentence writes them."""

    ontology: str
    text: str
    gold: tuple[Fact, ...]
    found: tuple[Fact, ...]


@dataclass(slots=True)
class ValueForms:
    """How the tails of a relation are written in known triples: dates, decimals, quotes.

    A benchmark's gold has forms of its own ("1989-07-10", "733.0", quotes around strings); a graph that is
    to be compared with it says its values in that form. Measured without, it says what stands in the text.
    """

    _seen: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    @classmethod
    def of(cls, known: Sequence[KnownSentence]) -> ValueForms:
        forms = cls()
        for _, name, tail in (fact for sentence in known for fact in sentence.facts):
            bare = tail.strip('"')
            seen = forms._seen[name]
            seen["all"] += 1
            seen["quoted"] += tail.startswith('"')
            seen["date"] += bool(_ISO.fullmatch(bare))
            seen["decimal"] += bool(re.fullmatch(r"\d+\.\d+", bare))
            seen["whole"] += bool(re.fullmatch(r"\d+", bare))
        return forms

    def write(self, fact: Fact) -> Fact:
        """The fact with its tail in the form that most known tails of the relation have, and its head
        without a sentence's opening article."""
        head, name, tail = fact
        seen = self._seen[name]
        date, number = iso_date(tail), plain_number(tail)
        if date is not None and 2 * seen["date"] >= max(1, seen["all"]):
            tail = date
        elif number is not None and seen["decimal"] + seen["whole"] > 0 and re.fullmatch(r"[$\d.,]+", tail):
            tail = number if "." in number or seen["whole"] >= seen["decimal"] else f"{number}.0"
        if 2 * seen["quoted"] > seen["all"]:
            tail = f'"{tail}"'
        return head.removeprefix("The "), name, tail


def scores(answers: Sequence[Answer], *, seed: int) -> dict[str, object]:
    """Precision, recall and F1, as they are and under the official filter, with bootstrap intervals (95 %,
    sentences drawn within ontologies)."""
    return {
        "all": _interval(answers, seed=seed, official_filter=False),
        "filtered": _interval(answers, seed=seed, official_filter=True),
    }


def faithfulness(answers: Sequence[Answer], schema_of: dict[str, GraphSchema]) -> dict[str, float]:
    """Shares of the found triples: conformance (relation of the ontology), ends that are not in the text,
    official (as compared, in the text or the ontology) and verbatim (letter by letter, in the text; white
    space is one blank in both)."""
    total = sum(len(answer.found) for answer in answers)
    wrong: Counter[str] = Counter()
    for answer in answers:
        schema = schema_of[answer.ontology]
        relations = {item.name for item in (*schema.relation_types, *schema.attribute_types)}
        concepts = "".join(_key(entity_type.name) for entity_type in schema.entity_types)
        written = " ".join(answer.text.split())
        for head, name, tail in answer.found:
            wrong["relation"] += name not in relations
            for side, end in (("subject", head), ("object", tail)):
                wrong[f"{side} verbatim"] += " ".join(end.split()) not in written
                wrong[f"{side} official"] += _key(end) not in _key(answer.text) + concepts
    share = {name: wrong[name] / total if total else 0.0 for name in wrong}
    return {
        "conformance": 1.0 - share.get("relation", 0.0),
        "subject_hallucination": share.get("subject official", 0.0),
        "relation_hallucination": share.get("relation", 0.0),
        "object_hallucination": share.get("object official", 0.0),
        "subject_not_verbatim": share.get("subject verbatim", 0.0),
        "object_not_verbatim": share.get("object verbatim", 0.0),
    }


def sentence_scores(answer: Answer, *, official_filter: bool) -> tuple[float, float, float]:
    """Precision, recall, F1 of one sentence."""
    gold = {_triple_key(fact) for fact in answer.gold}
    stated = {_key(name) for _, name, _ in answer.gold}
    found = {_triple_key(fact) for fact in answer.found if not official_filter or _key(fact[1]) in stated}
    right = len(gold & found)
    if not right:
        return 0.0, 0.0, 0.0
    precision, recall = right / len(found), right / len(gold)
    return precision, recall, 2 * precision * recall / (precision + recall)


def is_right(fact: Fact, gold: Sequence[Fact]) -> bool:
    return _triple_key(fact) in {_triple_key(known) for known in gold}


def _interval(answers: Sequence[Answer], *, seed: int, official_filter: bool) -> dict[str, object]:
    by_ontology: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for answer in answers:
        by_ontology[answer.ontology].append(sentence_scores(answer, official_filter=official_filter))
    tables = [np.array(rows) for rows in by_ontology.values()]
    rng = np.random.default_rng(seed)
    draws = np.stack(
        [
            np.mean([table[rng.integers(len(table), size=len(table))].mean(0) for table in tables], axis=0)
            for _ in range(_DRAWS)
        ]
    )
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    means = np.mean([table.mean(0) for table in tables], axis=0)
    report: dict[str, object] = {
        name: round(float(value), 4) for name, value in zip(_MEASURES, means, strict=True)
    }
    for name, least, most in zip(_MEASURES, low, high, strict=True):
        report[f"{name}_interval"] = [round(float(least), 4), round(float(most), 4)]
    return report


def _key(text: str) -> str:
    return _GAPS.sub("", text).casefold()


def _triple_key(fact: Fact) -> tuple[str, str, str]:
    return _key(fact[0]), _key(fact[1]), _key(fact[2])
