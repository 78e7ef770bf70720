"""What an index holds and what it cost, from its ledger and its current version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hornbeam.cost.figures import Spent, cost_figures
from hornbeam.store.ledger import Ledger
from hornbeam.store.versions import current_version_id, read_version

#: Documents that are named with what they cost.
_DEAREST = 10


def index_status(index: Path, hour_price: float | None = None, currency: str = "USD") -> dict[str, Any]:
    """Documents, chunks by state, tokens and seconds over all runs, the current version and its figures.

    Args:
        hour_price: of the machine; None: the last run's, with its currency.

    Raises:
        StoreError: the directory is no index.
    """
    with Ledger(index, create=False, read_only=True) as ledger:
        counts = ledger.counts()
        usage = ledger.runs.usage()
        rejected = [{"path": path, "reason": reason} for path, reason in ledger.rejections()]
        last = ledger.runs.last_report()
        dearest, versions = ledger.runs.dearest_documents(_DEAREST), ledger.runs.versions()
        joules = ledger.runs.energy()
    report: dict[str, Any] = json.loads(last) if last else {}
    if hour_price is None:
        known = report.get("cost", {})
        hour_price, currency = known.get("gpu_hour_price"), known.get("currency", currency)
    spent = Spent(
        sum(row["seconds"] for row in usage.values()),
        documents=counts["documents"],
        chunks=counts["chunks"],
        tokens=sum(row["prompt"] + row["output"] for row in usage.values()),
        joules=joules,
    )
    version_id = current_version_id(index)
    version = read_version(index, version_id) if version_id else None
    return {
        "index": str(index),
        "version": version_id,
        "documents": {"indexed": counts["documents"], "rejected": rejected},
        "chunks": {"known": counts["chunks"], **report.get("chunks", {})},
        "counts": version.manifest["counts"] if version else {},
        "communities": version.manifest["communities"] if version else {},
        "tokens": {stage: row for stage, row in usage.items() if row["calls"]},
        "seconds": {stage: round(row["seconds"], 3) for stage, row in usage.items() if row["seconds"]},
        "tokens_per_second": report.get("tokens_per_second"),
        "cost": cost_figures(spent, hour_price, currency),
        "spent": {"documents": dearest, "versions": versions},
        "serving": report.get("serving"),
        "gates": version.manifest["gates"] if version else {},
        "model": version.manifest["model"] if version else {},
        "embedder": version.manifest["embedder"] if version else {},
    }
