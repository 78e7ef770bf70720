"""Question and text read together by a cross-encoder from a local directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from hornbeam.errors import ModelError
from hornbeam.index.embedder import choose_device


class CrossEncoder:
    """A sentence-transformers cross-encoder with one output, which a sigmoid brings to [0, 1]."""

    name = "cross-encoder"

    def __init__(self, directory: Path, device: Literal["auto", "cpu", "cuda"] = "auto") -> None:
        """Raises ModelError where the directory holds no such model. Nothing is fetched."""
        if not (directory / "config.json").is_file():
            raise ModelError(
                f"retrieve.cross_encoder {directory}: no model there (config.json is missing); give the "
                "directory of a cross-encoder, for example a copy of ms-marco-MiniLM-L6-v2"
            )
        os.environ["HF_HUB_OFFLINE"] = "1"
        os.environ["TRANSFORMERS_OFFLINE"] = "1"
        from sentence_transformers import CrossEncoder as Library
        from torch.nn import Sigmoid

        try:
            self._model: Any = Library(str(directory), device=choose_device(device)[0], local_files_only=True)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ModelError(f"retrieve.cross_encoder {directory} cannot be loaded: {reason}") from error
        if self._model.config.num_labels != 1:
            raise ModelError(
                f"retrieve.cross_encoder {directory}: it has {self._model.config.num_labels} outputs; one "
                "that says how well a text fits is needed"
            )
        self._to_unit = Sigmoid()

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text fits the question, in [0, 1]; what is longer than the model reads is cut."""
        pairs = [(question, text) for text in texts]
        found = self._model.predict(pairs, activation_fn=self._to_unit, show_progress_bar=False)
        return [float(score) for score in found]
