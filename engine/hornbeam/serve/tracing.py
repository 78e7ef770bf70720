"""OpenTelemetry, where `serve.traces` names a collector; else nothing of it is loaded and nothing is sent.

A span for every request, below it one for each stage of its question, from when the stage's events came:

    retrieve       up to the first evidence
    plan           from there to the plan, where the engine makes one
    sub_question   of each of the plan's
    answer         from its first word to the end

No span holds a question, an answer or a name of a document.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hornbeam.answer.events import (
    AnswerText,
    Event,
    EvidenceFound,
    Final,
    Planned,
    SubQuestionFinished,
    SubQuestionStarted,
)
from hornbeam.errors import UsageError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span

#: Name, start and end in nanoseconds of Unix time.
Stage = tuple[str, int, int]


class Tracing:
    """
    Args:
        endpoint: of a collector, OTLP over HTTP, e.g. http://localhost:4318/v1/traces.
        processor: in its place, for tests.

    Raises:
        UsageError: an endpoint is set and the extra `telemetry` is not installed.
    """

    def __init__(self, endpoint: str | None, processor: SpanProcessor | None = None) -> None:
        self._provider: Any = None
        if endpoint is None and processor is None:
            return
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ModuleNotFoundError as error:
            raise UsageError(
                f"serve.traces needs {error.name}, which is not installed; "
                "run \"pip install 'hornbeam[telemetry]'\""
            ) from error
        self._provider = TracerProvider(resource=Resource.create({"service.name": "hornbeam"}))
        self._provider.add_span_processor(
            processor or BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint))
        )

    def begin(self, headers: Mapping[str, str]) -> Span | None:
        """The span of a request, part of the caller's trace if its headers name one."""
        if self._provider is None:
            return None
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        span: Span = self._provider.get_tracer("hornbeam.serve").start_span(
            "request", context=extract(dict(headers)), kind=SpanKind.SERVER
        )
        return span

    def end(self, span: Span | None, line: Mapping[str, Any]) -> None:
        """Args: line: as the log has it."""
        if span is None:
            return
        from opentelemetry.trace import Status, StatusCode

        span.update_name(f"{line['method']} {line['route']}")
        span.set_attributes(
            {
                "http.request.method": line["method"],
                "http.route": line["route"],
                "http.response.status_code": line["status"],
                "hornbeam.request_id": line["request"],
                **({"hornbeam.index": line["index"]} if line["index"] is not None else {}),
            }
        )
        if line["status"] >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def stages(self, span: Span | None, stages: Sequence[Stage]) -> None:
        """Below a request's span, which may have ended."""
        if span is None:
            return
        from opentelemetry.trace import set_span_in_context

        tracer, within = self._provider.get_tracer("hornbeam.serve"), set_span_in_context(span)
        for name, started, ended in stages:
            tracer.start_span(name, context=within, start_time=started).end(ended)

    def close(self) -> None:
        """Send what is left."""
        if self._provider is not None:
            self._provider.shutdown()


def stages_of(started: int, events: Sequence[tuple[int, Event]]) -> list[Stage]:
    """
    Args:
        started: when the question began to be answered.
        events: each with when it came; nanoseconds.
    """
    found: list[Stage] = []
    parts: dict[int, int] = {}
    evidence = words = 0
    for at, event in events:
        match event:
            case EvidenceFound() if not evidence:
                evidence = at
                found.append(("retrieve", started, at))
            case Planned():
                found.append(("plan", evidence or started, at))
            case SubQuestionStarted(number=number):
                parts[number] = at
            case SubQuestionFinished(number=number) if number in parts:
                found.append(("sub_question", parts.pop(number), at))
            case AnswerText() if not words:
                words = at
            case Final() if words:
                found.append(("answer", words, at))
            case _:
                pass
    return found


def now() -> int:
    return time.time_ns()
