"""Vectors of blocks that outlive a stop: found again, made again where damaged, gone with their embedder."""

from pathlib import Path

import numpy as np
import pytest

from hornbeam.index.kept_vectors import KeptVectors, forget_vectors
from support.version_by_hand import HashedWords, ListeningWords

TEXTS = [f"text number {number} of many" for number in range(70)]


def kept(index: Path, embedder: HashedWords) -> KeptVectors:
    return KeptVectors(embedder, index, pytest.fail)


def files(index: Path) -> list[Path]:
    return sorted(path for path in index.rglob("*") if path.is_file())


def test_a_block_that_was_encoded_is_not_encoded_again(tmp_path: Path) -> None:
    first, second = ListeningWords(), ListeningWords()

    made = kept(tmp_path, first).encode(TEXTS, batch_size=8)
    found = kept(tmp_path, second).encode(TEXTS, batch_size=8)

    assert first.asked == TEXTS
    assert second.asked == []
    assert np.array_equal(made, HashedWords().encode(TEXTS))
    assert np.array_equal(found, made)
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("texts", "batch_size"),
    [(TEXTS[:-1], 8), ([*TEXTS[1:], TEXTS[0]], 8), (TEXTS, 16), ([TEXTS[0] + TEXTS[1], *TEXTS[2:], ""], 8)],
)
def test_another_block_is_another(tmp_path: Path, texts: list[str], batch_size: int) -> None:
    kept(tmp_path, HashedWords()).encode(TEXTS, batch_size=8)
    embedder = ListeningWords()

    found = kept(tmp_path, embedder).encode(texts, batch_size=batch_size)

    assert embedder.asked == texts
    assert np.array_equal(found, HashedWords().encode(texts))


def test_a_few_texts_are_not_worth_a_file(tmp_path: Path) -> None:
    kept(tmp_path, HashedWords()).encode(TEXTS[:10])

    assert files(tmp_path) == []


@pytest.mark.parametrize("left", [slice(0, 9000), slice(0, 0), slice(100, None)])
def test_a_cut_file_is_made_again(tmp_path: Path, left: slice) -> None:
    made = kept(tmp_path, HashedWords()).encode(TEXTS)
    [file] = files(tmp_path)
    file.write_bytes(file.read_bytes()[left])
    embedder = ListeningWords()

    assert np.array_equal(kept(tmp_path, embedder).encode(TEXTS), made)
    assert embedder.asked == TEXTS
    again = ListeningWords()
    assert np.array_equal(kept(tmp_path, again).encode(TEXTS), made)
    assert again.asked == []


def test_a_flipped_byte_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    made = kept(tmp_path, HashedWords()).encode(TEXTS)
    [file] = files(tmp_path)
    data = file.read_bytes()
    for place in np.random.default_rng(3).integers(0, len(data), 40).tolist():
        file.write_bytes(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :])
        assert np.array_equal(kept(tmp_path, HashedWords()).encode(TEXTS), made), place


def test_vectors_of_another_embedder_go(tmp_path: Path) -> None:
    class Other(HashedWords):
        fingerprint = "1" * 64

    kept(tmp_path, HashedWords()).encode(TEXTS)
    kept(tmp_path, Other()).encode(TEXTS)

    assert [path.parent.name for path in files(tmp_path)] == ["1" * 64]
    forget_vectors(tmp_path)
    assert list(tmp_path.iterdir()) == []
    forget_vectors(tmp_path)  # nothing to forget


def test_where_nothing_can_be_written_the_vectors_are_made_and_it_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "encoded").write_text("a file where the folder should be")
    said: list[str] = []
    vectors = KeptVectors(HashedWords(), tmp_path, said.append)

    assert np.array_equal(vectors.encode(TEXTS), HashedWords().encode(TEXTS))
    assert np.array_equal(vectors.encode(TEXTS[::-1]), HashedWords().encode(TEXTS[::-1]))
    assert len(said) == 1
    assert "not kept" in said[0]
