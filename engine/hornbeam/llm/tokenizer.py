"""A model directory's tokenizer, usable without starting the model (and without importing torch)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from hornbeam.errors import ModelError

#: Counts that are kept, of texts of so many characters at most.
_COUNTS, _COUNTED_AGAIN = 4096, 4096


class DirectoryTokenizer:
    """The fast tokenizer (`tokenizer.json`) of a Hugging Face model directory."""

    def __init__(self, directory: Path) -> None:
        from tokenizers import Tokenizer

        path = directory / "tokenizer.json"
        if not path.is_file():
            raise ModelError(f"{directory} holds no tokenizer.json; name a Hugging Face model directory")
        try:
            self._tokenizer: Any = Tokenizer.from_file(str(path))
        except Exception as error:  # the Rust binding raises it bare
            raise ModelError(f"{path} is not a readable tokenizer: {error}") from error
        self.directory = directory
        # A chunk's text is counted when it is cut and again when its list of entities is given a length.
        self._count_again = lru_cache(_COUNTS)(lambda text: len(self.encode(text)))
        # Some chat formats have markers that are not declared special, such as <｜User｜>.
        special = [
            token.content
            for token in self._tokenizer.get_added_tokens_decoder().values()
            if token.special or "|" in token.content or "｜" in token.content
        ]
        self._special = re.compile("|".join(map(re.escape, sorted(special, key=len, reverse=True))) or "(?!)")
        self._compiled: Any = None  # the chat template, once it was needed

    def encode(self, text: str) -> list[int]:
        """Token ids; special tokens written in `text` are recognised, none is added."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decoder(self) -> Callable[[int], str]:
        """For the ids of one text in turn: what each adds to it, "" where a character is not complete or the
        token is special."""
        from tokenizers.decoders import DecodeStream

        stream: Any = DecodeStream(skip_special_tokens=True)
        return lambda token_id: str(stream.step(self._tokenizer, token_id) or "")

    def count(self, text: str) -> int:
        return self._count_again(text) if len(text) <= _COUNTED_AGAIN else len(self.encode(text))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return spans

    def neutralise(self, text: str) -> str:
        """`text` with every special token broken by a space, so that a document cannot end its own turn."""
        return self._special.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)

    def chat_prompt(self, system: str, user: str) -> str:
        """One turn in the directory's chat template, open for the assistant; plain text if it has none."""
        if self._compiled is None:
            self._compiled = self._compile()
        if isinstance(self._compiled, str):
            return f"{system}\n\n{user}\n\n"
        import jinja2

        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        try:
            return self._render(self._compiled, messages)
        except jinja2.TemplateError:
            # Some templates refuse a system turn; the instructions then open the user's.
            merged = [{"role": "user", "content": f"{system}\n\n{user}"}]
            try:
                return self._render(self._compiled, merged)
            except jinja2.TemplateError as error:
                raise self._template_fails(error) from error

    def _render(self, template: Any, messages: list[dict[str, str]]) -> str:
        rendered: str = template.render(messages=messages, add_generation_prompt=True, enable_thinking=False)
        return rendered

    def _compile(self) -> Any:
        """The chat template, made ready; "" where there is none."""
        source = self._chat_template()
        if not source:
            return ""
        import jinja2.sandbox

        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = _raise
        config = _read_json(self.directory / "tokenizer_config.json")
        tokens = {
            name: value["content"] if isinstance(value, dict) else value or ""
            for name, value in config.items()
            if name in {"bos_token", "eos_token", "pad_token", "unk_token"}
        }
        try:
            return environment.from_string(source, globals=tokens)
        except jinja2.TemplateError as error:
            raise self._template_fails(error) from error

    def _template_fails(self, error: Exception) -> ModelError:
        return ModelError(f"the chat template of {self.directory} fails: {error}")

    def _chat_template(self) -> str:
        path = self.directory / "chat_template.jinja"
        if path.is_file():
            return path.read_text("utf-8")
        found = _read_json(self.directory / "tokenizer_config.json").get("chat_template", "")
        if isinstance(found, list):  # several named templates
            found = next((item["template"] for item in found if item.get("name") == "default"), "")
        return str(found or "")


def directory_fingerprint(directory: Path) -> str:
    """SHA-256 that tells models apart without reading gigabytes.

    Small files count whole; of a weights file its size and 64 KiB at 64 places, the first and last included.
    """
    digest = hashlib.sha256()
    names = (".json", ".safetensors", ".bin", ".jinja", ".model", ".txt")
    for path in sorted(p for p in directory.iterdir() if p.is_file() and p.suffix in names):
        size = path.stat().st_size
        digest.update(f"{path.name}:{size}:".encode())
        with path.open("rb") as file:
            if size <= 64 << 20 and path.suffix not in (".safetensors", ".bin"):
                digest.update(file.read())
                continue
            block = 64 << 10
            for place in range(64):
                file.seek(max(0, (size - block)) * place // 63)
                digest.update(file.read(block))
    return digest.hexdigest()


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    loaded = json.loads(path.read_text("utf-8"))
    return loaded if isinstance(loaded, dict) else {}


def _raise(message: str) -> None:
    import jinja2

    raise jinja2.TemplateError(message)
