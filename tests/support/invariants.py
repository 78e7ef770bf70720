"""The invariants 1 to 5 of DESIGN §2, recomputed from a version's files.

On purpose it shares no code with the engine: plain Python over the Parquet tables, `schema.json` and the
manifest.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Rows = list[dict[str, Any]]

_IDS = {
    "documents": "document_id",
    "chunks": "chunk_id",
    "entities": "entity_id",
    "relations": "relation_id",
    "attributes": "attribute_id",
    "merges": "merge_id",
    "communities": "community_id",
}
_OTHER_TABLES = ("mentions", "relation_evidence", "attribute_evidence", "community_members")
#: table, column, table that the value must be an id of
_REFERENCES = (
    ("chunks", "document_id", "documents"),
    ("mentions", "entity_id", "entities"),
    ("mentions", "chunk_id", "chunks"),
    ("relations", "head_id", "entities"),
    ("relations", "tail_id", "entities"),
    ("relation_evidence", "relation_id", "relations"),
    ("relation_evidence", "chunk_id", "chunks"),
    ("attributes", "entity_id", "entities"),
    ("attribute_evidence", "attribute_id", "attributes"),
    ("attribute_evidence", "chunk_id", "chunks"),
    ("merges", "entity_id", "entities"),
    ("merges", "chunk_id", "chunks"),
    ("communities", "centre_id", "entities"),
    ("community_members", "community_id", "communities"),
    ("community_members", "entity_id", "entities"),
)


def read_tables(version_directory: Path) -> dict[str, Rows]:
    tables = version_directory / "tables"
    return {name: pq.read_table(tables / f"{name}.parquet").to_pylist() for name in (*_IDS, *_OTHER_TABLES)}


def check_invariants(version_directory: Path) -> dict[str, Rows]:
    """Assert that a version keeps the invariants; returns its tables."""
    tables = read_tables(version_directory)
    found = list(violations(version_directory, tables))
    assert not found, "\n".join(found[:20])
    return tables


def violations(version_directory: Path, tables: dict[str, Rows]) -> Iterator[str]:
    yield from _files(version_directory)
    yield from _identity(tables)
    yield from _schema(json.loads((version_directory / "schema.json").read_text("utf-8")), tables)
    yield from _closure(tables)
    yield from _grounding(tables)
    yield from _merges(tables)
    yield from _losses(tables)
    yield from _coverage(tables)


def _files(directory: Path) -> Iterator[str]:
    manifest = json.loads((directory / "manifest.json").read_text("utf-8"))
    on_disk = {str(p.relative_to(directory)): p for p in directory.rglob("*") if p.is_file()}
    del on_disk["manifest.json"]
    if set(on_disk) != set(manifest["files"]):
        yield f"files on disk and in the manifest differ: {sorted(set(on_disk) ^ set(manifest['files']))}"
    for name, path in on_disk.items():
        content = path.read_bytes()
        said = manifest["files"].get(name, {})
        if said != {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}:
            yield f"{name} is not what the manifest says"


def _identity(tables: dict[str, Rows]) -> Iterator[str]:
    for table, column in _IDS.items():
        ids = [row[column] for row in tables[table]]
        if len(set(ids)) != len(ids):
            yield f"{table}: an id stands twice"
        if ids != sorted(ids):
            yield f"{table}: not sorted by id"
    # Homonyms are told apart by their sense.
    pairs = Counter((entity["name"], entity["type"], entity["sense"]) for entity in tables["entities"])
    yield from (f"two entities are {pair}" for pair, times in pairs.items() if times > 1)


def _schema(schema: dict[str, Any], tables: dict[str, Rows]) -> Iterator[str]:
    types = {entry["name"] for entry in schema["entity_types"]}
    relations = {entry["name"]: entry for entry in schema["relation_types"]}
    attributes = {entry["name"]: entry for entry in schema["attribute_types"]}
    type_of = {entity["entity_id"]: entity["type"] for entity in tables["entities"]}
    for entity in tables["entities"]:
        if entity["type"] not in types:
            yield f"entity {entity['name']!r} has type {entity['type']!r}"
    for relation in tables["relations"]:
        declared = relations.get(relation["type"])
        if declared is None:
            yield f"relation type {relation['type']!r} is not in the schema"
            continue
        for side, end in (("domain", "head_id"), ("range", "tail_id")):
            kind = type_of.get(relation[end])
            if declared[side] and kind not in declared[side]:
                yield f"{relation['type']}: {kind} is not in its {side}"
    for attribute in tables["attributes"]:
        declared = attributes.get(attribute["type"])
        if declared is None:
            yield f"attribute type {attribute['type']!r} is not in the schema"
        elif declared["domain"] and type_of.get(attribute["entity_id"]) not in declared["domain"]:
            yield f"attribute {attribute['type']} of a {type_of.get(attribute['entity_id'])}"


def _closure(tables: dict[str, Rows]) -> Iterator[str]:
    ids = {table: {row[column] for row in tables[table]} for table, column in _IDS.items()}
    for table, column, target in _REFERENCES:
        for row in tables[table]:
            if row[column] not in ids[target]:
                yield f"{table}.{column} {row[column]} is not in {target}"
    for evidence, fact, column in (
        ("mentions", "entities", "entity_id"),
        ("relation_evidence", "relations", "relation_id"),
        ("attribute_evidence", "attributes", "attribute_id"),
    ):
        stated = {row[column] for row in tables[evidence]}
        yield from (f"{fact}: nothing states {lone}" for lone in ids[fact] - stated)
    mentions = Counter(row["entity_id"] for row in tables["mentions"])
    degree: Counter[str] = Counter()
    for relation in tables["relations"]:
        if relation["head_id"] == relation["tail_id"]:
            yield f"relation {relation['relation_id']} leads to itself"
        degree.update((relation["head_id"], relation["tail_id"]))
    for entity in tables["entities"]:
        entity_id = entity["entity_id"]
        if (entity["mentions"], entity["degree"]) != (mentions[entity_id], degree[entity_id]):
            yield f"entity {entity['name']!r}: wrong number of mentions or wrong degree"
    weights = Counter(row["relation_id"] for row in tables["relation_evidence"])
    for relation in tables["relations"]:
        if relation["weight"] != weights[relation["relation_id"]]:
            yield f"relation {relation['relation_id']}: weight is not its number of chunks"
    for table in ("entities", "mentions", "relations", "relation_evidence", "attributes"):
        for row in tables[table]:
            if not 0 <= row["confidence"] <= 1:
                yield f"{table}: confidence {row['confidence']}"


def _grounding(tables: dict[str, Rows]) -> Iterator[str]:
    documents = {row["document_id"]: row["text"] for row in tables["documents"]}
    chunks = {row["chunk_id"]: row for row in tables["chunks"]}
    names = {row["entity_id"]: {row["name"], *row["aliases"]} for row in tables["entities"]}
    values = {row["attribute_id"]: row["value"] for row in tables["attributes"]}
    for chunk in chunks.values():
        if documents.get(chunk["document_id"], "")[chunk["start"] : chunk["end"]] != chunk["text"]:
            yield f"chunk {chunk['chunk_id']} is not what stands in its document"
    for mention in tables["mentions"]:
        text = chunks[mention["chunk_id"]]["text"] if mention["chunk_id"] in chunks else ""
        surface = text[mention["start"] : mention["end"]]
        if not surface or surface != mention["surface"]:
            yield f"mention {mention['surface']!r} does not stand in its chunk"
        if " ".join(surface.split()) not in names.get(mention["entity_id"], set()):
            yield f"mention {surface!r} is no form of its entity's name"
    for evidence in tables["attribute_evidence"]:
        text = chunks[evidence["chunk_id"]]["text"] if evidence["chunk_id"] in chunks else ""
        stated = " ".join(text[evidence["start"] : evidence["end"]].split())
        if not stated or stated.casefold() != values.get(evidence["attribute_id"], "").casefold():
            yield f"attribute value {stated!r} is not what its evidence says"


def _merges(tables: dict[str, Rows]) -> Iterator[str]:
    """Both names of a merge are names of its entity, and its evidence stands where it says."""
    names = {row["entity_id"]: {row["name"], *row["aliases"]} for row in tables["entities"]}
    chunks = {row["chunk_id"]: row for row in tables["chunks"]}
    for merge in tables["merges"]:
        chunk = chunks.get(merge["chunk_id"], {"text": "", "document_id": None})
        if not 0 <= merge["start"] < merge["end"] <= len(chunk["text"]):
            yield f"merge {merge['merge_id']}: its evidence lies outside its chunk"
        if merge["document_id"] not in (None, chunk["document_id"]):
            yield f"merge {merge['merge_id']}: its evidence is of another document"
        if merge["merged_name"] not in names.get(merge["entity_id"], set()):
            yield f"merge {merge['merge_id']}: {merge['merged_name']!r} is no name of its entity"
        if (merge["name"], merge["type"]) == (merge["merged_name"], merge["merged_type"]):
            yield f"merge {merge['merge_id']} is of a name with itself"
        if not 0 < merge["score"] <= 1:
            yield f"merge {merge['merge_id']}: score {merge['score']}"


def _losses(tables: dict[str, Rows]) -> Iterator[str]:
    with_chunks = {row["document_id"] for row in tables["chunks"]}
    for document in tables["documents"]:
        if document["text"].strip() and document["document_id"] not in with_chunks:
            yield f"document {document['source']} has no chunk"
        if document["source"] != min(document["sources"]):
            yield f"document {document['document_id']}: its source is not the first of its sources"
    for chunk in tables["chunks"]:
        if chunk["state"] not in ("done", "degraded", "failed"):
            yield f"chunk {chunk['chunk_id']} is {chunk['state']}"
        if (chunk["state"] == "done") != (chunk["reason"] == ""):
            yield f"chunk {chunk['chunk_id']} is {chunk['state']} because {chunk['reason']!r}"


def _coverage(tables: dict[str, Rows]) -> Iterator[str]:
    entities = {row["entity_id"] for row in tables["entities"]}
    communities = {row["community_id"]: row for row in tables["communities"]}
    times = Counter(row["entity_id"] for row in tables["community_members"])
    yield from (f"entity {one} is in {times[one]} leaves" for one in entities if times[one] != 1)
    #: community id → its entities, leaves first, then handed up level by level
    members: dict[str, set[str]] = {community: set() for community in communities}
    for row in tables["community_members"]:
        if communities.get(row["community_id"], {"level": None})["level"] != 0:
            yield f"{row['community_id']} has members and is no leaf"
        members.setdefault(row["community_id"], set()).add(row["entity_id"])
    top = max((row["level"] for row in communities.values()), default=-1)
    for level in range(top + 1):
        of_level = [row for row in communities.values() if row["level"] == level]
        held = Counter(entity for row in of_level for entity in members[row["community_id"]])
        if set(held) != entities or any(number > 1 for number in held.values()):
            yield f"level {level} does not partition the entities"
        for row in of_level:
            community, parent = row["community_id"], communities.get(row["parent_id"])
            if row["size"] != len(members[community]) or not row["size"]:
                yield f"community {community} has another size than it says"
            if row["centre_id"] not in members[community]:
                yield f"the centre of {community} is not in it"
            if (parent is None) != (level == top) or (parent and parent["level"] != level + 1):
                yield f"community {community} has no parent on the next level"
            elif parent is not None:
                members[parent["community_id"]] |= members[community]
            if not row["name"] or not row["keywords"]:
                yield f"community {community} has no name or no keywords"
