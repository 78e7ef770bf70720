"""Quality gates: figures recomputed from a version's files that decide whether readers get to see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hornbeam.schema.model import GraphSchema
from hornbeam.settings import GateSettings
from hornbeam.store.schema_tables import create_schema_tables
from hornbeam.store.table_files import open_tables


@dataclass(frozen=True, slots=True)
class Gate:
    name: str
    value: float
    threshold: float
    passed: bool
    offenders: tuple[str, ...] = ()  # a few examples

    def to_json(self) -> dict[str, Any]:
        report: dict[str, Any] = {"value": self.value, "threshold": self.threshold, "passed": self.passed}
        return report | ({"offenders": list(self.offenders)} if self.offenders else {})


def evaluate_gates(
    directory: Path,
    schema: GraphSchema,
    settings: GateSettings,
    stores: Mapping[str, str],
    verified: bool = False,
) -> list[Gate]:
    """All gates of a version directory, in SQL over its Parquet files.

    Args:
        stores: what is wrong with each derived store (`index.consistency.check_stores`); "" for nothing.
        verified: facts were asked about; how many without an answer is then a gate.
    """
    with open_tables(directory) as connection:
        create_schema_tables(connection, schema)
        gates = [_none_allowed(connection, name, sql) for name, sql in OFFENCES.items()]
        gates += [_share(connection, name, *sql) for name, sql in SHARES.items()]
        gates += [
            _at_most(connection, "degraded_chunks", "degraded", settings.max_degraded_chunks),
            _at_most(connection, "failed_chunks", "failed", settings.max_failed_chunks),
            *([_unverified(connection, settings.max_unverified_facts)] if verified else []),
            _compression(connection),
            _store_consistency(stores),
        ]
    return gates


#: Each query lists what may not exist.
OFFENCES = {
    "schema_violations": """
        SELECT entity_id FROM entities WHERE type NOT IN (SELECT name FROM entity_types)
        UNION ALL
        SELECT r.relation_id FROM relations r JOIN entities h ON h.entity_id = r.head_id
        JOIN entities t ON t.entity_id = r.tail_id
        ANTI JOIN allowed_relations a ON a.type = r.type AND a.head = h.type AND a.tail = t.type
        UNION ALL
        SELECT x.attribute_id FROM attributes x JOIN entities e USING (entity_id)
        ANTI JOIN allowed_attributes a ON a.type = x.type AND a.owner = e.type""",
    "dangling_edges": """
        SELECT relation_id FROM relations ANTI JOIN entities ON entity_id = head_id
        UNION ALL
        SELECT relation_id FROM relations ANTI JOIN entities ON entity_id = tail_id
        UNION ALL
        SELECT attribute_id FROM attributes ANTI JOIN entities USING (entity_id)
        UNION ALL
        SELECT entity_id FROM mentions ANTI JOIN entities USING (entity_id)
        UNION ALL
        SELECT relation_id FROM relation_evidence ANTI JOIN relations USING (relation_id)
        UNION ALL
        SELECT relation_id FROM relation_evidence ANTI JOIN chunks USING (chunk_id)
        UNION ALL
        SELECT attribute_id FROM attribute_evidence ANTI JOIN attributes USING (attribute_id)
        UNION ALL
        SELECT attribute_id FROM attribute_evidence ANTI JOIN chunks USING (chunk_id)
        UNION ALL
        SELECT entity_id FROM community_members ANTI JOIN entities USING (entity_id)
        UNION ALL
        SELECT community_id FROM community_members ANTI JOIN communities USING (community_id)
        UNION ALL
        SELECT merge_id FROM merges ANTI JOIN entities USING (entity_id)
        UNION ALL
        SELECT merge_id FROM merges ANTI JOIN chunks USING (chunk_id)
        UNION ALL
        SELECT c.community_id FROM communities c ANTI JOIN communities p ON p.community_id = c.parent_id
        WHERE c.parent_id IS NOT NULL""",
}

#: (how many hold, how many there are, some that do not)
SHARES = {
    "grounding": (
        # DuckDB slices by code points, as Python does.
        "SELECT count(*) FROM mentions m JOIN chunks c USING (chunk_id) "
        'WHERE c.text[m.start + 1 : m."end"] = m.surface',
        "SELECT count(*) FROM mentions",
        "SELECT m.surface FROM mentions m LEFT JOIN chunks c USING (chunk_id) "
        'WHERE c.text[m.start + 1 : m."end"] IS DISTINCT FROM m.surface',
    ),
    "coverage": (
        "SELECT count(*) FROM entities e JOIN (SELECT entity_id FROM community_members "
        "GROUP BY entity_id HAVING count(*) = 1) USING (entity_id)",
        "SELECT count(*) FROM entities",
        "SELECT e.entity_id FROM entities e LEFT JOIN community_members m USING (entity_id) "
        "GROUP BY e.entity_id HAVING count(m.community_id) <> 1",
    ),
}


def _one(connection: Any, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0])


def _examples(connection: Any, sql: str) -> tuple[str, ...]:
    # Ordered, so that two builds of the same graph name the same ones.
    rows = connection.execute(f"SELECT * FROM ({sql}) ORDER BY 1 LIMIT 5").fetchall()
    return tuple(str(row[0]) for row in rows)


def _none_allowed(connection: Any, name: str, sql: str) -> Gate:
    count = _one(connection, f"SELECT count(*) FROM ({sql})")
    return Gate(name, float(count), 0.0, count == 0, _examples(connection, sql) if count else ())


def _share(connection: Any, name: str, holding: str, all_of_them: str, offenders: str) -> Gate:
    total = _one(connection, all_of_them)
    value = _one(connection, holding) / total if total else 1.0
    return Gate(name, value, 1.0, value == 1.0, _examples(connection, offenders) if value < 1 else ())


def _at_most(connection: Any, name: str, state: str, threshold: float) -> Gate:
    total = _one(connection, "SELECT count(*) FROM chunks")
    value = _one(connection, f"SELECT count(*) FROM chunks WHERE state = '{state}'") / total if total else 0.0
    offenders = _examples(connection, f"SELECT chunk_id FROM chunks WHERE state = '{state}'")
    return Gate(name, value, threshold, value <= threshold, offenders)


def _unverified(connection: Any, threshold: float) -> Gate:
    """Share of the evidence about whose fact nobody answered."""
    evidence = (
        "SELECT relation_id AS fact, verified FROM relation_evidence "
        "UNION ALL SELECT attribute_id, verified FROM attribute_evidence"
    )
    total = _one(connection, f"SELECT count(*) FROM ({evidence})")
    unanswered = f"SELECT fact FROM ({evidence}) WHERE verified IS NULL"
    value = _one(connection, f"SELECT count(*) FROM ({unanswered})") / total if total else 0.0
    return Gate("unverified_facts", value, threshold, value <= threshold, _examples(connection, unanswered))


def _compression(connection: Any) -> Gate:
    """Mentions per entity: reported, never refused."""
    entities = _one(connection, "SELECT count(*) FROM entities")
    value = _one(connection, "SELECT count(*) FROM mentions") / entities if entities else 1.0
    return Gate("duplicate_compression", value, 1.0, passed=True)


def _store_consistency(stores: Mapping[str, str]) -> Gate:
    """Share of the stores that agree with their tables."""
    wrong = tuple(f"{store}: {problem}" for store, problem in stores.items() if problem)
    value = 1.0 - len(wrong) / len(stores) if stores else 1.0
    return Gate("store_consistency", value, 1.0, not wrong, wrong)
