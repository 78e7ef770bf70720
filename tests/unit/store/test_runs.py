from collections.abc import Iterator
from pathlib import Path

import pytest

from hornbeam.store.ledger import Ledger
from hornbeam.store.runs import Runs


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    with Ledger(tmp_path, create=True) as opened:
        yield opened.runs


def test_usage_adds_up_within_a_run_and_over_runs(runs: Runs) -> None:
    first, second = runs.start(), runs.start()
    runs.add_usage(first, "entities", calls=1, prompt=100, cached=40, output=10)
    runs.add_usage(first, "entities", calls=2, prompt=200, cached=80, output=20, seconds=1.5)
    runs.add_usage(second, "entities", calls=4, output=5)
    runs.add_usage(second, "read", seconds=2.0)

    assert runs.usage(first) == {
        "entities": {"calls": 3, "prompt": 300, "cached": 120, "output": 30, "seconds": 1.5}
    }
    assert runs.usage()["entities"]["calls"] == 7
    assert runs.usage()["read"]["seconds"] == 2.0


def test_the_last_report_is_that_of_the_last_run_that_finished(runs: Runs) -> None:
    assert runs.last_report() is None
    first = runs.start()
    runs.finish(first, "v1", "the report")
    runs.start()  # and it was stopped

    assert runs.last_report() == "the report"
