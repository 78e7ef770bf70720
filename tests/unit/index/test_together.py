from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hornbeam.index.together import Together

PATIENCE_S = 30


def test_what_comes_while_it_is_busy_is_worked_off_together_in_order() -> None:
    batches: list[list[int]] = []
    begun, go_on = threading.Event(), threading.Event()

    def work(asked: Sequence[int]) -> list[int]:
        batches.append(list(asked))
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return [10 * one for one in asked]

    together = Together(work, most=3)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(together, 0)
        assert begun.wait(PATIENCE_S)
        others = []
        for number in range(1, 6):
            others.append(pool.submit(together, number))
            while len(together._waiting) < number:  # so that they come in this order
                threading.Event().wait(0.001)
        go_on.set()
        assert [one.result(PATIENCE_S) for one in (first, *others)] == [0, 10, 20, 30, 40, 50]
    assert batches == [[0], [1, 2, 3], [4, 5]]


def test_a_fault_is_that_of_its_caller_alone() -> None:
    def work(asked: Sequence[int]) -> list[int]:
        if 3 in asked:
            raise ValueError("three")
        return list(asked)

    together = Together(work, most=8)
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(together, number) for number in range(8)]
        for number, call in enumerate(calls):
            if number == 3:
                with pytest.raises(ValueError, match="three"):
                    call.result(PATIENCE_S)
            else:
                assert call.result(PATIENCE_S) == number
    assert together(9) == 9


@settings(max_examples=25, deadline=None)
@given(
    asked=st.lists(st.integers(-5, 5), min_size=1, max_size=60),
    threads=st.integers(1, 12),
    most=st.integers(1, 5),
)
def test_everybody_gets_what_was_asked_for(asked: list[int], threads: int, most: int) -> None:
    busy, sizes = threading.Lock(), list[int]()

    def work(some: Sequence[int]) -> list[str]:
        assert busy.acquire(blocking=False), "two threads at work"
        sizes.append(len(some))
        busy.release()
        return [str(one) for one in some]

    together = Together(work, most)
    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(together, asked)) == list(map(str, asked))
    assert sum(sizes) == len(asked)
    assert max(sizes) <= most
