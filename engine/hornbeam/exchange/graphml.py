"""GraphML: entities with their community as nodes, relations as directed edges; for networkx, Gephi, yEd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

import regex

from hornbeam.store.table_files import open_tables

_NODE_KEYS = {
    "name": "string",
    "type": "string",
    "description": "string",
    "aliases": "string",
    "mentions": "long",
    "degree": "long",
    "confidence": "double",
    "community": "string",
    "community_name": "string",
}
_EDGE_KEYS = {"type": "string", "weight": "double", "confidence": "double", "description": "string"}
_ROWS_AT_ONCE = 4096
#: XML 1.0 has no way to write these.
_NOT_XML = regex.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")

_NODES = """
    SELECT e.entity_id, e.name, e.type, e.description, array_to_string(e.aliases, '; ') AS aliases,
           e.mentions, e.degree, e.confidence, m.community_id AS community, c.name AS community_name
    FROM entities e LEFT JOIN community_members m USING (entity_id)
    LEFT JOIN communities c USING (community_id) ORDER BY e.entity_id"""
_EDGES = """
    SELECT relation_id, head_id, tail_id, type, weight, confidence, description
    FROM relations ORDER BY relation_id"""


def write_graphml(directory: Path, target: Path) -> list[Path]:
    """A multigraph: two entities may have several relations. Ids are those of the tables."""
    with open_tables(directory) as connection, target.open("w", encoding="utf-8", newline="\n") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n')
        file.write('<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        for kind, keys in (("node", _NODE_KEYS), ("edge", _EDGE_KEYS)):
            for name, type_name in keys.items():
                file.write(
                    f'  <key id="{kind}_{name}" for="{kind}" attr.name="{name}" attr.type="{type_name}"/>\n'
                )
        file.write('  <graph id="hornbeam" edgedefault="directed">\n')
        for entity_id, *values in _rows(connection, _NODES):
            file.write(f"    <node id={quoteattr(entity_id)}>\n")
            _write_data(file, "node", zip(_NODE_KEYS, values, strict=True))
            file.write("    </node>\n")
        for relation_id, head, tail, *values in _rows(connection, _EDGES):
            ends = f"source={quoteattr(head)} target={quoteattr(tail)}"
            file.write(f"    <edge id={quoteattr(relation_id)} {ends}>\n")
            _write_data(file, "edge", zip(_EDGE_KEYS, values, strict=True))
            file.write("    </edge>\n")
        file.write("  </graph>\n</graphml>\n")
    return [target]


def _rows(connection: Any, sql: str) -> Iterator[tuple[Any, ...]]:
    result = connection.execute(sql)
    while rows := result.fetchmany(_ROWS_AT_ONCE):
        yield from rows


def _write_data(file: IO[str], kind: str, pairs: Any) -> None:
    for name, value in pairs:
        if value is not None:
            text = escape(_NOT_XML.sub("\ufffd", str(value)))
            file.write(f'      <data key="{kind}_{name}">{text}</data>\n')
