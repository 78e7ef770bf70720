"""A build that stops itself in the middle, for a child process.

Loaded once by the fork server: everything heavy is imported here, so that a child costs no start.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any

import bm25s  # noqa: F401
import duckdb  # noqa: F401
import faiss  # noqa: F401
import pyarrow.parquet  # noqa: F401
import scipy.sparse  # noqa: F401
import sklearn.cluster  # noqa: F401

import hornbeam.index.build
import hornbeam.organise.communities
import hornbeam.organise.tree
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.pipeline import publishing
from hornbeam.resolve import consolidate
from hornbeam.resolve.staged_parts import StagedParts
from hornbeam.store import segments, versions
from hornbeam.store.ledger import Ledger
from hornbeam.store.runs import Runs
from support.building import build, update, walker, walking_settings
from support.walker import vocabulary

#: Few chunks at once, one answer a poll: many moments to stop at.
SETTINGS = walking_settings(extract={"window": 4})
ANSWERS_PER_POLL = 1
#: A segment from three results on, so that a small build seals many times.
SEAL_ROWS = 3

#: In place of one moment: all of them, and every poll.
ANY = "any"

_SEAL = Ledger.seal
vocabulary(embedded_model_directory())  # cached, and inherited by every child


def seal_often() -> None:
    """Patch the ledger of this process."""
    Ledger.seal = lambda self, *, rows=SEAL_ROWS, size=1 << 20: _SEAL(self, rows=SEAL_ROWS)  # type: ignore[method-assign]


#: name → (object, attribute): a call of it is a moment to stop at, before or after it does its work.
MOMENTS: dict[str, tuple[Any, str]] = {
    "a document's source is written": (Ledger, "add_source"),
    "a result is put, not yet committed": (Ledger, "put"),
    "a segment is written": (segments, "sync_file"),
    "a segment is renamed": (segments, "sync_directory"),
    "pointers go in, journal rows out": (Ledger, "_run_many"),
    "a table is written": (consolidate, "write_query"),
    "staged rows are kept": (StagedParts, "add"),
    "communities are found": (hornbeam.organise.communities, "find_communities"),
    "community tables are written": (hornbeam.organise.tree, "write_community_tables"),
    "vectors are written": (hornbeam.index.build, "write_vectors"),
    "gates are evaluated": (publishing, "evaluate_gates"),
    "the version's files are synced": (versions, "sync_file"),
    "the version has its name": (publishing, "publish_version"),
    "the version is promoted": (publishing, "promote"),
    "the run is finished": (Runs, "finish"),
}


def run_and_stop(
    index: Path,
    paths: list[Path],
    moment: str | None,
    when: str,
    number: int,
    stop_signal: signal.Signals,
    calls: Synchronized[int],
    peak: Synchronized[int],
    moments: Synchronized[int],
) -> None:
    """Build, and send this process `stop_signal` at a moment.

    Args:
        paths: to build from; none: update the index.
        moment: one of `MOMENTS`; None: at the beginning of a poll of the model; `ANY`: all of these.
        when: "before" or "after" the call that the moment is.
        number: which of these moments, 1-based; a build that has fewer ends undisturbed.
        calls: where the number of calls made so far is left.
        peak: and the most that were in flight at once.
        moments: and the number of moments that came.
    """
    seal_often()
    # A shell starts background jobs with the signal ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seen = 0

    def at_moment() -> None:
        nonlocal seen
        seen += 1
        moments.value = seen
        if seen == number:
            os.kill(os.getpid(), stop_signal)

    def before_poll() -> None:
        calls.value, peak.value = model.calls, model.peak
        if moment in (None, ANY):
            at_moment()

    model = walker(per_poll=ANSWERS_PER_POLL, before_poll=before_poll)
    for owner, name in MOMENTS.values() if moment == ANY else [MOMENTS[moment]] if moment else []:
        setattr(owner, name, _stopping(getattr(owner, name), at_moment, when))
    if paths:
        build(index, paths, model=model, settings=SETTINGS)
    else:
        update(index, model=model, settings=SETTINGS)
    calls.value, peak.value = model.calls, model.peak


def _stopping(function: Callable[..., Any], at_moment: Callable[[], None], when: str) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **options: Any) -> Any:
        if when == "before":
            at_moment()
        result = function(*arguments, **options)
        if when == "after":
            at_moment()
        return result

    return wrapped
