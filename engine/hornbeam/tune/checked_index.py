"""The facts of a promoted version as annotated texts: what a person has checked teaches the model.

A fact is written as its chunk writes it. Chunks without a fact are left out: that they state nothing is
nothing that anyone has checked.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from hornbeam.extract.known_facts import Fact
from hornbeam.schema import read_schema
from hornbeam.store.table_files import open_tables
from hornbeam.store.versions import open_pinned
from hornbeam.tune.annotated import AnnotatedSet, AnnotatedText

#: Where and how a chunk first names an entity.
_NAMED = """
    SELECT chunk_id, entity_id, arg_min(surface, "start") AS surface, min("start") AS place
    FROM mentions GROUP BY ALL
"""
_ENTITIES = f"""
    SELECT n.chunk_id, n.surface, e.type FROM ({_NAMED}) n JOIN entities e USING (entity_id)
    ORDER BY n.chunk_id, n.place, n.surface
"""
_FACTS = f"""
    WITH named AS ({_NAMED})
    SELECT x.chunk_id, h.surface, r.type, t.surface, t.place
    FROM relation_evidence x JOIN relations r USING (relation_id)
    JOIN named h ON h.chunk_id = x.chunk_id AND h.entity_id = r.head_id
    JOIN named t ON t.chunk_id = x.chunk_id AND t.entity_id = r.tail_id
    UNION ALL
    SELECT x.chunk_id, h.surface, a.type, substr(c.text, x."start" + 1, x."end" - x."start"), x."start"
    FROM attribute_evidence x JOIN attributes a USING (attribute_id)
    JOIN named h ON h.chunk_id = x.chunk_id AND h.entity_id = a.entity_id
    JOIN chunks c ON c.chunk_id = x.chunk_id
    ORDER BY ALL
"""


def read_checked_index(index: Path) -> AnnotatedSet:
    """
    Raises:
        StoreError: the index has no promoted version.
    """
    version = open_pinned(index)
    schema = read_schema((version.directory / "schema.json").read_text("utf-8"), "schema")
    entities: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    facts: defaultdict[str, list[Fact]] = defaultdict(list)
    with open_tables(version.directory) as connection:
        for chunk, name, entity_type in connection.execute(_ENTITIES).fetchall():
            entities[chunk].append((name, entity_type))
        for chunk, head, fact_type, tail, _ in connection.execute(_FACTS).fetchall():
            facts[chunk].append((head, fact_type, tail))
        texts = connection.execute("SELECT chunk_id, text FROM chunks ORDER BY ALL").fetchall()
    return AnnotatedSet(
        f"{index.name} {version.version_id}",
        schema,
        tuple(
            AnnotatedText(text, tuple(dict.fromkeys(facts[chunk])), tuple(dict.fromkeys(entities[chunk])))
            for chunk, text in texts
            if facts.get(chunk)
        ),
    )
