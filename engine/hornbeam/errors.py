"""The exceptions a caller may see.

HornbeamError            one line: what is wrong, where, what to do    exit code 4
├── UsageError           a flag, setting or path is wrong              exit code 2
├── SchemaError          a schema file is not usable                   exit code 2
├── StoreError           the index directory is missing or unusable    exit code 4
│   └── UnknownVersion   a version id that the index does not have     exit code 2
├── ModelError           the language model or embedder is not usable  exit code 4
├── Interrupted          the user stopped the run; nothing is lost     exit code 1
└── GateRefused          what was made did not pass its quality gates  exit code 3
"""

from __future__ import annotations

from typing import ClassVar


class HornbeamError(Exception):
    """Base of all errors that are the user's to read; the message is one complete line."""

    exit_code: ClassVar[int] = 4


class UsageError(HornbeamError):
    exit_code = 2


class SchemaError(HornbeamError):
    exit_code = 2


class GateRefused(HornbeamError):
    exit_code = 3


class StoreError(HornbeamError):
    """The index directory is missing, locked, of another format or damaged."""


class UnknownVersion(StoreError):
    """No version of the index has this id."""

    exit_code = 2


class ModelError(HornbeamError):
    """The language model or the embedder cannot be found, started or reached."""


class Interrupted(HornbeamError):
    """The run stopped where the user asked it to; the next one goes on from there."""

    exit_code = 1


def reason(error: BaseException) -> str:
    """What an error of the system or of a library says, on one line, without its own wrapping."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 text (byte {error.start})"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    said = " ".join(str(error).split()) or type(error).__name__
    if "set_int_max_str_digits" in said:  # advice to programmers
        return "a number of more digits than are read"
    return said
