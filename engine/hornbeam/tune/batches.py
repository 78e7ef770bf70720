"""Training examples as token ids, in batches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hornbeam.llm.tokenizer import DirectoryTokenizer
from hornbeam.tune.examples import TrainingExample

#: Sequences that are sorted by length together: enough that a batch holds like ones, few enough that its
#: content stays random.
_SORTED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Sample:
    """
    Args:
        ids: prompt and answer.
        learnt: places in `ids` that the model is to predict, ascending.
    """

    ids: tuple[int, ...]
    learnt: tuple[int, ...]
    set_name: str


def sample(example: TrainingExample, tokenizer: DirectoryTokenizer) -> Sample:
    """A token counts as learnt where any of its characters is to be written by the model."""
    prompt = tokenizer.encode(example.prompt)
    answer = "".join(piece.text for piece in example.answer)
    learnt_places: list[tuple[int, int]] = []
    position = 0
    for piece in example.answer:
        if piece.learnt:
            learnt_places.append((position, position + len(piece.text)))
        position += len(piece.text)
    ids = tokenizer.encode(answer)
    learnt = [
        len(prompt) + number
        for number, (start, end) in enumerate(tokenizer.offsets(answer))
        if any(start < right and left < end for left, right in learnt_places)
    ]
    return Sample((*prompt, *ids), tuple(learnt), example.set_name)


def batches(
    samples: Sequence[Sample], tokens_at_once: int, chance: random.Random | None = None
) -> Iterator[list[Sample]]:
    """Every sample once, in batches of at most so many tokens, padding included, or of one sample.

    Args:
        chance: of the order; None: as they are.
    """
    order = list(samples)
    if chance is not None:
        chance.shuffle(order)
    for start in range(0, len(order), _SORTED_AT_ONCE):
        some = sorted(order[start : start + _SORTED_AT_ONCE], key=lambda one: len(one.ids))
        made: list[list[Sample]] = []
        for one in some:
            if made and (len(made[-1]) + 1) * len(one.ids) <= tokens_at_once:
                made[-1].append(one)
            else:
                made.append([one])
        if chance is not None:
            chance.shuffle(made)
        yield from made
