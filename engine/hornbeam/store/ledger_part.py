"""What the parts of the ledger share: they are given its statements, so that its transactions hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any


class LedgerPart:
    """A part of an open ledger.

    Args:
        execute: a statement and its values → the rows.
        execute_many: a statement and its values, row by row.
    """

    def __init__(
        self,
        execute: Callable[[str, Sequence[Any]], list[tuple[Any, ...]]],
        execute_many: Callable[[str, Iterable[Sequence[Any]]], None],
    ) -> None:
        self._execute = execute
        self._execute_many = execute_many
