"""Arrays in one file that is read by mapping: opening costs the same for a thousand rows and for a million.

The files are NumPy's `.npz`, stored and not compressed, as `numpy.savez` writes them, but that every array
begins at a multiple of 64 bytes: `numpy.load` reads them, too, copying each array and checking its sum. Here
nothing is read before it is used, so damage inside an array is for `hornbeam audit` to find.
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Has no types.
_format: Any = np.lib.format
_ALIGNMENT = 64
#: Of a local header in a zip file: its fixed part, and the extra field that tells sizes beyond 4 GiB.
_FIXED, _SIZES = 30, 20
_LENGTHS_AT = 26  # of the name and of all extra fields
#: Android's mark of a field that is there to align what follows.
_PADDING = 0xD935


def save_arrays(path: Path, **arrays: NDArray[Any]) -> None:
    """Write arrays by name; the same arrays give the same bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            begins = archive.start_dir + _FIXED + len(info.filename) + _SIZES + 4
            padding = -begins % _ALIGNMENT
            info.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
            with archive.open(info, "w", force_zip64=True) as member:
                _format.write_array(member, np.asanyarray(array), allow_pickle=False)


def map_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file by name, read-only.

    Raises:
        OSError: the file is not there or cannot be read.
        ValueError: it holds something else, or less than it says.
    """
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            return {
                info.filename.removesuffix(".npy"): _mapped(path, file, info) for info in archive.infolist()
            }
    except (zipfile.BadZipFile, struct.error, EOFError) as error:
        raise ValueError(f"no file of arrays: {error}") from error


def _mapped(path: Path, file: Any, info: zipfile.ZipInfo) -> NDArray[Any]:
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"{info.filename} is compressed")
    file.seek(info.header_offset + _LENGTHS_AT)
    name, extra = struct.unpack("<HH", file.read(4))
    file.seek(info.header_offset + _FIXED + name + extra)
    version = _format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"{info.filename} has the array format {version}")
    shape, in_columns, dtype = _format.read_array_header_1_0(file)
    if in_columns or dtype.hasobject:
        raise ValueError(f"{info.filename} is no array of numbers, row by row")
    if 0 in shape:  # nothing to map
        return np.zeros(shape, dtype)
    # A plain array over the mapping: `memmap` itself is slower at every step.
    return np.asarray(np.memmap(path, dtype, "r", file.tell(), shape))
