"""Spans of requests and of a question's stages, and nothing where no collector is set."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from hornbeam.serve.tracing import Tracing
from support.serving import QUESTION, running, until

pytest.importorskip("opentelemetry.sdk")


def test_a_question_is_a_span_with_its_stages_in_the_caller_s_trace(index: Path) -> None:
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    trace = "0af7651916cd43dd8448eb211c80319c"
    headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    with running(index) as (url, server), httpx.Client(base_url=url, timeout=30) as client:
        server.tracing = Tracing(None, SimpleSpanProcessor(kept))
        client.post("/v1/papers/ask", json={"question": QUESTION}, headers=headers)
        until(lambda: len(kept.get_finished_spans()) == 3)
        spans = {span.name: span for span in kept.get_finished_spans()}
        assert set(spans) == {"POST /v1/{index}/ask", "retrieve", "answer"}
        request = spans["POST /v1/{index}/ask"]
        assert request.context is not None
        assert f"{request.context.trace_id:032x}" == trace
        assert request.attributes is not None
        assert request.attributes["http.response.status_code"] == 200
        assert request.attributes["hornbeam.index"] == "papers"
        for name in ("retrieve", "answer"):
            parent = spans[name].parent
            assert parent is not None
            assert parent.span_id == request.context.span_id
        first, last = spans["retrieve"], spans["answer"]
        assert first.start_time is not None
        assert first.end_time is not None
        assert last.start_time is not None
        assert first.start_time < first.end_time <= last.start_time
        assert not any(QUESTION in span.to_json() for span in spans.values())


def test_nothing_of_it_is_loaded_where_no_collector_is_set() -> None:
    code = (
        "import sys; from hornbeam.serve.tracing import Tracing; t = Tracing(None); "
        "assert t.begin({}) is None; t.end(None, {}); t.stages(None, []); t.close(); "
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
