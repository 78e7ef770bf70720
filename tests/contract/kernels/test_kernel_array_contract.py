"""What the kernels may use of an array library: the array API, and nothing that CuPy lacks."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest
import scipy.sparse

from hornbeam_kernels.backend import Backend
from hornbeam_kernels.dual_perception import (
    jaccard,
    own_scores,
    relation_type_counts,
    structural_similarity,
)
from hornbeam_kernels.merging import merge_communities
from hornbeam_kernels.representation import entity_representation, unit_rows

MISSING_IN_CUPY = {"vecdot", "vecmat", "matvec", "unstack", "block", "insert", "geomspace", "nanquantile"}
KEYWORDS_CUPY_LACKS = {"kind", "stable", "order"}
UNCHECKED = {"repeat", "lexsort", "random"}
"""Names that CuPy has with other arguments: repeat takes no array of counts, lexsort one stacked array."""


class CupyShaped:
    """NumPy without what CuPy lacks."""

    def __getattr__(self, name: str) -> Any:
        assert name not in MISSING_IN_CUPY | UNCHECKED, f"xp.{name} does not carry over to CuPy"
        attribute = getattr(np, name)
        if not callable(attribute) or isinstance(attribute, type):
            return attribute

        def call(*args: Any, **kwargs: Any) -> Any:
            assert not KEYWORDS_CUPY_LACKS & kwargs.keys(), f"xp.{name}({', '.join(kwargs)})"
            return attribute(*args, **kwargs)

        return call


@pytest.fixture(name="graph")
def _graph() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 50, 200), rng.integers(0, 4, 200), rng.integers(0, 50, 200)
    return {"columns": columns, "entities": rng.normal(size=(50, 6)), "types": rng.normal(size=(4, 6))}


def test_kernels_use_only_what_numpy_and_cupy_share(graph: dict[str, Any]) -> None:
    shared = Backend("cupy-shaped", CupyShaped(), scipy.sparse, "test")
    results = []
    for backend in (shared, None):
        x = entity_representation(graph["entities"], graph["types"], *graph["columns"], backend=backend)
        counts = relation_type_counts(*graph["columns"], 50, 4, backend=backend)
        labels = merge_communities(x, counts, np.arange(50), threshold=0.6, max_size=9, backend=backend)
        similar = structural_similarity(counts, counts, backend=backend)
        results.append((x, labels, similar, own_scores(x, counts, labels, backend=backend)))
    for got, expected in zip(*results, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert results[0][1].max() < 49


@pytest.mark.parametrize("xp", [np, array_api_strict], ids=["numpy", "array-api-strict"])
def test_unit_rows_is_array_api_code(xp: Any) -> None:
    x = xp.asarray([[3.0, 4.0], [0.0, 0.0]], dtype=xp.float32)
    np.testing.assert_allclose(np.asarray(unit_rows(x, xp)), [[0.6, 0.8], [0, 0]], atol=1e-6)


@pytest.mark.parametrize("xp", [np, array_api_strict], ids=["numpy", "array-api-strict"])
def test_jaccard_is_array_api_code(xp: Any) -> None:
    shared, a, b = (xp.asarray(v, dtype=xp.float32) for v in ([1.0, 0.0], [2.0, 0.0], [3.0, 0.0]))
    np.testing.assert_allclose(np.asarray(jaccard(shared, a, b, xp)), [0.25, 0.0])
