"""Reading a completion that a grammar shaped, also one that was cut short."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from hornbeam.llm.protocol import TokenScore

_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Item:
    """One complete `["a","b",…]` of a list."""

    fields: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]  # characters of the completion that each field takes, quotes included


def read_items(text: str, position: int = 0) -> tuple[list[Item], int, bool]:
    """The complete items of a JSON list whose opening bracket was read before `position`.

    Returns:
        items, the position behind the list's closing bracket (or where reading stopped), and whether the
        list was closed. An item that is cut short is left out.
    """
    items: list[Item] = []
    while position < len(text):
        if text[position] == "]":
            return items, position + 1, True
        start = position + 1 if text[position] == "," else position
        item = _read_item(text, start)
        if item is None:
            return items, position, False
        items.append(item[0])
        position = item[1]
    return items, position, False


def _read_item(text: str, position: int) -> tuple[Item, int] | None:
    fields: list[str] = []
    spans: list[tuple[int, int]] = []
    if not text.startswith("[", position):
        return None
    position += 1
    while True:
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, IndexError):
            return None
        fields.append(str(value))
        spans.append((position, end))
        if text.startswith(",", end):
            position = end + 1
        elif text.startswith("]", end):
            return Item(tuple(fields), tuple(spans)), end + 1
        else:
            return None


class SpanConfidence:
    """Geometric means of token probabilities over stretches of a completion.

    A token is looked up in the text rather than counted on: some tokenizers decode a lone token without the
    blank before it, and a special token has a text of its own that the completion leaves out.
    """

    def __init__(self, text: str, tokens: Sequence[TokenScore]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []  # a token without text is part of a character that a later one completes
        self._logprobs = [token.logprob for token in tokens]
        end = 0
        for token in tokens:
            self._starts.append(end)
            place = text.find(token.text, end, end + len(token.text) + 1)
            end = end if place < 0 else place + len(token.text)
            self._ends.append(max(end, self._starts[-1] + 1))

    def of(self, spans: Sequence[tuple[int, int]]) -> float:
        """exp(mean log-probability) of the tokens that overlap one of the spans, given in order; 1.0 without.

        Tokens that the grammar left no choice about have probability 1 and are part of the mean: they are
        part of what was said.
        """
        total, count, done = 0.0, 0, 0
        for left, right in spans:
            # Starts and ends ascend, so the tokens that overlap a span are neighbours.
            first = max(done, bisect_right(self._ends, left))
            done = max(done, bisect_left(self._starts, right))
            total += sum(self._logprobs[first:done])
            count += max(0, done - first)
        return math.exp(total / count) if count else 1.0

    def total(self, left: int, right: int) -> float:
        """Log-probability of the tokens that overlap [left, right): of what was chosen there as a whole."""
        return sum(self._logprobs[bisect_right(self._ends, left) : bisect_left(self._starts, right)])
