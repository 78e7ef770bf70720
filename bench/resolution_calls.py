"""What the model's calls of resolution are worth: yes or no about names, a sentence for descriptions.

    hornbeam bench resolution-calls FILE [--pairs 40] [--piles 10] [--seed 7] [--json]

FILE is in DocRED's form. Pairs are two different names in one document: of one entity (right), or of two of
one type whose names share a word where there are such (wrong); the model sees the sentences of both, as in
a build with `resolve.ask`. Reported are the area under the ROC curve of P(yes), and from thresholds on, the
pairs said to be one with the share of them that are. Piles are the sentences of an entity with at least four,
in place of descriptions: clustered and told as in a build with `resolve.summarise_from`. Reported is the mean
cosine to a pile's own sentences of what was told, and of the sentence that would stand there without it.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from hornbeam.corpus.boundaries import segment
from hornbeam.evaluate.alias_files import KnownDocument, known_documents
from hornbeam.index.embedder import TextEmbedder
from hornbeam.llm.opening import open_model
from hornbeam.opening import open_embedder
from hornbeam.prompts import shipped_prompts
from hornbeam.resolve import descriptions
from hornbeam.resolve.answers import Answers
from hornbeam.resolve.descriptions import Pile, clustered, summarised
from hornbeam.resolve.judging import TASK, Pair, probabilities
from hornbeam.settings import load_settings
from hornbeam.store.ledger import Ledger

_THRESHOLDS = (0.3, 0.5, 0.7, 0.9)
_LEAST_SENTENCES = 4
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class KnownPair:
    pair: Pair
    one_thing: bool


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench resolution-calls",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--pairs", type=int, default=40, help="half of them right")
    parser.add_argument("--piles", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    documents = known_documents(options.file)
    chance = random.Random(options.seed)
    chance.shuffle(documents)
    settings = load_settings()
    model, embedder = open_model(settings), open_embedder(settings)
    report: dict[str, Any] = {"model": model.identity.name}
    try:
        with tempfile.TemporaryDirectory() as scratch, Ledger(Path(scratch), create=True) as ledger:
            run = ledger.runs.start()
            answers = Answers(ledger, "bench", shipped_prompts(), model, run)
            report[TASK] = names(known_pairs(documents, options.pairs, chance), answers)
            _tell(TASK, report, ledger, run)
            report[descriptions.TASK] = summaries(piles(documents, options.piles), embedder, answers)
            _tell(descriptions.TASK, report, ledger, run)
    finally:
        model.close()
    if options.json:
        print(json.dumps(report, indent=2, ensure_ascii=False))


def _tell(task: str, report: dict[str, Any], ledger: Ledger, run: int) -> None:
    report[task]["tokens"] = ledger.runs.usage(run).get(task, {})
    print(f"{task}: {json.dumps(report[task], ensure_ascii=False)}", file=sys.stderr, flush=True)


def known_pairs(documents: Sequence[KnownDocument], count: int, chance: random.Random) -> list[KnownPair]:
    """As many of one entity as of two, at most one of each kind a document."""
    right: list[KnownPair] = []
    wrong: list[KnownPair] = []
    for document in documents:
        told = {name: _told(document, name) for name in dict.fromkeys(m.name for m in document.mentions)}
        same: list[Pair] = []
        other: list[Pair] = []
        for one, two in combinations(sorted({(m.name, m.type, m.entity) for m in document.mentions}), 2):
            if one[0] == two[0] or one[1] != two[1]:
                continue
            pair = Pair(one[0], told[one[0]], two[0], told[two[0]])
            (same if one[2] == two[2] else other).append(pair)
        if same:
            right.append(KnownPair(chance.choice(same), True))
        alike = [pair for pair in other if _words(pair.first) & _words(pair.second)]
        if other:
            wrong.append(KnownPair(chance.choice(alike or other), False))
    half = min(count // 2, len(right), len(wrong))
    # First those that share a word: what a build asks about is alike.
    wrong.sort(key=lambda one: not _words(one.pair.first) & _words(one.pair.second))
    return [*right[:half], *wrong[:half]]


def names(pairs: Sequence[KnownPair], answers: Answers) -> dict[str, Any]:
    said = probabilities([one.pair for one in pairs], answers)
    answered = [(p, one.one_thing) for p, one in zip(said, pairs, strict=True) if p is not None]
    right = [p for p, one in answered if one]
    wrong = [p for p, one in answered if not one]
    return {
        "right": len(right),
        "wrong": len(wrong),
        "unanswered": len(pairs) - len(answered),
        "auroc": round(auroc(right, wrong), 3) if right and wrong else None,
        "from": {
            threshold: {
                "said_one": (said_one := sum(p >= threshold for p in right + wrong)),
                "precision": round(sum(p >= threshold for p in right) / said_one, 3) if said_one else None,
                "recall": round(sum(p >= threshold for p in right) / max(1, len(right)), 3),
            }
            for threshold in _THRESHOLDS
        },
    }


def auroc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Chance that a right one has the higher score, ties counted half."""
    wins = sum((a > b) + 0.5 * (a == b) for a in right for b in wrong)
    return wins / (len(right) * len(wrong))


def piles(documents: Sequence[KnownDocument], count: int) -> list[Pile]:
    """An entity of each document: the one in most sentences, of those in at least four."""
    found = []
    for number, document in enumerate(documents):
        sentences: defaultdict[int, dict[str, None]] = defaultdict(dict)
        for mention in document.mentions:
            sentences[mention.entity][_sentence_at(document, mention.start)] = None
        entity = max(sentences, key=lambda key: (len(sentences[key]), -key), default=None)
        if entity is not None and len(sentences[entity]) >= _LEAST_SENTENCES:
            name = next(m.name for m in document.mentions if m.entity == entity)
            found.append(Pile(f"{number}", name, sorted(sentences[entity])))
        if len(found) == count:
            break
    return found


def summaries(some: Sequence[Pile], embedder: TextEmbedder, answers: Answers) -> dict[str, Any]:
    told = summarised(some, embedder, answers)
    rows = []
    for pile in some:
        vectors = embedder.encode([*pile.texts, told[pile.entity_id], clustered(pile.texts, embedder)[0][0]])
        own, likest = vectors[:-2], vectors[-1]
        rows.append((float(np.mean(own @ vectors[-2])), float(np.mean(own @ likest))))
    means = np.mean(rows, axis=0) if rows else np.zeros(2)
    return {
        "piles": len(some),
        "sentences": sum(len(pile.texts) for pile in some),
        "asked": answers.counts[f"{descriptions.TASK} asked"],
        "failed": answers.counts[f"{descriptions.TASK} failed"],
        "cosine_told": round(float(means[0]), 3),
        "cosine_likest_sentence": round(float(means[1]), 3),
        "examples": {pile.name: told[pile.entity_id] for pile in some[:_EXAMPLES]},
    }


def _words(name: str) -> set[str]:
    return set(name.casefold().split())


def _told(document: KnownDocument, name: str) -> list[str]:
    places = [mention.start for mention in document.mentions if mention.name == name]
    return list(dict.fromkeys(_sentence_at(document, place) for place in places))


def _sentence_at(document: KnownDocument, place: int) -> str:
    return next(text for start, end, text in _sentences(document) if start <= place < end)


def _sentences(document: KnownDocument) -> Iterator[tuple[int, int, str]]:
    for unit in segment(document.text):
        yield unit.start, unit.end, document.text[unit.start : unit.end].strip()


if __name__ == "__main__":
    main()
