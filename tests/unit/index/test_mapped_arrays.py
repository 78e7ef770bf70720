import zipfile
from pathlib import Path

import numpy as np
import pytest

from hornbeam.index.mapped_arrays import map_arrays, save_arrays

ARRAYS = {
    "indptr": np.array([0, 2, 2, 5]),
    "of_another_length_of_name": np.arange(5, dtype=np.int32),
    "spans": np.arange(10, dtype=np.int32).reshape(5, 2),
    "nothing": np.zeros((0, 2), np.int32),
    "weights": np.array([0.5, 1.5], np.float32),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_arrays(tmp_path / "x.npz", **ARRAYS)
    return tmp_path / "x.npz"


def test_arrays_are_mapped_as_they_were(path: Path) -> None:
    mapped = map_arrays(path)
    assert list(mapped) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (mapped[name].dtype, mapped[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(mapped[name], array)
        assert type(mapped[name]) is np.ndarray
        if len(array):
            assert isinstance(mapped[name].base, np.memmap), "nothing was copied"
            assert mapped[name].ctypes.data % 64 == 0
            with pytest.raises(ValueError, match="read-only"):
                mapped[name][0] = 1


def test_numpy_reads_them_too_and_its_own_are_read(path: Path, tmp_path: Path) -> None:
    with np.load(path) as arrays:
        assert all(np.array_equal(arrays[name], array) for name, array in ARRAYS.items())
    np.savez(tmp_path / "y.npz", **ARRAYS)  # type: ignore[arg-type]
    mapped = map_arrays(tmp_path / "y.npz")
    assert all(np.array_equal(mapped[name], array) for name, array in ARRAYS.items())


def test_the_same_arrays_are_the_same_bytes(path: Path, tmp_path: Path) -> None:
    save_arrays(tmp_path / "again.npz", **ARRAYS)
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("left", [0, 10, 200, -1])
def test_a_file_that_was_cut_short_is_no_file_of_arrays(path: Path, left: int) -> None:
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(ValueError, match="no file of arrays"):
        map_arrays(path)


def test_what_cannot_be_mapped_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "packed.npz", a=np.zeros(9))
    with pytest.raises(ValueError, match="compressed"):
        map_arrays(tmp_path / "packed.npz")
    np.savez(tmp_path / "objects.npz", a=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="no array of numbers"):
        map_arrays(tmp_path / "objects.npz")
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("a.npy", "this is text")
    with pytest.raises(ValueError, match="magic"):
        map_arrays(tmp_path / "text.npz")
    with pytest.raises(OSError, match="No such file"):
        map_arrays(tmp_path / "nowhere.npz")
