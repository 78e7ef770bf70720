"""Sets of sentences with known facts under a schema, whatever form they are published in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hornbeam.errors import UsageError
from hornbeam.extract.known_facts import Fact, KnownSentence
from hornbeam.schema import GraphSchema

Split = Literal["test", "held-out"]


@dataclass(frozen=True, slots=True)
class GoldSentence:
    sentence_id: str
    text: str
    triples: tuple[Fact, ...]
    entities: tuple[tuple[str, str], ...] = ()  # names with types in reading order, where a set has them


@dataclass(frozen=True, slots=True)
class FactSet:
    """A schema with what is known and what is asked."""

    name: str
    schema: GraphSchema
    known_gold: tuple[GoldSentence, ...]
    asked: tuple[GoldSentence, ...]

    @property
    def known(self) -> tuple[KnownSentence, ...]:
        """As an extractor is given them."""
        return tuple(KnownSentence(sentence.text, sentence.triples) for sentence in self.known_gold)


def fact_set(
    name: str, schema: GraphSchema, known: Iterable[GoldSentence], asked: Iterable[GoldSentence]
) -> FactSet:
    """Sentences in which nothing is known are neither shown nor asked: no measure says anything of them."""
    return FactSet(
        name,
        schema,
        tuple(sentence for sentence in known if sentence.triples),
        tuple(sentence for sentence in asked if sentence.triples),
    )


def read_fact_sets(folder: Path, numbers: Iterable[int] | None, split: Split) -> list[FactSet]:
    """
    Args:
        folder: of Text2KGBench (`ontologies/`, `train/`, `ground_truth/`), OSKGC (`ontology/`, `data/`),
            CoNLL04 (`train.txt`, `dev.txt`), Re-DocRED (`dev_revised.json`, `rel_info.json`), or of relations
            by line (`relation2id.txt`, `valid.txt`).
        numbers: of the ontologies; None: all.
        split: "test": as published. "held-out": of ontologies without a ground truth here, see
            `text2kgbench_files`.

    Raises:
        UsageError: the folder is of none of these forms, or a file is not of its form; nothing to ask.
    """
    from hornbeam.evaluate import oskgc_files, relation_files, text2kgbench_files

    wanted = None if numbers is None else set(numbers)
    for form in (text2kgbench_files, oskgc_files, relation_files):
        if form.is_of_form(folder):
            sets = [found for found in form.read(folder, wanted, split) if found.asked]
            if not sets:
                raise UsageError(f"{folder}: no ontology of these numbers with sentences for '{split}'")
            return sets
    raise UsageError(
        f"{folder} is no set of a known form (Text2KGBench, OSKGC, CoNLL04, Re-DocRED, relations by line)"
    )


def limited(one: FactSet, limit: int | None) -> FactSet:
    """At most so many of its sentences to ask about, spread evenly."""
    if limit is None or limit >= len(one.asked):
        return one
    chosen = [one.asked[len(one.asked) * number // limit] for number in range(limit)]
    return FactSet(one.name, one.schema, one.known_gold, tuple(chosen))
