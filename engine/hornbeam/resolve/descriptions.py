"""Descriptions that pile up: clustered, and each cluster told in a sentence.

What an entity's mentions say of it is put together by likeness (DBSCAN of embeddings, cosine). The model says
each of the largest clusters in one sentence of the words that stand in it, by grammar; where it fails, the
description that is likest to its cluster stands for it. No entity loses its description.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hornbeam.corpus import detect_language
from hornbeam.grammar.worded import sentence_grammar
from hornbeam.index.embedder import TextEmbedder
from hornbeam.llm.protocol import Completion
from hornbeam.resolve.answers import Answers, Question

TASK = "summarising"
#: Cosine distance from which two descriptions say different things; descriptions that make a cluster.
_EPS, _MIN_SAMPLES = 0.5, 2
#: Clusters of an entity that are told, the largest first, and descriptions of each that the model reads.
_CLUSTERS, _SHOWN = 3, 8
#: Descriptions of an entity that are looked at, spread evenly over them.
_MOST = 256
_SENTENCE_TOKENS = 96


@dataclass(frozen=True, slots=True)
class Pile:
    """An entity with the different descriptions that its mentions give, sorted."""

    entity_id: str
    name: str
    texts: Sequence[str]


def summarised(piles: Iterable[Pile], embedder: TextEmbedder, answers: Answers) -> dict[str, str]:
    """A description by entity."""
    found = list(piles)
    clusters = [clustered(spread(pile.texts), embedder) for pile in found]
    places = [(pile, texts) for pile, groups in zip(found, clusters, strict=True) for texts in groups]
    asked = [(pile, texts, _question(pile.name, texts)) for pile, texts in places]
    questions = [question for _, _, question in asked if question is not None]
    said = iter(answers.ask(TASK, questions, _sentence))
    told: dict[str, list[str]] = {}
    for pile, texts, question in asked:
        sentence = next(said) if question is not None else None
        told.setdefault(pile.entity_id, []).append(sentence or texts[0])
    return {entity: " ".join(dict.fromkeys(sentences)) for entity, sentences in told.items()}


def clustered(texts: Sequence[str], embedder: TextEmbedder) -> list[list[str]]:
    """The largest clusters of texts, the largest first, in each the likest to its mean first; where nothing
    is alike, all together."""
    from hornbeam_kernels.density import NOISE, dbscan

    vectors = embedder.encode(list(texts))
    labels = dbscan(vectors, eps=_EPS, min_samples=_MIN_SAMPLES)
    kinds, sizes = np.unique(labels[labels != NOISE], return_counts=True)
    if not len(kinds):
        return [_by_likeness(texts, vectors)]
    largest = kinds[np.argsort(-sizes, kind="stable")][:_CLUSTERS]
    return [
        _by_likeness([texts[row] for row in np.flatnonzero(labels == label)], vectors[labels == label])
        for label in largest
    ]


def spread(texts: Sequence[str]) -> list[str]:
    """At most `_MOST` of them."""
    if len(texts) <= _MOST:
        return list(texts)
    return [texts[len(texts) * number // _MOST] for number in range(_MOST)]


def _by_likeness(texts: Sequence[str], vectors: NDArray[np.float32]) -> list[str]:
    likeness = np.round(vectors @ vectors.mean(axis=0), 6)
    return [texts[row] for row in np.argsort(-likeness, kind="stable")]


def _question(name: str, texts: Sequence[str]) -> Question | None:
    """None: there is no word to tell it with, or nothing to sum up."""
    shown = texts[:_SHOWN]
    language = detect_language("\n".join(shown))
    grammar = sentence_grammar([name, *shown], language)
    if grammar is None or len(texts) == 1:
        return None
    lines = "\n".join(f"- {text}" for text in shown)
    return Question({"name": name, "descriptions": lines}, language, grammar, _SENTENCE_TOKENS)


def _sentence(completion: Completion) -> str | None:
    """None: it was cut short."""
    return completion.text.strip() or None if completion.finish_reason == "stop" else None
