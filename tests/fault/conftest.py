import multiprocessing
import os
from collections.abc import Iterator
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def forks() -> Iterator[ForkServerContext]:
    """Children that start with everything imported, from a process that has run nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["support.interrupted_build"])
    before = os.environ.get("PYTHONPATH")
    # The server of Python 3.11 preloads with its own path.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parents[1]), *([before] if before else [])]
    )
    yield context
    if before is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = before
