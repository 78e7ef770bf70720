"""The third sign of touching: likeness, measured on the texts in which a type was seen."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hornbeam.evolve.touching import StoredChunk, Touch
from hornbeam.extract.result import ChunkExtraction
from hornbeam.schema.evolution import NewType
from hornbeam.store.ledger import Ledger


class Angles:
    """A text that is a number is the unit vector at so many degrees from the type's."""

    name, dimension, fingerprint = "angles", 2, "0"

    def encode(self, texts: Sequence[str], *, batch_size: int = 64) -> NDArray[np.float32]:
        degrees = np.radians([float(text) if text.isdigit() else 0.0 for text in texts])
        return np.stack([np.cos(degrees), np.sin(degrees)], axis=1).astype(np.float32)


SEEN = {("entity", "ship"): ["20", "30", "40", "50", "80"]}


@pytest.mark.parametrize(
    ("similarity", "share", "seen", "touched"),
    [
        (0.7, 0.0, SEEN, [True, False, False, False]),  # cosine of 45 degrees: .71
        (0.7, 0.8, SEEN, [True, True, False, False]),  # four of five reach cos 50
        (0.7, 1.0, SEEN, [True, True, True, False]),
        (0.7, 1.0, {}, [True, False, False, False]),
        (0.7, 1.0, {("relation", "ship"): ["80"]}, [True, False, False, False]),
        (0.0, 1.0, {("entity", "ship"): ["10"]}, [True, True, True, True]),  # never rises
    ],
)
def test_the_bound_falls_until_most_texts_with_the_type_reach_it(
    similarity: float,
    share: float,
    seen: dict[tuple[str, str], list[str]],
    touched: list[bool],
    tmp_path: Path,
) -> None:
    chunks = [StoredChunk(angle, angle, ChunkExtraction()) for angle in ("44", "49", "79", "88")]
    with Ledger(tmp_path, create=True) as ledger:
        touch = Touch([NewType("entity", "ship")], ledger.types, Angles(), similarity, seen, share)
        assert touch.touched(chunks) == touched
