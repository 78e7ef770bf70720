from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from hornbeam.errors import StoreError
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from support.version_by_hand import HashedWords, small_rows


def test_another_embedder_is_refused_in_one_line(kb: KnowledgeBase) -> None:
    with pytest.raises(
        StoreError, match=r"made with embedder abc, this is hashed-words 000000000000"
    ) as caught:
        KnowledgeBase.open(kb.directory, HashedWords(), expected_embedder_fingerprint="abc")
    assert "\n" not in str(caught.value)


def test_the_expected_embedder_is_accepted(kb: KnowledgeBase) -> None:
    KnowledgeBase.open(kb.directory, HashedWords(), expected_embedder_fingerprint=HashedWords.fingerprint)


def test_members_of_an_upper_community_are_those_of_its_leaves(kb: KnowledgeBase) -> None:
    everyone = np.arange(len(kb.entities))
    assert np.flatnonzero(kb.belongs(0, everyone)).tolist() == [0, 3]
    assert np.flatnonzero(kb.belongs(3, everyone)).tolist() == [0, 1, 2, 3]


def test_inner_facts_have_both_ends_inside_the_community(kb: KnowledgeBase) -> None:
    assert kb.inner_facts(0, 10).tolist() == [2]  # born_in leaves it
    assert kb.inner_facts(3, 10).tolist() == [0, 1, 2]
    assert kb.inner_facts(3, 1).tolist() == [0]


def test_central_facts_stay_inside_the_community_and_begin_with_the_heaviest(
    open_rows: Callable[..., KnowledgeBase],
) -> None:
    rows = small_rows()
    rows["relations"][2] = replace(rows["relations"][2], weight=5.0)
    kb = open_rows(rows)
    assert kb.central_facts(0, 5) == [2]  # born_in leaves the community
    assert kb.central_facts(3, 5) == [2, 0]


def test_an_arrow_of_a_path_points_from_head_to_tail(kb: KnowledgeBase) -> None:
    assert kb.path_text((2, 1, 0), (1, 0)) == "Poland <-[capital of]- Warsaw <-[born in]- Marie Curie"
    assert kb.path_text((0, 1), (0,)) == "Marie Curie -[born in]-> Warsaw"


def test_a_chunk_knows_its_place_and_document(kb: KnowledgeBase) -> None:
    assert kb.chunk_span(2) == (25, 90)
    assert kb.document_of(2) == {"document_id": "d2", "source": "warsaw.md", "title": "Warsaw"}


def test_a_version_without_indexes_is_one_clear_line(kb: KnowledgeBase) -> None:
    (kb.directory / "rows" / "entities.arrow").unlink()
    with pytest.raises(StoreError, match=r"entities\.arrow is missing.*--repair"):
        KnowledgeBase.open(kb.directory, HashedWords())


def test_an_entity_reads_as_it_was_embedded(kb: KnowledgeBase) -> None:
    assert kb.entity_text(0) == "Marie Curie (person). workplace: Paris"
