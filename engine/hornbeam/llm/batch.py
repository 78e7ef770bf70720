"""Run a stream of requests with a bounded number in flight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hornbeam.llm.protocol import Completion, LanguageModel, Request


def run_requests(model: LanguageModel, requests: Iterable[Request], window: int) -> Iterator[Completion]:
    """Completions as they finish, in any order; `requests` is consumed lazily."""
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
        yield from model.poll()
