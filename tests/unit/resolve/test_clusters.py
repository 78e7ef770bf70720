import pytest

from hornbeam.resolve.clusters import Clusters


def clusters(size: int, *alike: tuple[int, int]) -> Clusters:
    return Clusters(size, lambda a, b: (a, b) in alike or (b, a) in alike)


def partition(found: Clusters) -> set[frozenset[int]]:
    return {frozenset(found.members(node)) for node in range(len(found))}


def test_firm_unions_are_transitive() -> None:
    found = clusters(4)
    assert found.union(0, 1, firm=True)
    assert found.union(1, 2, firm=True)
    assert not found.union(0, 2, firm=True)  # they are one already
    assert partition(found) == {frozenset({0, 1, 2}), frozenset({3})}


def test_a_chain_of_loose_likeness_stops_where_its_ends_are_unlike() -> None:
    found = clusters(3, (0, 1), (1, 2))
    assert found.union(0, 1, firm=False)
    assert not found.union(1, 2, firm=False)
    assert partition(found) == {frozenset({0, 1}), frozenset({2})}


def test_a_loose_edge_is_not_checked_against_what_is_firmly_tied_to_its_ends() -> None:
    """Bob Dylan = Robert Zimmerman, as stated; Robert Zimmermann is a slip of the latter."""
    found = clusters(3)
    found.union(0, 1, firm=True)
    assert found.union(1, 2, firm=False)


def test_loose_clusters_meet_only_where_all_their_members_are_alike() -> None:
    pairs = [(0, 1), (2, 3), (0, 2), (0, 3), (1, 2)]
    found = clusters(4, *pairs)
    found.union(0, 1, firm=False)
    found.union(2, 3, firm=False)
    assert not found.union(1, 2, firm=False)  # 1 and 3 are not alike
    found = clusters(4, *pairs, (1, 3))
    found.union(0, 1, firm=False)
    found.union(2, 3, firm=False)
    assert found.union(1, 2, firm=False)


@pytest.mark.parametrize("firm", [True, False])
def test_what_is_forbidden_is_never_brought_together_by_others_either(firm: bool) -> None:
    found = clusters(4, (0, 1), (1, 2), (0, 2), (2, 3), (1, 3), (0, 3))
    found.forbid(0, 3)
    assert found.union(0, 1, firm=firm)
    assert found.union(2, 3, firm=firm)
    assert not found.union(1, 2, firm=firm)
    assert partition(found) == {frozenset({0, 1}), frozenset({2, 3})}


def test_nodes_can_be_added() -> None:
    found = clusters(1)
    node = found.add()
    found.forbid(0, node)
    assert not found.union(0, node, firm=True)
    assert found.members(node) == [node]
