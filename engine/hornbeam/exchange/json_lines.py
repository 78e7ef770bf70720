"""One JSON object a line: what it is, and its columns. For jq, pandas, or a loader of one's own."""

from __future__ import annotations

from pathlib import Path

import orjson
import pyarrow.parquet as pq

_KINDS = {
    "documents": "document",
    "chunks": "chunk",
    "entities": "entity",
    "mentions": "mention",
    "relations": "relation",
    "relation_evidence": "relation_evidence",
    "attributes": "attribute",
    "attribute_evidence": "attribute_evidence",
    "merges": "merge",
    "communities": "community",
    "community_members": "community_member",
}
_ROWS_AT_ONCE = 4096


def write_json_lines(directory: Path, target: Path) -> list[Path]:
    """Every row of every table as `{"kind": "entity", …}`, table by table."""
    with target.open("wb") as file:
        for table, kind in _KINDS.items():
            for batch in pq.ParquetFile(directory / "tables" / f"{table}.parquet").iter_batches(
                _ROWS_AT_ONCE
            ):
                for row in batch.to_pylist():
                    file.write(orjson.dumps({"kind": kind} | row, option=orjson.OPT_APPEND_NEWLINE))
    return [target]
