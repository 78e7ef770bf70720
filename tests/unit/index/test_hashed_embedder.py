"""Hashed n-grams: the same everywhere, near for what is spelled alike."""

from __future__ import annotations

import numpy as np

from hornbeam.index.hashed_embedder import HashedEmbedder


def test_rows_are_unit_vectors_whatever_stands_beside_them() -> None:
    texts = ["Warsaw", "Marie Curie", "北京大学位于海淀区", "x" * 10_000, "a"]

    together = HashedEmbedder().encode(texts)
    alone = np.concatenate([HashedEmbedder().encode([text]) for text in texts])

    np.testing.assert_array_equal(together, alone)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_what_is_spelled_alike_is_near() -> None:
    query, same, other = HashedEmbedder().encode(["warsaw university", "University of Warsaw", "polonium"])

    assert query @ same > 0.6
    assert abs(query @ other) < 0.3


def test_a_text_without_characters_has_no_direction() -> None:
    assert not HashedEmbedder().encode(["", "   "]).any()
    assert HashedEmbedder().encode([]).shape == (0, HashedEmbedder.dimension)
