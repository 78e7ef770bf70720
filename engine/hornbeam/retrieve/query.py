"""A question, encoded once for all routes; what the routes return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hornbeam.index.embedder import TextEmbedder
from hornbeam.index.tokens import tokenise

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["entity", "triple", "attribute", "community", "path", "chunk"]

#: Characters of a question that its vector stands for. What is asked stands at the beginning or the end of a
#: long paste; the mean over a hundred windows between them would be a vector of nothing in particular.
VECTOR_CHARACTERS = 8192


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    text: str
    vector: NDArray[np.float32]  # [d], unit length; zero for a blank question
    tokens: tuple[str, ...]  # lexical tokens, in order
    types: frozenset[str] = frozenset()  # of the schema, that are looked for beside those that the text names

    @property
    def blank(self) -> bool:
        return not self.text.strip()


def encode_query(embedder: TextEmbedder, text: str) -> EncodedQuery:
    if not text.strip():
        return EncodedQuery(text, np.zeros(embedder.dimension, np.float32), ())
    half = VECTOR_CHARACTERS // 2
    seen = text if len(text) <= VECTOR_CHARACTERS else f"{text[:half]}\n{text[-half:]}"
    return EncodedQuery(text, embedder.encode_question(seen), tuple(tokenise(text)))


#: What an entity was found by, in a candidate's detail: its name, or its name as the question writes it.
NAME, AS_WRITTEN = "name", "name, as written"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing that a route found."""

    kind: Kind
    rows: tuple[int, ...]  # the row in the kind's table; of a path its relations, in order
    score: float  # in [0, 1], on the scale that the route states
    route: str
    detail: str = ""  # why, where the score alone does not say
    nodes: tuple[int, ...] = ()  # of a path: its entities, one more than relations
