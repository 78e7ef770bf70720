"""One thread for what is too small to be shared."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def one_thread() -> Iterator[None]:
    """OpenMP regions that the calling thread enters run on it alone: those of torch and faiss.

    A question's products have a dozen rows. Threads that are woken for each of them, and wait for each other,
    take longer than the products, and on a machine with other work several times as long. (Not by
    `torch.set_num_threads`: it throws away what oneDNN has prepared, which costs more than it saves.)
    """
    with _openmp().limit(limits=1, user_api="openmp"):
        yield


@functools.cache
def _openmp() -> Any:
    """Looked up once, when the libraries are loaded: it takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
