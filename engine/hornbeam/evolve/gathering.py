"""Sightings of many chunks into proposals: forms and synonyms together, each with its nearest known type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, get_args

import numpy as np

from hornbeam.evolve.suggestions import ChunkSuggestions
from hornbeam.index.embedder import TextEmbedder
from hornbeam.schema.evolution import type_names
from hornbeam.schema.model import GraphSchema
from hornbeam.schema.proposals import Example, Place, Proposal, Sighting, Tally, TypeKind, tally
from hornbeam.schema.type_names import spoken
from hornbeam.settings import EvolveSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Proposals of one kind that are kept, the best supported: what one document says once is endless.
_KEPT = 1000


#: In fewer documents than these, a proposal's support is counted in chunks: a book is one document.
FEW_DOCUMENTS = 10


def sightings_of(
    found: ChunkSuggestions, document_id: str, text_hash: str, chunk_id: str, text: str, *, documents: int
) -> Iterator[Sighting]:
    """
    Args:
        documents: of the corpus.
    """
    source = document_id if documents >= FEW_DOCUMENTS else text_hash
    for suggestion in found.suggestions:
        places = tuple(
            Place(start=start, end=end, surface=text[start:end]) for start, end in suggestion.places
        )
        yield Sighting(
            suggestion.kind,
            suggestion.name,
            source,
            text_hash,
            Example(chunk_id=chunk_id, places=places, confidence=suggestion.confidence),
            suggestion.types,
            suggestion.value_kind,
        )


def gather(
    sightings: Iterable[Sighting],
    schema: GraphSchema | None,
    embedder: TextEmbedder,
    settings: EvolveSettings,
) -> list[tuple[Proposal, Tally]]:
    """Proposals, kind by kind, the best supported first, each with what it was made from.

    Args:
        schema: whose types are the known ones; None: none is known.
    """
    tallies = tally(sightings, settings.examples)
    order = type_names(schema, "entity") if schema else []
    seen = dict.fromkeys(name for each in tallies for name in each.entity_types if name not in order)
    proposals = []
    for kind in get_args(TypeKind):
        own = [each for each in tallies if each.kind == kind][:_KEPT]
        if not own:
            continue
        merged, vectors = _without_synonyms(own, embedder, settings.synonym_similarity)
        nearest = _nearest_types(vectors, schema, kind, embedder)
        proposals += [
            (each.proposal([*order, *seen], *near), each) for each, near in zip(merged, nearest, strict=True)
        ]
    return proposals


def _without_synonyms(
    tallies: Sequence[Tally], embedder: TextEmbedder, bound: float
) -> tuple[list[Tally], NDArray[np.float32]]:
    """Each joins the first better supported one that is as like it as `bound`, or stands for itself.

    No chains: what joined speaks for nobody. With the vectors of the names, the best supported first.
    """
    vectors = embedder.encode([spoken(each.names[0]) for each in tallies])
    leaders: list[int] = []
    for place, each in enumerate(tallies):
        if leaders:
            likeness = vectors[leaders] @ vectors[place]
            best = int(likeness.argmax())
            if likeness[best] >= bound:
                tallies[leaders[best]].absorb(each)
                continue
        leaders.append(place)
    leaders.sort(key=lambda place: tallies[place].rank)
    return [tallies[place] for place in leaders], vectors[leaders]


def _nearest_types(
    vectors: NDArray[np.float32], schema: GraphSchema | None, kind: TypeKind, embedder: TextEmbedder
) -> list[tuple[str | None, float]]:
    """The known type nearest to each vector, by its name or by its name with its description."""
    known = type_names(schema, kind) if schema else []
    if not known:
        return [(None, 0.0)] * len(vectors)
    assert schema is not None
    similarity = np.maximum(
        vectors @ embedder.encode([spoken(name) for name in known]).T,
        vectors @ embedder.encode(type_texts(schema, kind)).T,
    )
    best = similarity.argmax(axis=1)
    return [(known[column], float(similarity[row, column])) for row, column in enumerate(best)]


def type_texts(schema: GraphSchema, kind: TypeKind) -> list[str]:
    """Name and description of each type of a kind, as one says them."""
    types = {
        "entity": schema.entity_types,
        "relation": schema.relation_types,
        "attribute": schema.attribute_types,
    }[kind]
    return [type_text(item.name, item.description) for item in types]


def type_text(name: str, description: str) -> str:
    return f"{spoken(name)}: {description}" if description else spoken(name)
