"""What `hornbeam index` says at the end; DESIGN §9."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from hornbeam.cost.figures import Spent, cost_figures
from hornbeam.pipeline.extraction import ExtractionReport
from hornbeam.pipeline.finished import all_passed
from hornbeam.pipeline.proposing import ProposingReport
from hornbeam.pipeline.reading import ReadingReport
from hornbeam.records import ChunkState
from hornbeam.settings import CostSettings
from hornbeam.store.versions import Version

#: Chunks that lost something, named in the report; the table `chunks` has them all.
_NAMED_CHUNKS = 20
#: Stages of a run in which the model generates.
_GENERATING = ("extract", "summarise")


@dataclass(slots=True)
class BuildReport:
    #: seen = indexed + unchanged + duplicates + rejected; and removed: records gone from their files
    documents: dict[str, Any] = field(default_factory=dict)
    #: total = done + degraded + failed; reused: not asked in this run; reused_from_parent: whose result an
    #: older version of the schema gave; reasons: chunks by what they lost; rungs: chunks by what was tried
    #: beyond one call a stage; states: chunks by all three; lost: some chunks; dropped: items in answers of
    #: this run that a grammar would have ruled out
    chunks: dict[str, Any] = field(default_factory=dict)
    entities: int = 0
    relations: int = 0
    attributes: int = 0
    communities: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, dict[str, int]] = field(default_factory=dict)  # of this run, by stage
    seconds: dict[str, float] = field(default_factory=dict)  # of this run, by stage
    tokens_per_second: float = 0.0  # generated, while the model was generating
    cost: dict[str, Any] = field(default_factory=dict)  # of this run
    proposals: dict[str, Any] | None = None  # types that the schema lacks; None: not asked for
    #: of each stage that asked the model: seconds without its start, those in which it had nothing to do
    model_time: dict[str, dict[str, float]] = field(default_factory=dict)
    serving: dict[str, Any] | None = None  # what the model's servers enforce and did; None: there is none
    gates: dict[str, dict[str, Any]] = field(default_factory=dict)
    version: str | None = None
    promoted: bool = False
    unchanged: bool = False  # the version existed already

    @property
    def exit_code(self) -> int:
        """0 done, 1 done with degraded, failed, rejected or unnamed items, 3 a gate refused."""
        if not all(gate["passed"] for gate in self.gates.values()):
            return 3
        lost = self.chunks.get("degraded", 0) + self.chunks.get("failed", 0)
        unasked = self.proposals is not None and self.proposals["failed"]
        rejected = self.documents.get("rejected")
        return 1 if lost or rejected or unasked or self.communities.get("unnamed") else 0

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"exit_code": self.exit_code}


def make_report(
    *,
    reading: ReadingReport,
    extraction: ExtractionReport,
    inherited: int,
    version: Version,
    unchanged: bool,
    usage: dict[str, dict[str, Any]],
    seconds: dict[str, float],
    cost: CostSettings,
    proposing: ProposingReport | None = None,
    serving: dict[str, Any] | None = None,
    joules: float | None = None,
    model_time: dict[str, dict[str, float]] | None = None,
) -> BuildReport:
    """
    Args:
        inherited: chunks whose result an older version of the schema gave.
        usage: calls and tokens of this run by stage.
        seconds: of this run by stage.
        joules: of the GPUs in this run; None: unknown.
    """
    counts = version.manifest["counts"]
    tokens = {
        stage: {name: int(row[name]) for name in ("calls", "prompt", "cached", "output")}
        for stage, row in usage.items()
        if row["calls"]
    }
    output = sum(row["output"] for row in tokens.values())
    busy = sum(seconds.get(stage, 0.0) for stage in _GENERATING)
    spent = Spent(
        sum(seconds.values()),
        documents=reading.indexed,
        chunks=extraction.total - extraction.reused,
        tokens=output + sum(row["prompt"] for row in tokens.values()),
        joules=joules,
    )
    return BuildReport(
        documents=dataclasses.asdict(reading),
        chunks=_chunk_states(version)
        | {
            "reused": extraction.reused,
            "reused_from_parent": inherited,
            "dropped": extraction.dropped,
        },
        entities=counts["entities"],
        relations=counts["relations"],
        attributes=counts["attributes"],
        communities=version.manifest["communities"],
        tokens=tokens,
        seconds={stage: round(value, 3) for stage, value in seconds.items()},
        tokens_per_second=round(output / busy, 1) if busy else 0.0,
        cost=cost_figures(spent, cost.gpu_hour_price, cost.currency),
        proposals=proposing.to_json() if proposing else None,
        serving=serving,
        model_time=model_time or {},
        gates=version.manifest["gates"],
        version=version.version_id,
        promoted=all_passed(version),
        unchanged=unchanged,
    )


def _chunk_states(version: Version) -> dict[str, Any]:
    """Counted in the version's own tables, not on the way there."""
    import duckdb

    with duckdb.connect() as connection:
        for table in ("chunks", "documents"):
            path = str(version.directory / "tables" / f"{table}.parquet").replace("'", "''")
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{path}')")
        by_state = dict(connection.execute("SELECT state, count(*) FROM chunks GROUP BY state").fetchall())
        reasons, rungs = (
            dict(
                connection.execute(
                    f"SELECT unnest(string_split({column}, ',')) AS one, count(*) FROM chunks "
                    f"WHERE {column} <> '' GROUP BY one ORDER BY one"
                ).fetchall()
            )
            for column in ("reason", "rungs")
        )
        counted = connection.execute(
            "SELECT state, reason, rungs, count(*) FROM chunks GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        lost = connection.execute(
            'SELECT c.chunk_id, d.source, c.start, c."end", c.state, c.reason FROM chunks c '
            "JOIN documents d USING (document_id) WHERE c.state <> ? ORDER BY c.chunk_id LIMIT ?",
            [ChunkState.DONE.value, _NAMED_CHUNKS],
        ).fetchall()
    states = (ChunkState.DONE, ChunkState.DEGRADED, ChunkState.FAILED)
    columns = ("chunk_id", "source", "start", "end", "state", "reason")
    return {
        "total": sum(by_state.values()),
        **{state.value: int(by_state.get(state.value, 0)) for state in states},
        "reasons": reasons,
        "rungs": rungs,
        "states": [
            {"state": state, "reasons": _listed(why), "rungs": _listed(tried), "chunks": chunks}
            for state, why, tried, chunks in counted
        ],
        "lost": [dict(zip(columns, row, strict=True)) for row in lost],
    }


def _listed(names: str) -> list[str]:
    return names.split(",") if names else []
