"""Sentences with known triples under an ontology, as Text2KGBench lays them out.

    ontologies/<name>_ontology.json     train/ont_<name>_train.jsonl
    test/ont_<name>_test.jsonl          ground_truth/ont_<name>_ground_truth.jsonl

A line is `{"id", "sent", "triples": [{"sub", "rel", "obj"}]}`, or has one triple as `sub_label`, `rel_label`,
`obj_label`. A folder may hold several such sets.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hornbeam.errors import UsageError
from hornbeam.evaluate.fact_sets import FactSet, GoldSentence, Split, fact_set
from hornbeam.schema import load_schema

#: Share of an ontology's subjects that a held-out split asks about.
_HELD_OUT = 0.3
_SEED = 42


def is_of_form(folder: Path) -> bool:
    return bool(_roots(folder))


def read(folder: Path, numbers: set[int] | None, split: Split) -> Iterator[FactSet]:
    """
    Args:
        split: "test": known are the training sentences, asked those with a ground truth. "held-out": of
            ontologies without a ground truth here, training sentences about three tenths of the subjects are
            asked and the others known, so that what is asked is about other things than what is known.
    """
    for root in _roots(folder):
        yield from _sets(root, numbers, split)


def _roots(folder: Path) -> list[Path]:
    return sorted({path.parent for path in folder.glob("**/ontologies") if path.is_dir()})


def _sets(root: Path, wanted: set[int] | None, split: Split) -> Iterator[FactSet]:
    for file in sorted((root / "ontologies").glob("*_ontology.json"), key=_number):
        name = file.name.removesuffix("_ontology.json")
        if wanted is not None and _number(file) not in wanted:
            continue
        train = _lines(root / "train" / f"ont_{name}_train.jsonl")
        truth = root / "ground_truth" / f"ont_{name}_ground_truth.jsonl"
        if split == "test" and truth.is_file():
            known, asked = train, _lines(truth)
        elif split == "held-out" and not truth.is_file():
            known, asked = _by_subject(train)
        else:
            continue
        yield fact_set(f"{root.name}/{name}", load_schema(str(file)), known, asked)


def _number(file: Path) -> int:
    digits = file.name.partition("_")[0]
    return int(digits) if digits.isdigit() else 0


def _lines(file: Path) -> list[GoldSentence]:
    """Sentences in the order in which they first stand; lines of one sentence are taken together."""
    found: dict[str, GoldSentence] = {}
    try:
        for line in file.read_text("utf-8").splitlines():
            if line.strip():
                sentence = _sentence(json.loads(line))
                known = found.get(sentence.text)
                if known is not None:
                    triples = tuple(dict.fromkeys((*known.triples, *sentence.triples)))
                    sentence = GoldSentence(known.sentence_id, known.text, triples)
                found[sentence.text] = sentence
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file}: {error!r}") from error
    return list(found.values())


def _sentence(entry: dict[str, Any]) -> GoldSentence:
    if "triples" in entry:
        triples = tuple((item["sub"], item["rel"], item["obj"]) for item in entry["triples"])
    else:  # a line of TekGen's training files
        triples = ((entry["sub_label"], entry["rel_label"], entry["obj_label"]),)
    return GoldSentence(entry["id"], entry["sent"], triples)


def _by_subject(sentences: list[GoldSentence]) -> tuple[list[GoldSentence], list[GoldSentence]]:
    """Known and asked: no sentence that is asked is mainly about what a known one is mainly about."""
    subjects = sorted({_main_subject(sentence) for sentence in sentences})
    random.Random(_SEED).shuffle(subjects)
    chosen = set(subjects[: max(1, int(_HELD_OUT * len(subjects)))])
    asked = [sentence for sentence in sentences if _main_subject(sentence) in chosen]
    known = [sentence for sentence in sentences if _main_subject(sentence) not in chosen]
    return known, asked


def _main_subject(sentence: GoldSentence) -> str:
    """The head of most of its triples, the first of several."""
    return Counter(head for head, _, _ in sentence.triples).most_common(1)[0][0]
