"""Names of different documents that are one thing: candidates by blocking, a decision by their company.

Names with the same letters, or the same stem, meet by hash. Others are only looked at where an embedding of
the name is among the nearest few of its type, and then only where one could be a form of the other: a slip of
one letter, or a person with and without some given names. Likeness alone decides nothing: both must stand
beside a name that few documents have, or be told of in like words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from hornbeam.index.embedder import TextEmbedder
from hornbeam.resolve.evidence import SCORES, EvidenceKind
from hornbeam.resolve.forms import is_person_part, one_slip_apart, stem_key
from hornbeam.resolve.judging import Pair
from hornbeam.resolve.kinds import NameKind, name_kind
from hornbeam.resolve.names import is_unspaced, name_words, ordinals_of, spelling_key
from hornbeam.resolve.resolution import Names
from hornbeam.resolve.senses import RARE, mean_vector

if TYPE_CHECKING:
    import duckdb

#: Cosine of what is told of two names from which it is alike: 2 of 100 pairs of different things reach it.
_ALIKE = 0.3
#: Letters from which names that are written with the same ones are the same.
_LEAST_LETTERS = 5
#: Sentences that tell of a name.
_SENTENCES = 6
_AT_ONCE = 512

#: Sentences about one name and about another.
_Told = tuple[list[str], list[str]]
#: P(one thing) of pairs, None for those that are not; what is below a threshold counts as not.
Judge = Callable[[Sequence[Pair]], list[float | None]]


@dataclass(frozen=True, slots=True)
class AcrossLink:
    alias: int  # number of the name
    target: int
    kind: str
    score: float


def find_across(
    connection: duckdb.DuckDBPyConnection,
    names: Names,
    embedder: TextEmbedder,
    neighbours: int,
    kinds: Collection[EvidenceKind],
    judge: Judge | None = None,
) -> list[AcrossLink]:
    """Links between names whatever document they stand in. Reads the tables `names` and `name_mentions`.

    Args:
        neighbours: names nearest to a name that are looked at; 0: none.
        judge: decides about names that could be forms of one and whose company does not tell.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for number, kind in enumerate(names.types):
        if name_kind(kind) is not NameKind.QUANTITY and not names.senses[number]:
            groups[kind].append(number)
    found: list[AcrossLink] = []
    open_pairs: list[tuple[int, int, _Told]] = []
    for kind, members in sorted(groups.items()):
        if EvidenceKind.SPELLING in kinds:
            found += _equal(names, members, _spelling, EvidenceKind.SPELLING)
        if EvidenceKind.INFLECTION in kinds:
            found += _equal(names, members, _stem, EvidenceKind.INFLECTION)
        if neighbours and (EvidenceKind.CONTEXT in kinds or judge is not None):
            pairs = list(_near(names, members, name_kind(kind), embedder, neighbours))
            for alias, target, alike, told in _in_company(connection, names, pairs, embedder):
                if alike and EvidenceKind.CONTEXT in kinds:
                    score = SCORES[EvidenceKind.CONTEXT]
                    found.append(AcrossLink(alias, target, EvidenceKind.CONTEXT.value, score))
                else:
                    open_pairs.append((alias, target, told))
    if judge is not None and open_pairs:
        verdicts = judge(
            [
                Pair(names.canonical[alias], told[0], names.canonical[target], told[1])
                for alias, target, told in open_pairs
            ]
        )
        for (alias, target, _), probability in zip(open_pairs, verdicts, strict=True):
            if probability is not None:
                found.append(AcrossLink(alias, target, EvidenceKind.MODEL.value, probability))
    return found


def _spelling(canonical: str) -> str | None:
    key = spelling_key(canonical)
    return key if len(key) >= _LEAST_LETTERS else None


def _stem(canonical: str) -> str | None:
    """Of more than one word: a single surname in the genitive is its bearer's wife in the nominative."""
    if canonical.isascii():
        return None
    return stem_key(canonical) if len(name_words(canonical)) > 1 else None


def _equal(
    names: Names, members: Sequence[int], key_of: Callable[[str], str | None], kind: EvidenceKind
) -> Iterator[AcrossLink]:
    same: dict[str, list[int]] = defaultdict(list)
    for number in members:
        if key := key_of(names.canonical[number]):
            same[key].append(number)
    for group in same.values():
        if len(group) == 1:
            continue
        for target, alias in pairwise(sorted(group, key=lambda number: _rank(names, number))):
            yield AcrossLink(alias, target, kind.value, SCORES[kind])


def _rank(names: Names, number: int) -> tuple[float, str]:
    return (-names.votes[number], names.canonical[number])


def _near(
    names: Names, members: Sequence[int], kind: NameKind, embedder: TextEmbedder, neighbours: int
) -> Iterator[tuple[int, int]]:
    """(alias, target) of names that could be forms of one, each pair once."""
    import numpy as np

    from hornbeam_kernels.search import build_index, search

    spaced = [number for number in members if not is_unspaced(names.canonical[number])]
    if len(spaced) < 2:
        return
    blocks = [
        embedder.encode([names.canonical[number] for number in spaced[start : start + _AT_ONCE]])
        for start in range(0, len(spaced), _AT_ONCE)
    ]
    vectors = np.concatenate(blocks)
    index = build_index(vectors)
    for start in range(0, len(spaced), _AT_ONCE):
        _, near = search(index, vectors[start : start + _AT_ONCE], min(neighbours + 1, len(spaced)))
        for row, others in enumerate(near.tolist(), start=start):
            # Seen from the side of the alias, whichever found the other.
            for other in others:
                if other >= 0 and other != row:
                    target, alias = sorted((spaced[row], spaced[other]), key=lambda n: _rank(names, n))
                    if _could_be_one(names.canonical[alias], names.canonical[target], kind):
                        yield alias, target


def _could_be_one(alias: str, target: str, kind: NameKind) -> bool:
    if one_slip_apart(alias, target):
        return True
    if kind is not NameKind.PERSON or ordinals_of(alias) != ordinals_of(target):
        return False
    first, second = name_words(alias), name_words(target)
    # A single name is too many people's.
    return min(len(first), len(second)) > 1 and (
        is_person_part(first, second) or is_person_part(second, first)
    )


def _in_company(
    connection: duckdb.DuckDBPyConnection,
    names: Names,
    pairs: Sequence[tuple[int, int]],
    embedder: TextEmbedder,
) -> Iterator[tuple[int, int, bool, _Told]]:
    """(alias, target, whether both keep like company, what is told of each), of different documents."""
    distinct = sorted(set(pairs))
    for start in range(0, len(distinct), _AT_ONCE):
        portion = distinct[start : start + _AT_ONCE]
        numbers = f"({','.join(str(number) for number in sorted({n for pair in portion for n in pair}))})"
        told: dict[int, list[str]] = {}
        documents: dict[int, set[str]] = {}
        for number, sentences, stands_in in connection.execute(_TOLD.format(numbers=numbers)).fetchall():
            told[number], documents[number] = sentences, set(stands_in)
        company: dict[int, set[str]] = defaultdict(set)
        for number, other in connection.execute(
            _COMPANY.format(numbers=numbers, few=RARE[0], share=RARE[1])
        ).fetchall():
            company[number].add(other)
        texts = sorted({text for sentences in told.values() for text in sentences})
        vectors = dict(zip(texts, embedder.encode(texts), strict=True)) if texts else {}
        for alias, target in portion:
            if not documents.get(alias, set()).isdisjoint(documents.get(target, ())):
                continue  # a document that has both has told what there is to tell
            ours, theirs = (told.get(number, []) for number in (alias, target))
            shared = company[alias] & company[target] - {names.canonical[alias], names.canonical[target]}
            alike = 0.0
            if ours and theirs:
                means = [mean_vector([vectors[text] for text in sentences]) for sentences in (ours, theirs)]
                alike = float(means[0] @ means[1])
            yield alias, target, bool(shared) or alike >= _ALIKE, (ours, theirs)


_TOLD = f"""
    SELECT number, list(DISTINCT replace(sentence, surface, 'it') ORDER BY replace(sentence, surface, 'it'))
                   [:{_SENTENCES}],
           list(DISTINCT document_id)
    FROM name_mentions JOIN names USING (name_id)
    WHERE number IN {{numbers}} AND start IS NOT NULL GROUP BY number"""

_COMPANY = """
    SELECT DISTINCT n.number, o.canonical
    FROM name_mentions m JOIN names n USING (name_id)
    JOIN name_mentions c ON c.document_id = m.document_id AND c.name_id <> m.name_id
    JOIN names o ON o.name_id = c.name_id
    WHERE n.number IN {numbers} AND o.documents > 1 AND o.documents <= greatest(
        {few}, {share} * (SELECT count(DISTINCT document_id) FROM name_mentions))"""
