"""Which pieces of all that was found the answer is written from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest

from hornbeam.retrieve.evidence import Evidence


def choose_pieces(
    first: Sequence[Evidence],
    cited: Sequence[Evidence],
    others: Sequence[Sequence[Evidence]],
    tokens: int,
    count_tokens: Callable[[str], int],
) -> list[Evidence]:
    """Pieces within a token budget, each once.

    Half of the budget is for what was found for the question itself, so that no later search, however wrong,
    drives all of it out. Then come what sub-answers rest on, and the best of every search in turn.

    Args:
        first: found for the question, best first.
        cited: by sub-answers.
        others: found by each later search, best first.
    """
    chosen: dict[int, Evidence] = {}
    left = tokens

    def add(pieces: Iterator[Evidence], floor: int) -> None:
        nonlocal left
        for piece in pieces:
            cost = count_tokens(piece.text)
            if piece.label not in chosen and (left - cost >= floor or not chosen):
                chosen[piece.label] = piece
                left -= cost

    add(iter(first), tokens // 2)
    add(iter(cited), 0)
    in_turn = chain.from_iterable(zip_longest(*others, first))
    add((piece for piece in in_turn if piece is not None), 0)
    return list(chosen.values())
