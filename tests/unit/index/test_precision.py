"""An index is asked with the embedder that made its vectors, whatever the settings say since."""

from types import SimpleNamespace
from typing import Any

import pytest

from hornbeam import opening
from hornbeam.index.hashed_embedder import NAME, HashedEmbedder
from hornbeam.settings import Settings


@pytest.mark.parametrize("fingerprint", ["bfloat16-abc", "abc"])
@pytest.mark.parametrize("set_to", ["float32", "bfloat16"])
def test_vectors_are_asked_in_the_precision_in_which_they_were_made(
    fingerprint: str, set_to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(settings: Settings) -> str:
        return settings.embedder.dtype

    version: Any = SimpleNamespace(manifest={"embedder": {"name": "minilm", "fingerprint": fingerprint}})
    monkeypatch.setattr(opening, "open_embedder", opened)
    settings = Settings.model_validate({"embedder": {"dtype": set_to}})
    made_in = "bfloat16" if fingerprint.startswith("bfloat16") else "float32"
    assert opening.embedder_of(version, settings) == made_in


def test_hashed_vectors_are_asked_with_hashes() -> None:
    version: Any = SimpleNamespace(manifest={"embedder": {"name": NAME, "fingerprint": "0"}})
    assert isinstance(opening.embedder_of(version, Settings()), HashedEmbedder)
