"""Which names are one entity: from the links of all documents to a table that maps names to entities.

A *name* (canonical name, type) is one entity by itself wherever it stands. Evidence that holds everywhere
joins names; evidence of one document takes a name out of its own entity there and into another's: "Idriss" is
Ramey Idriss where he was introduced, and nobody else anywhere else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from hornbeam.records import content_id
from hornbeam.resolve.clusters import Clusters
from hornbeam.resolve.evidence import DIRECTED, LOCAL, LOOSE, EvidenceKind
from hornbeam.resolve.forms import names_alike
from hornbeam.resolve.kinds import NameKind, name_kind
from hornbeam.resolve.names import is_unspaced, name_words
from hornbeam.resolve.separations import Separation, merge_id

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class Names:
    """Every name of the corpus, by number."""

    ids: list[str]  # of the entity that it is where nothing is told of it
    canonical: list[str]
    types: list[str]
    senses: list[str]  # what tells it from others of its canonical name and type; mostly empty
    votes: list[float]  # confidence over all its mentions
    documents: list[int]  # that it stands in


@dataclass(frozen=True, slots=True)
class Edge:
    """A link, of names by their numbers in the corpus."""

    number: int  # of the link
    document: int
    alias: int
    target: int
    kind: EvidenceKind


@dataclass(slots=True)
class Resolved:
    """Entities by name, and by document and name where a document says otherwise."""

    entity_of: list[str]  # [names]
    type_of: list[str]  # of that entity
    first_name_of: list[bool]  # whether the entity is called after this name
    local: dict[tuple[int, int], int] = field(default_factory=dict)  # (document, name) → name whose entity
    merges: list[tuple[int, str, bool]] = field(default_factory=list)  # (link, merge id, in one document)


def resolve(
    names: Names, edges: Sequence[Edge], document_ids: Sequence[str], separations: Collection[Separation]
) -> Resolved:
    """Decide every edge.

    Args:
        edges: most certain first; the order decides where edges contradict each other.
        document_ids: by number.
        separations: names that no chain of edges may bring together; edges between them are left out before.
    """
    return _Resolver(names, document_ids, separations).run(edges)


class _Resolver:
    def __init__(
        self, names: Names, document_ids: Sequence[str], separations: Collection[Separation]
    ) -> None:
        self._names = names
        self._document_ids = document_ids
        self._clusters = Clusters(len(names.canonical), self._alike)
        self._node_of: dict[tuple[int, int], int] = {}  # (document, name) → its own node
        self._name_of: list[int] = list(range(len(names.canonical)))  # node → name
        self._merged: list[tuple[Edge, bool]] = []  # and whether in one document
        self._forbid(separations)

    def run(self, edges: Sequence[Edge]) -> Resolved:
        everywhere, local = self._by_scope(edges)
        # The nodes of documents first: an edge may lead to another name's own node.
        taken = []
        for edge in local:
            if (edge.document, edge.alias) not in self._node_of:
                self._own_node(edge.document, edge.alias)
                taken.append(edge)
        for edge in everywhere:
            self._join(edge, edge.alias, edge.target, in_document=False)
        for edge in taken:
            target = self._node_of.get((edge.document, edge.target), edge.target)
            self._join(edge, self._node_of[edge.document, edge.alias], target, in_document=True)
        self._take_home()
        return self._result()

    def _own_node(self, document: int, name: int) -> None:
        node = self._clusters.add()
        self._node_of[document, name] = node
        self._name_of.append(name)
        for other, where in self._apart_of.get(name, ()):
            if where in (None, self._document_ids[document]):
                self._clusters.forbid(node, other)

    def _take_home(self) -> None:
        """A name that no other took in, in its document, is itself there, with what it has taken in."""
        rank = {node: (-self._names.votes[name], self._names.canonical[name], document)
                for (document, name), node in self._node_of.items()}  # fmt: skip
        for node in sorted(rank, key=rank.__getitem__):
            if self._home(node) is None:
                self._clusters.union(node, self._name_of[node], firm=True)

    def _home(self, node: int) -> int | None:
        """The first name in a node's cluster that is there wherever it stands."""
        size = len(self._names.canonical)
        return min((member for member in self._clusters.members(node) if member < size), default=None)

    def _by_scope(self, edges: Sequence[Edge]) -> tuple[list[Edge], list[Edge]]:
        targets: dict[int, set[int]] = defaultdict(set)
        for edge in edges:
            if edge.kind in DIRECTED:
                targets[edge.alias].add(edge.target)
        everywhere: list[Edge] = []
        local: list[Edge] = []
        for edge in edges:
            # Said both ways round, or of two things: it holds where it is said.
            several = edge.kind in DIRECTED and len(targets[edge.alias]) > 1
            (local if several or self._holds_locally(edge) else everywhere).append(edge)
        return everywhere, local

    def _holds_locally(self, edge: Edge) -> bool:
        """A single name of a person, or a part of the other name, means somebody else elsewhere."""
        if edge.kind in LOCAL or self._names.senses[edge.alias] or self._names.senses[edge.target]:
            return True
        canonical = self._names.canonical[edge.alias]
        words = name_words(canonical)
        if edge.kind is EvidenceKind.STATED and not is_unspaced(canonical):
            return set(words) < set(name_words(self._names.canonical[edge.target]))
        person = name_kind(self._names.types[edge.alias]) is NameKind.PERSON
        return person and len(words) == 1 and edge.kind in (EvidenceKind.SLIP, EvidenceKind.INFLECTION)

    def _pair(self, edge: Edge) -> tuple[tuple[str, str], tuple[str, str]]:
        names = self._names
        first, second = edge.alias, edge.target
        return (names.canonical[first], names.types[first]), (names.canonical[second], names.types[second])

    def _join(self, edge: Edge, alias: int, target: int, *, in_document: bool) -> None:
        if self._clusters.union(alias, target, firm=edge.kind not in LOOSE):
            self._merged.append((edge, in_document))

    def _forbid(self, separations: Collection[Separation]) -> None:
        """Pairs of names that no chain of other evidence may bring together either."""
        self._apart_of: dict[int, list[tuple[int, str | None]]] = defaultdict(list)  # name → (other, where)
        wanted = {(s.name, s.type) for s in separations} | {(s.other_name, s.other_type) for s in separations}
        pairs = zip(self._names.canonical, self._names.types, strict=True) if wanted else ()
        numbers_of: dict[tuple[str, str], list[int]] = defaultdict(list)  # of each sense
        for number, pair in enumerate(pairs):
            if pair in wanted:
                numbers_of[pair].append(number)
        for separation in separations:
            ours = numbers_of[separation.name, separation.type]
            theirs = numbers_of[separation.other_name, separation.other_type]
            for first, second in product(ours, theirs):
                self._apart_of[first].append((second, separation.document_id))
                self._apart_of[second].append((first, separation.document_id))
                self._clusters.forbid(first, second)

    def _alike(self, first: int, second: int) -> bool:
        names = self._names
        return names_alike(names.canonical[self._name_of[first]], names.canonical[self._name_of[second]])

    def _result(self) -> Resolved:
        names = self._names
        left = list(names.documents)  # in which the name goes by itself
        # What nothing is told of is itself.
        resolved = Resolved(list(names.ids), list(names.types), [True] * len(names.ids))
        for (document, name), node in self._node_of.items():
            home = self._home(node)
            assert home is not None, "every name was taken home"
            resolved.local[document, name] = home
            left[name] -= 1
        for members in self._clusters.joined():
            self._settle(members, left, resolved)
        for edge, in_document in self._merged:
            scope = self._document_ids[edge.document] if in_document else None
            resolved.merges.append((edge.number, merge_id(scope, *self._pair(edge)), in_document))
        return resolved

    def _settle(self, members: Sequence[int], left: Sequence[int], resolved: Resolved) -> None:
        """Type, first name and id of a cluster of several."""
        names = self._names
        own = [node for node in members if node < len(names.canonical)]
        by_itself = [node for node in own if left[node]] or own
        votes: dict[str, float] = defaultdict(float)
        for node in by_itself:
            votes[names.types[node]] += names.votes[node]
        kind = max(sorted(votes), key=votes.__getitem__)
        first = max(
            (node for node in by_itself if names.types[node] == kind),
            key=lambda node: (names.votes[node], names.canonical[node]),
        )
        sense = (names.senses[first],) if names.senses[first] else ()
        entity = content_id("e", names.canonical[first], kind, *sense)
        for node in own:
            resolved.entity_of[node] = entity
            resolved.type_of[node] = kind
            resolved.first_name_of[node] = False
        resolved.first_name_of[first] = True


def read_names(connection: duckdb.DuckDBPyConnection) -> Names:
    """The table `names`, in the order of its numbers."""
    wanted = ("name_id", "canonical", "type", "sense", "votes", "documents")
    columns: Any = connection.sql(f"SELECT {', '.join(wanted)} FROM names ORDER BY number").to_arrow_table()
    return Names(*(columns[name].to_pylist() for name in wanted))


def read_edges(connection: duckdb.DuckDBPyConnection) -> list[Edge]:
    """The table `links`, in the order of its numbers."""
    rows: Any = connection.execute(
        "SELECT link, document, alias, target, kind FROM links ORDER BY link"
    ).fetchall()
    kinds = {kind.value: kind for kind in EvidenceKind}
    return [Edge(link, document, alias, target, kinds[kind]) for link, document, alias, target, kind in rows]
