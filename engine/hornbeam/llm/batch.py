"""Run a stream of requests with a bounded number in flight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hornbeam.llm.protocol import Completion, LanguageModel, Request


def run_batches(model: LanguageModel, requests: Iterable[Request], window: int) -> Iterator[list[Completion]]:
    """What each poll brings, in any order; `requests` is consumed lazily.

    Nothing is submitted and nothing waited for while the caller has a batch: it can be made durable first.
    """
    source = iter(requests)
    exhausted = False
    while True:
        while not exhausted and model.in_flight < window:
            request = next(source, None)
            if request is None:
                exhausted = True
            else:
                model.submit(request)
        if not model.in_flight:
            return
        yield model.poll()


def run_requests(model: LanguageModel, requests: Iterable[Request], window: int) -> Iterator[Completion]:
    """Completions as they finish, in any order; `requests` is consumed lazily."""
    for batch in run_batches(model, requests, window):
        yield from batch
