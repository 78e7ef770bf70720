"""Union-find over names, with pairs that may not meet and a check against chains of loose likeness."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, product

#: Members outside the closest company of a loose edge's two ends that it is checked against.
_MOST_COMPARED = 32


class Clusters:
    """Nodes 0 … size - 1, each in a cluster of its own at first.

    A *firm* union rests on evidence about its two nodes (the text says so). A *loose* one rests on likeness,
    which is not transitive: it is refused where it would bring together two members, not firmly tied to its
    ends, that `alike` tells apart. So a, b, c, … each like the next do not become one.

    Args:
        alike: whether two nodes could be one thing as far as their names go.
    """

    def __init__(self, size: int, alike: Callable[[int, int], bool]) -> None:
        self._parent = list(range(size))
        self._firm = list(range(size))
        self._members: dict[int, list[int]] = {}  # of clusters of more than one
        self._apart: dict[int, set[int]] = {}  # root → nodes that may not come in
        self._alike = alike

    def add(self) -> int:
        """One more node; its number."""
        self._parent.append(len(self._parent))
        self._firm.append(len(self._firm))
        return len(self._parent) - 1

    def __len__(self) -> int:
        return len(self._parent)

    def find(self, node: int) -> int:
        """The root of a node's cluster."""
        return _find(self._parent, node)

    def members(self, node: int) -> list[int]:
        """The nodes of a node's cluster."""
        root = self.find(node)
        return self._members.get(root, [root])

    def joined(self) -> Iterable[list[int]]:
        """The nodes of each cluster of more than one."""
        return self._members.values()

    def forbid(self, first: int, second: int) -> None:
        """Two nodes that no later union may bring together."""
        a, b = self.find(first), self.find(second)
        if a != b:
            self._apart.setdefault(a, set()).add(second)
            self._apart.setdefault(b, set()).add(first)

    def union(self, first: int, second: int, *, firm: bool) -> bool:
        """Join two clusters; False where they are one already or may not be."""
        a, b = self.find(first), self.find(second)
        if a != b and (self._forbidden(a, b) or not (firm or self._holds(first, second))):
            return False
        if firm:
            self._firm[_find(self._firm, first)] = _find(self._firm, second)
        if a == b:
            return False
        if len(self.members(a)) < len(self.members(b)):
            a, b = b, a
        joined = [*self.members(a), *self.members(b)]
        self._members.pop(b, None)
        self._members[a] = joined
        self._parent[b] = a
        if apart := self._apart.pop(b, None):
            self._apart.setdefault(a, set()).update(apart)
        return True

    def _forbidden(self, a: int, b: int) -> bool:
        """Each side knows of the other: looked up from the side that knows of fewer."""
        knows, other = (a, b) if len(self._apart.get(a, ())) <= len(self._apart.get(b, ())) else (b, a)
        return any(self.find(node) == other for node in self._apart.get(knows, ()))

    def _holds(self, first: int, second: int) -> bool:
        """Whether no two members are told apart that a loose edge would bring together."""
        ours, theirs = self.members(first), self.members(second)
        tied_first, tied_second = _find(self._firm, first), _find(self._firm, second)
        our_rest = [node for node in ours if _find(self._firm, node) != tied_first]
        their_rest = [node for node in theirs if _find(self._firm, node) != tied_second]
        if len(our_rest) + len(their_rest) > _MOST_COMPARED:
            return False
        pairs = [(node, second) for node in our_rest] + [(first, node) for node in their_rest]
        return all(self._alike(*pair) for pair in chain(pairs, product(our_rest, their_rest)))


def _find(parent: list[int], node: int) -> int:
    root = node
    while parent[root] != root:
        root = parent[root]
    while parent[node] != root:
        parent[node], node = root, parent[node]
    return root
