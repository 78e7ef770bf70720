"""What a command writes for people and for programs.

Names of files, texts of documents and answers of models go to terminals. Of what they contain only text gets
there: an escape sequence in a file name must not clear the screen, set its title or forge a line.
"""

from __future__ import annotations

import json
import re
import sys
from typing import IO, Any

#: Control characters but for the tabulator and the end of a line; what turns the direction of writing around
#: or ends a line unseen; halves of surrogate pairs, which no encoding has.
_UNSAFE = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]"
)
_HALVES = re.compile("[\\ud800-\\udfff]")
#: JSON allows these within its strings; terminals obey them.
_UNSAFE_IN_JSON = re.compile("[\\x7f-\\x9f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]")
_WRITTEN: list[bool] = []


def printable(text: str) -> str:
    """The text with what a terminal would obey written as Python would escape it."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def on_one_line(text: str) -> str:
    """`printable`, of a name that must not begin a line of its own."""
    return printable(text).replace("\n", "\\n")


def say(text: object = "", *, end: str = "\n", file: IO[str] | None = None, flush: bool = False) -> None:
    """`print`, of `printable` text; what the output's encoding lacks is escaped, too."""
    file = sys.stdout if file is None else file
    shown = printable(str(text))
    encoding = getattr(file, "encoding", None) or "utf-8"
    shown = shown.encode(encoding, "backslashreplace").decode(encoding)
    print(shown, end=end, file=file, flush=flush)


def print_json(document: Any) -> None:
    """One JSON document on standard output, valid in any encoding.

    Halves of surrogate pairs, which a command line that is no UTF-8 leaves, become U+FFFD.
    """
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    written = _HALVES.sub("\ufffd", json.dumps(document, ensure_ascii=False, indent=2))
    if encoding != "utf8":  # within strings alone, where escapes are allowed
        written = json.dumps(json.loads(written), indent=2)
    print(_UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", written), flush=True)
    _WRITTEN.append(True)


def has_written_json() -> bool:
    """Whether standard output has had its document already."""
    return bool(_WRITTEN)
