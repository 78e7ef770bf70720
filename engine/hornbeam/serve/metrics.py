"""What Prometheus reads: requests, stages of questions and searches, tokens, queues, gates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from hornbeam.answer.events import Event, EvidenceFound, Final, Used
from hornbeam.serve.admission import Admission
from hornbeam.store.versions import Version

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_PIECES = (0, 1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """Of one server; every one has its own registry."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Histogram(
            "hornbeam_request_seconds",
            "From the request to the end of its response",
            ("route", "method", "status"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._stages = Histogram(
            "hornbeam_stage_seconds",
            "Of questions and searches, by stage",
            ("index", "stage"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._tokens = Counter(
            "hornbeam_tokens",
            "Of the model; cached is part of prompt",
            ("index", "stage", "kind"),
            registry=registry,
        )
        self._evidence = Histogram(
            "hornbeam_evidence_pieces",
            "Found for a question",
            ("index",),
            buckets=_PIECES,
            registry=registry,
        )
        self._answers = Counter(
            "hornbeam_answers", "Questions, by how they ended", ("index", "outcome"), registry=registry
        )
        self._gates = Gauge(
            "hornbeam_gate_value", "Of the served version", ("index", "gate"), registry=registry
        )
        self._building = {
            what: Gauge(
                f"hornbeam_build_{what}",
                f"{said}, of a build under way",
                ("index", "stage"),
                registry=registry,
            )
            for what, said in (
                ("rate", "Units a second"),
                ("done", "Units of the stage that are done"),
                ("total", "Units of the stage, where it is known"),
            )
        }
        self._switches = Counter(
            "hornbeam_version_switches", "Readers that took another version", ("index",), registry=registry
        )

    def watch(self, name: str, admission: Admission) -> None:
        """Gauges of a queue, read when they are asked for."""
        waiting = Gauge(f"hornbeam_{name}_waiting", f"{name} in the queue", registry=self._registry)
        waiting.set_function(lambda: admission.waiting)
        at_work = Gauge(f"hornbeam_{name}_at_work", f"{name} under way", registry=self._registry)
        at_work.set_function(lambda: admission.at_work)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).observe(seconds)

    def stages(self, index: str, milliseconds: Mapping[str, float]) -> None:
        for stage, spent in milliseconds.items():
            self._stages.labels(index, stage).observe(spent / 1000)

    def answered(self, index: str, events: list[Event]) -> None:
        """A question's events, all of them or until it was given up."""
        pieces = 0
        for event in events:
            match event:
                case EvidenceFound(evidence=evidence):
                    pieces += len(evidence)
                case Used(tokens=tokens, milliseconds=milliseconds):
                    self.stages(index, milliseconds)
                    for stage, used in tokens.items():
                        for kind in ("prompt", "cached", "output"):
                            self._tokens.labels(index, stage, kind).inc(getattr(used, kind))
                case _:
                    pass
        self._evidence.labels(index).observe(pieces)
        self._answers.labels(index, _outcome(events[-1] if events else None)).inc()

    def serves(self, index: str, version: Version, *, switched: bool) -> None:
        for name, gate in version.manifest.get("gates", {}).items():
            self._gates.labels(index, name).set(gate["value"])
        if switched:
            self._switches.labels(index).inc()

    def building(self, stages: Mapping[str, Mapping[str, Any]]) -> None:
        """Args: stages: by index, the newest line of its build's progress, of those with one under way."""
        for what, gauge in self._building.items():
            gauge.clear()
            for index, line in stages.items():
                if line.get(what) is not None:
                    gauge.labels(index, line["stage"]).set(line[what])

    def text(self) -> bytes:
        return generate_latest(self._registry)


def _outcome(last: Event | None) -> str:
    if not isinstance(last, Final):
        return "given up"
    if last.out_of_time:
        return "out of time"
    return "rejected" if last.rejected else "answered"
