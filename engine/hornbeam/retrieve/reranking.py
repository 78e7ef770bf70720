"""A second reading of the best that was found, by something slower than the routes: off unless asked for.

Passages are compared with passages and facts with facts: what is read again takes the places and scores that
these items had, in the new order, so that kinds stay mixed as they were and the trace still adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from hornbeam.retrieve.fusion import Fused, RouteScore
from hornbeam.retrieve.query import Kind

#: Kinds that are read again, each among itself.
KINDS: tuple[Kind, ...] = ("chunk", "triple")


class Reranker(Protocol):
    @property
    def name(self) -> str:
        """Its name in a trace."""
        ...

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """How much each text helps with the question, in [0, 1]."""
        ...


def rerank(
    ranking: Sequence[Fused],
    question: str,
    reranker: Reranker,
    text_of: Callable[[Fused], str],
    candidates: int,
) -> list[Fused]:
    """The ranking, the first `candidates` of each of `KINDS` in the reranker's order, ties as they were."""
    ordered = list(ranking)
    for kind in KINDS:
        places = [place for place, item in enumerate(ordered) if item.kind == kind][:candidates]
        if len(places) < 2:
            continue
        items = [ordered[place] for place in places]
        scores = reranker.scores(question, [text_of(item) for item in items])
        best = sorted(range(len(items)), key=lambda at: -scores[at])
        for rank, (place, at) in enumerate(zip(places, best, strict=True), start=1):
            score = items[rank - 1].score  # the one that stood here
            read = RouteScore(rank, float(scores[at]), part=score - items[at].score)
            ordered[place] = replace(items[at], score=score, routes=items[at].routes | {reranker.name: read})
    return ordered
