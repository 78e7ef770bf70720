from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hornbeam.errors import StoreError
from hornbeam.index.embedder import unit_rows
from hornbeam.index.vectors import VectorIndex, write_vectors
from hornbeam_kernels.search import build_index, build_scanned_index


@pytest.fixture
def vectors() -> NDArray[np.float32]:
    return unit_rows(np.random.default_rng(0).standard_normal((300, 16)).astype(np.float32))


def test_batches_are_found_under_their_row_numbers(tmp_path: Path, vectors: NDArray[np.float32]) -> None:
    path = tmp_path / "x.faiss"
    write_vectors(path, iter([vectors[:7], vectors[7:]]), 300, 16)
    index = VectorIndex.open(path, 300, 16)
    rows, cosines = index.search(vectors[42], 5)
    assert rows[0] == 42
    assert cosines[0] == pytest.approx(1, abs=1e-5)
    assert sorted(cosines.tolist(), reverse=True) == cosines.tolist()
    assert [file.name for file in tmp_path.iterdir()] == ["x.faiss"]


@pytest.mark.parametrize("kind", ["exact", "inverted", "scanned"])
def test_similarities_are_exact_for_any_rows(
    tmp_path: Path, vectors: NDArray[np.float32], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import faiss

    monkeypatch.setattr("hornbeam_kernels.search.SCANNED_FROM", 1)
    path = tmp_path / "x.faiss"
    made = {
        "exact": lambda: build_index(vectors),
        "inverted": lambda: build_index(vectors, exact_below=1),
        "scanned": lambda: build_scanned_index(vectors),
    }[kind]()
    assert isinstance(made, faiss.IndexRefineFlat) == (kind == "scanned")
    faiss.write_index(made, str(path))
    index = VectorIndex.open(path, 300, 16)
    assert (index.vectors is None) == (kind == "inverted")
    np.testing.assert_array_equal(index.rows(np.array([7, 0])), vectors[[7, 0]])
    rows = np.array([299, 3, 3])
    np.testing.assert_allclose(index.similarities(vectors[0], rows), vectors[rows] @ vectors[0], atol=1e-6)
    np.testing.assert_allclose(index.similarities(vectors[0]), vectors @ vectors[0], atol=1e-6)


def test_many_vectors_are_scanned_by_their_codes_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((40, 32)).astype(np.float32)
    many = unit_rows(centres[rng.integers(0, 40, 2000)] + rng.standard_normal((2000, 32)).astype(np.float32))
    monkeypatch.setattr("hornbeam.index.vectors.EXACT_BELOW", 2000)
    path = tmp_path / "x.faiss"
    write_vectors(path, iter([many]), 2000, 32)
    index = VectorIndex.open(path, 2000, 32)
    assert index.index.k_factor >= 10
    for row in range(0, 2000, 100):
        found, cosines = index.search(many[row], 10)
        exact = many @ many[row]
        assert found[0] == row
        np.testing.assert_allclose(cosines, exact[found], atol=1e-5)
        assert len(set(found.tolist()) & set(np.argsort(-exact)[:10].tolist())) >= 9


def test_codes_that_were_learned_before_find_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((40, 32)).astype(np.float32)
    many = unit_rows(centres[rng.integers(0, 40, 2020)] + rng.standard_normal((2020, 32)).astype(np.float32))
    monkeypatch.setattr("hornbeam.index.vectors.EXACT_BELOW", 2000)
    write_vectors(tmp_path / "x.faiss", iter([many[:2000]]), 2000, 32)
    before = VectorIndex.open(tmp_path / "x.faiss", 2000, 32)
    monkeypatch.setattr("hornbeam_kernels.search._samples", lambda *_: pytest.fail("nothing is measured"))
    write_vectors(tmp_path / "y.faiss", iter([many]), 2020, 32, before)
    index = VectorIndex.open(tmp_path / "y.faiss", 2020, 32)
    assert index.index.k_factor == before.index.k_factor
    for row in range(1990, 2020):
        found, cosines = index.search(many[row], 10)
        exact = many @ many[row]
        assert found[0] == row
        np.testing.assert_allclose(cosines, exact[found], atol=1e-5)
        assert len(set(found.tolist()) & set(np.argsort(-exact)[:10].tolist())) >= 9


def test_no_vectors_make_an_index_that_finds_nothing(tmp_path: Path) -> None:
    write_vectors(tmp_path / "x.faiss", iter([]), 0, 16)
    rows, _ = VectorIndex.open(tmp_path / "x.faiss", 0, 16).search(np.zeros(16, np.float32), 3)
    assert rows.tolist() == []


def test_a_file_of_another_size_is_refused(tmp_path: Path, vectors: NDArray[np.float32]) -> None:
    write_vectors(tmp_path / "x.faiss", iter([vectors]), 300, 16)
    with pytest.raises(StoreError, match="300 × 16 where the table and the embedder have 299 × 16"):
        VectorIndex.open(tmp_path / "x.faiss", 299, 16)


def test_a_damaged_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "x.faiss").write_bytes(b"not an index")
    with pytest.raises(StoreError, match=r"x\.faiss is damaged .*audit --index"):
        VectorIndex.open(tmp_path / "x.faiss", 1, 16)


def test_missing_batches_are_noticed_and_leave_no_file(tmp_path: Path, vectors: NDArray[np.float32]) -> None:
    with pytest.raises(StoreError, match="7 vectors for 300 rows"):
        write_vectors(tmp_path / "x.faiss", iter([vectors[:7]]), 300, 16)
    assert list(tmp_path.iterdir()) == []
