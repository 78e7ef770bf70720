"""Sentences of a text, and the run of them nearest to a question."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hornbeam.index.tokens import tokenise

if TYPE_CHECKING:
    import regex


@functools.cache
def _boundary() -> regex.Pattern[str]:
    import regex

    # After ". ! ?" a space must follow, and a capital, digit, quote or caseless letter, so that "e.g. it" or
    # "3.5" end nothing; nor does the stop after a form of address or an initial. CJK stops need no space.
    abbreviation = r"(?<!\b(?:[A-ZА-Я]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|No))"
    spaced_stop = r"[.!?…]+[\"'”’)\]]*\s+(?=[\p{Lu}\p{Lo}\p{N}\"'“‘(\[])"
    return regex.compile(rf"{abbreviation}{spaced_stop}|[。！？]+[」』”’）]*|\n+")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Character spans [start, end) of the sentences, in order, without the space around them."""
    spans = []
    start = 0
    for end in [*(match.end() for match in _boundary().finditer(text)), len(text)]:
        piece = text[start:end]
        if stripped := piece.strip():
            first = start + len(piece) - len(piece.lstrip())
            spans.append((first, first + len(stripped)))
        start = end
    return spans


def nearest_run(
    text: str,
    token_weights: Mapping[str, float],
    budget: int,
    count_tokens: Callable[[str], int],
) -> tuple[int, int] | None:
    """The run of consecutive sentences that fits the budget and says most about the question.

    Args:
        token_weights: the question's lexical tokens and their weights; a run is worth the sum over the
            distinct ones in it.
        budget: of `count_tokens`.

    Returns:
        a span [start, end) of `text`: of the runs of highest worth the longest, of those the first; None if
        no sentence fits.
    """
    spans = sentence_spans(text)
    tokens = [set(tokenise(text[start:end])) & token_weights.keys() for start, end in spans]
    best: tuple[float, int, int, int] | None = None
    last = 0
    for first in range(len(spans)):
        last = max(last, first)
        # Two pointers: the longest run from `first` never ends before the longest run from `first - 1`.
        while last < len(spans) and count_tokens(text[spans[first][0] : spans[last][1]]) <= budget:
            last += 1
        if last == first:
            continue
        worth = sum(token_weights[token] for token in set().union(*tokens[first:last]))
        run = (worth, spans[last - 1][1] - spans[first][0], -spans[first][0], spans[last - 1][1])
        best = run if best is None or run > best else best
    return None if best is None else (-best[2], best[3])
