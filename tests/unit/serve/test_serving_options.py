"""What `serve` and `keys` refuse before they begin."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from hornbeam.commands.serving import _origin
from hornbeam.errors import UsageError
from hornbeam.serve.keys import KeyRing


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("https://example.org", "https://example.org"),
        ("https://Example.org/", "https://example.org"),
        ("https://example.org:443", "https://example.org"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_an_origin_is_compared_as_browsers_send_it(given: str, sent: str) -> None:
    assert _origin(given) == sent


@pytest.mark.parametrize(
    "given",
    [
        "", "foo", "*", "null", "example.org", "//example.org", "ftp://example.org", "https://",
        "https://example.org/app", "https://example.org?x=1", "https://me@example.org", "http://a b",
        "https://example.org:port", "https://example.org:99999", "https://*.example.org",
    ],
)  # fmt: skip
def test_what_is_no_origin_is_refused(given: str) -> None:
    with pytest.raises(typer.BadParameter, match="is no origin"):
        _origin(given)


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "\x1b[2J"])
def test_a_key_without_a_name_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="needs a name"):
        KeyRing(tmp_path / "keys.json").add(name, ["*"], [])
    assert not (tmp_path / "keys.json").exists()
