"""A search result as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from hornbeam.printing import on_one_line
from hornbeam.retrieve.search import Item, SearchResult

_CHARACTERS = 240


def lines(result: SearchResult, floor: float, *, explain: bool = False) -> Iterator[str]:
    """The items, best first; with `explain`, what each route gave to an item's score, and times."""
    for number, item in enumerate(result.items, start=1):
        routes = ", ".join(f"{route} #{place.rank}" for route, place in item.routes.items())
        yield f"{number}. {item.kind}  {item.score:.4f}  [{routes}]"
        yield f"   {' '.join(item.text.split())[:_CHARACTERS]}"
        if item.provenance is not None:
            yield f"   {on_one_line(item.provenance.source)}:{item.provenance.start}-{item.provenance.end}"
        if explain:
            yield from _parts(item)
    if not result.items:
        below = f" (relevance {result.relevance:.2f}, below retrieve.floor {floor:g})"
        yield "nothing found" + (below if result.relevance < floor else "")
    if explain:
        yield (
            f"{len(result.ranking)} found; {result.dropped.get('contained', 0)} more are part of a path "
            "among them"
        )
        yield f"relevance {result.relevance:.2f}; milliseconds: " + ", ".join(
            f"{step} {spent:.1f}" for step, spent in result.milliseconds.items()
        )


def _parts(item: Item) -> Iterator[str]:
    for route, place in sorted(item.routes.items(), key=lambda entry: -entry[1].part):
        why = f" ({place.detail})" if place.detail else ""
        yield f"     {place.part:.4f} from {route}: score {place.score:.3f}, rank {place.rank}{why}"
    if item.same_text:
        yield f"     {len(item.same_text)} more read the same: {', '.join(item.same_text)}"
