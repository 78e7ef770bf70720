"""The benchmark of a server, on an index small enough for a test."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from hornbeam.cli import app


def test_every_number_of_callers_is_measured_and_answered() -> None:
    done = CliRunner().invoke(
        app, ["bench", "serve", "--entities", "200", "--callers", "1,3", "--seconds", "0.3", "--json"]
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert [row["callers"] for row in report["search"]] == [1, 3]
    for row in report["search"]:
        assert row["statuses"] == {"200": row["requests"]}
        assert row["milliseconds"]["p50"] <= row["milliseconds"]["p99"]
        assert row["resident_mib"] > 0


@pytest.mark.parametrize("callers", ["0", "1,x"])
def test_callers_that_cannot_be(callers: str) -> None:
    assert CliRunner().invoke(app, ["bench", "serve", "--callers", callers]).exit_code == 2
