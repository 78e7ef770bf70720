"""Homonyms: one name of one type that is different things in different documents.

Two documents speak of one thing where the name keeps the same company in both (a name that few documents
have) or where what they say of it is alike. Whatever is so connected is one sense. A full name is taken for
one thing unless nothing at all connects its documents; a single name of a person for several until something
does: there are many Jacksons.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hornbeam.index.embedder import TextEmbedder
from hornbeam.resolve.kinds import NameKind, name_kind
from hornbeam.resolve.names import is_unspaced, name_words
from hornbeam.settings import ResolveSettings

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    from numpy.typing import NDArray

#: Cosine of what two documents say from which it is of one thing, as measured (bench/RESULTS.md): of single
#: names of people, of all others.
ALIKE = (0.15, 0.0)
#: Documents that hold a name which tells something of its company: this many at most, or this share of all.
RARE = (5, 0.02)
#: Sentences of a document that tell of a name.
_SENTENCES = 3
#: Documents most like a document that are looked at.
_NEAREST = 8
_NAMES_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Candidate:
    number: int  # of the name
    alike: float  # cosine from which two documents speak of one thing


@dataclass(frozen=True, slots=True)
class Sense:
    """What a name is in one document, where that is not what it is in most."""

    name_id: str
    document_id: str
    sense: str  # the first of the documents that have it


def candidates(
    canonical: Sequence[str], types: Sequence[str], documents: Sequence[int], settings: ResolveSettings
) -> list[Candidate]:
    """Names of several documents that may be several things."""
    found = []
    for number, (name, kind) in enumerate(zip(canonical, types, strict=True)):
        if settings.homonyms == "off" or documents[number] < 2:
            continue
        single = name_kind(kind) is NameKind.PERSON and len(name_words(name)) == 1 and not is_unspaced(name)
        if single or (settings.homonyms == "all" and name_kind(kind) is not NameKind.QUANTITY):
            found.append(Candidate(number, ALIKE[0] if single else ALIKE[1]))
    return found


def find_senses(
    connection: duckdb.DuckDBPyConnection, some: Sequence[Candidate], embedder: TextEmbedder
) -> list[Sense]:
    """The documents in which a candidate is not what it is in most of its mentions.

    Reads the tables `names`, `name_mentions` and `found_links`: where a part of a name stands for the whole,
    that is decided already.
    """
    found: list[Sense] = []
    for start in range(0, len(some), _NAMES_AT_ONCE):
        portion = {candidate.number: candidate.alike for candidate in some[start : start + _NAMES_AT_ONCE]}
        numbers = f"({','.join(map(str, portion))})"
        told: dict[int, list[_Told]] = defaultdict(list)
        for number, *row in connection.execute(_TOLD.format(numbers=numbers)).fetchall():
            told[number].append(_Told(*row))
        company: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for number, document, other in connection.execute(
            _COMPANY.format(numbers=numbers, few=RARE[0], share=RARE[1])
        ).fetchall():
            company[number][document].add(other)
        texts = [text for rows in told.values() for row in rows for text in row.sentences]
        vectors = dict(zip(texts, embedder.encode(texts), strict=True)) if texts else {}
        for number, rows in told.items():
            groups = connected(
                [mean_vector([vectors[text] for text in row.sentences]) for row in rows],
                [company[number][row.document_id] for row in rows],
                portion[number],
            )
            # Most mentions first; the rest only makes the order total.
            groups.sort(
                key=lambda group: (-sum(rows[row].mentions for row in group), rows[group[0]].document_id)
            )
            for group in groups[1:]:
                first = rows[group[0]].document_id
                found += [Sense(rows[row].name_id, rows[row].document_id, first) for row in group]
    return found


@dataclass(frozen=True, slots=True)
class _Told:
    """What a document tells of a name."""

    name_id: str
    document_id: str
    mentions: int
    sentences: list[str]  # without the name


def connected(
    vectors: Sequence[NDArray[np.float32]], company: Sequence[Iterable[str]], alike: float
) -> list[list[int]]:
    """Groups of documents, each connected by company or likeness; rows ascending.

    Args:
        vectors: unit vector of what each document says.
        company: rare names that stand in each document.
        alike: least cosine that connects two.
    """
    import numpy as np

    from hornbeam_kernels.search import build_index, search

    parent = list(range(len(vectors)))

    def find(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    first_with: dict[str, int] = {}
    for row, names in enumerate(company):
        for name in names:
            parent[find(row)] = find(first_with.setdefault(name, row))
    matrix = np.stack(vectors)
    scores, near = search(build_index(matrix), matrix, min(_NEAREST, len(matrix)))
    for row, others in enumerate(near.tolist()):
        for score, other in zip(scores[row].tolist(), others, strict=True):
            if other >= 0 and score >= alike:
                parent[find(row)] = find(other)
    groups: dict[int, list[int]] = defaultdict(list)
    for row in range(len(vectors)):
        groups[find(row)].append(row)
    return list(groups.values())


def mean_vector(vectors: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    import numpy as np

    mean: Any = np.sum(vectors, axis=0)
    unit: NDArray[np.float32] = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return unit


_TOLD = f"""
    SELECT number, name_id, document_id, count(*) AS mentions,
           list(DISTINCT replace(sentence, surface, 'it') ORDER BY replace(sentence, surface, 'it'))
               [:{_SENTENCES}] AS sentences
    FROM name_mentions JOIN names USING (name_id)
    ANTI JOIN (SELECT alias_id AS name_id, document_id FROM found_links WHERE kind = 'partial') p
    USING (name_id, document_id)
    WHERE number IN {{numbers}} AND start IS NOT NULL
    GROUP BY number, name_id, document_id ORDER BY number, document_id"""

_COMPANY = """
    SELECT DISTINCT n.number, m.document_id, o.canonical
    FROM name_mentions m JOIN names n USING (name_id)
    JOIN name_mentions c ON c.document_id = m.document_id AND c.name_id <> m.name_id
    JOIN names o ON o.name_id = c.name_id AND o.canonical <> n.canonical
    WHERE n.number IN {numbers} AND o.documents > 1 AND o.documents <= greatest(
        {few}, {share} * (SELECT count(DISTINCT document_id) FROM name_mentions))
    ORDER BY ALL"""
