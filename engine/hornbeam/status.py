"""What an index holds and what it cost, from its ledger and its current version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hornbeam.store.ledger import Ledger
from hornbeam.store.versions import current_version_id, read_version


def index_status(index: Path) -> dict[str, Any]:
    """Documents, chunks by state, tokens and seconds over all runs, the current version and its figures.

    Raises:
        StoreError: the directory is no index.
    """
    with Ledger(index, create=False, read_only=True) as ledger:
        counts = ledger.counts()
        usage = ledger.runs.usage()
        rejected = [{"path": path, "reason": reason} for path, reason in ledger.rejections()]
        last = ledger.runs.last_report()
    report: dict[str, Any] = json.loads(last) if last else {}
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
        "cost": report.get("cost", {}),
        "serving": report.get("serving"),
        "gates": version.manifest["gates"] if version else {},
        "model": version.manifest["model"] if version else {},
        "embedder": version.manifest["embedder"] if version else {},
    }
