from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
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
            while len(together._waiting) <= number:  # so that they come in this order
                threading.Event().wait(0.001)
        go_on.set()
        assert [one.result(PATIENCE_S) for one in (first, *others)] == [0, 10, 20, 30, 40, 50]
    assert batches == [[0], [1, 2, 3], [4, 5]]


class Panic(BaseException):
    """As native code raises it."""


def asked_together(work: Callable[[Sequence[int]], Sequence[int]]) -> list[int | BaseException]:
    """What 0 to 7 come to that are asked while 8 is worked off."""
    begun, go_on = threading.Event(), threading.Event()

    def held(asked: Sequence[int]) -> Sequence[int]:
        if not begun.is_set():
            begun.set()
            assert go_on.wait(PATIENCE_S)
        return work(asked)

    together = Together(held, most=8)
    found: dict[int, int | BaseException] = {}

    def ask(number: int) -> None:
        try:
            found[number] = together(number)
        except BaseException as error:  # noqa: BLE001 - it is looked at by the test
            found[number] = error

    threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in (8, *range(8))]
    for place, thread in enumerate(threads):
        thread.start()
        assert begun.wait(PATIENCE_S)
        while len(together._waiting) <= place:
            threading.Event().wait(0.001)
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(found) == list(range(9)), "some wait for ever"
    assert found.pop(8) == 8
    assert together(9) == 9
    assert not together._waiting
    return [found[number] for number in range(8)]


@pytest.mark.parametrize("kind", [ValueError, Panic])
def test_a_fault_is_that_of_its_caller_alone(kind: type[BaseException]) -> None:
    def work(asked: Sequence[int]) -> Sequence[int]:
        if 3 in asked:
            raise kind("three")
        return asked

    found = asked_together(work)

    assert isinstance(found[3], kind)
    assert found[:3] + found[4:] == [0, 1, 2, 4, 5, 6, 7]


def test_where_the_thread_at_work_is_interrupted_another_goes_on() -> None:
    interrupted: list[str] = []

    def work(asked: Sequence[int]) -> Sequence[int]:
        if 3 in asked and not interrupted:
            interrupted.append(threading.current_thread().name)
            raise KeyboardInterrupt
        return asked

    found = asked_together(work)

    faults = [one for one in found if isinstance(one, BaseException)]
    assert len(faults) == len(interrupted) == 1
    assert isinstance(faults[0], KeyboardInterrupt)


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
