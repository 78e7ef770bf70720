"""Vectors of blocks that outlive a stop: found again, made again where damaged, gone with their embedder."""

from pathlib import Path

import numpy as np
import pytest

from hornbeam.index.kept_vectors import KeptVectors, _read, forget_vectors
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


def test_a_flipped_bit_is_noticed_wherever_it_is(tmp_path: Path) -> None:
    made = kept(tmp_path, HashedWords()).encode(TEXTS[:64])
    [file] = files(tmp_path)
    data = file.read_bytes()
    # Every bit of the first bytes and of the last, and some of those between.
    edges = [8 * byte + bit for byte in (*range(70), *range(len(data) - 8, len(data))) for bit in range(8)]
    between = np.random.default_rng(3).integers(0, 8 * len(data), 60).tolist()
    for place in [*edges, *between]:
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << place % 8
        file.write_bytes(damaged)
        assert _read(file, made.shape) is None, place
    file.write_bytes(data)
    found = _read(file, made.shape)
    assert found is not None
    assert np.array_equal(found, made)
    assert found.flags.writeable


@pytest.mark.parametrize("place", ["encoded", "encoded/stray"])
def test_a_file_that_stands_in_the_way_goes_with_the_rest(tmp_path: Path, place: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text("not of this program")
    said: list[str] = []
    vectors = KeptVectors(HashedWords(), tmp_path, said.append)

    assert np.array_equal(vectors.encode(TEXTS), HashedWords().encode(TEXTS))
    forget_vectors(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept.txt").write_text("of somebody")
    index = tmp_path / "index"
    index.mkdir()
    (index / "encoded").symlink_to(elsewhere, target_is_directory=True)

    forget_vectors(index)

    assert list(index.iterdir()) == []
    assert (elsewhere / "kept.txt").exists()


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
