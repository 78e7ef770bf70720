"""What can be made again is made again, from what is intact: derived files from tables, tables from results.

Work is done aside, compared with the manifest, and moved into place file by file, so that a repair that
stops leaves each file as it was or mended.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from hornbeam.audit.findings import Audit
from hornbeam.errors import StoreError
from hornbeam.index.build import build_indexes
from hornbeam.index.embedder import TextEmbedder
from hornbeam.index.rows import Links, MappedTable
from hornbeam.pipeline.graph_inputs import graph_inputs
from hornbeam.pipeline.importing import published_schema
from hornbeam.pipeline.recipe import Recipe
from hornbeam.pipeline.text_recipe import text_recipe
from hornbeam.progress import Progress
from hornbeam.prompts import load_prompts
from hornbeam.records import TABLES, arrow_schema
from hornbeam.resolve.answers import Answers
from hornbeam.resolve.consolidate import write_graph_tables
from hornbeam.resolve.separations import read_separations
from hornbeam.settings import Settings
from hornbeam.store.disk import file_checksum, sync_directory, sync_file
from hornbeam.store.ledger import Ledger
from hornbeam.store.promotions import promote_last
from hornbeam.store.salvage import rebuild_ledger
from hornbeam.store.versions import (
    Version,
    begin_version,
    current_version_id,
    read_version,
    rewrite_files,
)

_COMMUNITY_TABLES = frozenset({"tables/communities.parquet", "tables/community_members.parquet"})
_MEMORY_MIB = 1024


def mend_ledger(index: Path, audit: Audit) -> list[str]:
    """Make a ledger again that the audit could not read; the caller holds the index's `write_lock`. Returns
    what was done.

    Raises:
        StoreError: the index cannot be written.
    """
    if audit.checks.get("ledger") != "failed":
        return []
    salvage = rebuild_ledger(index)
    rows = f"{salvage.rows} rows were read from the damaged one, which is kept in {salvage.kept_in}"
    done = [
        f"ledger.sqlite: made again; {rows if salvage.kept_in else 'there was none'}; "
        f"{salvage.results} more results were found in segments"
    ]
    if salvage.cut:
        done.append(
            f"ledger.sqlite: lost for good, as a whole or in part: {', '.join(salvage.cut)}; a document that "
            "was deleted and is still in its folder may come back with the next update"
        )
    return done


def repair_index(
    index: Path,
    ledger: Ledger,
    audit: Audit,
    open_embedder: Callable[[Version], TextEmbedder],
    progress: Progress,
) -> list[str]:
    """Mend what the audit found, as far as it can be; the caller audits again. Returns what was done.

    The caller holds the index's `write_lock`.

    Args:
        open_embedder: called only if graph tables or vectors are to be made again.

    Raises:
        StoreError: the index cannot be written.
    """
    done: list[str] = []
    if audit.checks.get("current") == "failed" and (promoted := promote_last(index)):
        done.append(f"CURRENT: promoted {promoted} again")
    version = _readable(index, audit.version) or _readable(index, current_version_id(index))
    if version is not None:
        damaged = audit.damaged() if version.version_id == audit.version else set()
        if damaged:
            done += _mend_version(index, ledger, version, damaged, open_embedder, progress)
    done += _mend_segments(index, ledger, audit, version)
    return done


def _readable(index: Path, version_id: str | None) -> Version | None:
    try:
        return read_version(index, version_id) if version_id else None
    except StoreError:
        return None


def _mend_version(
    index: Path,
    ledger: Ledger,
    version: Version,
    damaged: set[str],
    open_embedder: Callable[[Version], TextEmbedder],
    progress: Progress,
) -> list[str]:
    settings = _settings_of(version)
    building = begin_version(index)
    done: list[str] = []
    try:
        bad_tables = {name for name in damaged if name.startswith("tables/")}
        if "schema.json" in damaged:
            texts = text_recipe(ledger)
            schema = published_schema(ledger, texts.schema if texts else None)
            (building / "schema.json").write_text(schema.to_json(), "utf-8")
            done += _move(version, building, ["schema.json"])
        if bad_tables - _COMMUNITY_TABLES:
            progress.say("repair: tables from stored results")
            _write_graph_tables(ledger, building, settings, open_embedder(version))
            done += _move(version, building, sorted(bad_tables - _COMMUNITY_TABLES))
        if bad_tables & _COMMUNITY_TABLES and not any(
            name.startswith(("rows/", "graph/")) for name in damaged
        ):
            _write_community_tables(version.directory, building / "tables")
            done += _move(version, building, sorted(bad_tables & _COMMUNITY_TABLES))
        derived = {name for name in damaged if not name.startswith("tables/") and name != "schema.json"}
        still_bad = bad_tables - {line.partition(":")[0] for line in done}
        if derived and not still_bad:
            progress.say("repair: indexes from tables")
            for table in (version.directory / "tables").iterdir():
                shutil.copyfile(table, building / "tables" / table.name)
            build_indexes(building, open_embedder(version), settings.embedder)
            done += _move(version, building, sorted(_files_of(version, derived)), any_bytes=True)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return done


def _settings_of(version: Version) -> Settings:
    try:
        return Settings.model_validate(version.manifest["settings"])
    except ValidationError as error:
        raise StoreError(
            f"version {version.version_id} was made with settings that this Hornbeam does not know; "
            "build it anew"
        ) from error


def _files_of(version: Version, stores: Iterable[str]) -> set[str]:
    """The files of stores, some of which are folders (`lexical/chunks`)."""
    return {
        name
        for name in version.manifest["files"]
        if any(name == store or name.startswith(f"{store}/") for store in stores)
    }


def _write_graph_tables(ledger: Ledger, building: Path, settings: Settings, embedder: TextEmbedder) -> None:
    texts = text_recipe(ledger)
    scratch = building / "scratch"
    scratch.mkdir()
    write_graph_tables(
        graph_inputs(ledger, texts.recipe if texts else Recipe("", ""), settings.extract.verify_threshold),
        building / "tables",
        scratch,
        settings=settings.resolve,
        schema=published_schema(ledger, texts.schema if texts else None),
        embedder=embedder,
        separations=read_separations(ledger),
        min_confidence=settings.extract.min_confidence,
        memory_limit_mib=_MEMORY_MIB,
        answers=Answers(
            ledger,
            str(texts.model["fingerprint"]) if texts else "",
            load_prompts(settings.prompts, embedded=settings.model.path is None),
        ),
    )


def _write_community_tables(directory: Path, tables: Path) -> None:
    """From the rows that queries read: they hold all that the tables say."""
    communities, entities = MappedTable(directory, "communities"), MappedTable(directory, "entities")
    ids, entity_ids = communities.arrow("community_id"), entities.arrow("entity_id")
    members = Links.read(directory, "members")
    pairs = sorted(
        (ids[community].as_py(), entity_ids[int(entity)].as_py())
        for community in range(len(communities))
        for entity in members.of(community)
    )
    parents, centres = communities.array("parent_row"), communities.array("centre_row")
    schema = arrow_schema(TABLES["communities"])
    columns = {name: communities.arrow(name) for name in ("community_id", "level", "name", "summary", "size")}
    columns["keywords"] = communities.arrow("keywords")
    known = pa.array([row if row >= 0 else None for row in parents.tolist()], pa.int32())
    columns["parent_id"] = ids.take(known)
    columns["centre_id"] = entity_ids.take(pa.array(centres))
    table = pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)
    pq.write_table(table, tables / "communities.parquet", compression="zstd")
    schema = arrow_schema(TABLES["community_members"])
    rows = [{"community_id": community, "entity_id": entity} for community, entity in pairs]
    table = pa.Table.from_pylist(rows, schema=schema)
    pq.write_table(table, tables / "community_members.parquet", compression="zstd")


def _move(version: Version, building: Path, names: list[str], *, any_bytes: bool = False) -> list[str]:
    """Move files into the version that are what its manifest says.

    Args:
        any_bytes: another machine's vectors may differ in their last bits; the manifest follows.
    """
    done = []
    for name in names:
        made, target = building / name, version.directory / name
        if not made.is_file():
            continue
        same = file_checksum(made) == version.manifest["files"][name]["sha256"]
        if not same and not any_bytes:
            continue  # the ledger has moved on: these are another version's
        sync_file(made)
        target.parent.mkdir(parents=True, exist_ok=True)
        made.replace(target)
        sync_directory(target.parent)
        done.append(f"{name}: made again, {'the same bytes' if same else 'its checksum renewed'}")
    if any_bytes:
        rewrite_files(version, names)
    return done


def _mend_segments(index: Path, ledger: Ledger, audit: Audit, version: Version | None) -> list[str]:
    """Texts come back from the version's tables; other results are let go of, to be asked for again."""
    bad = [finding.where for finding in audit.findings if finding.check == "segments"]
    if not bad:
        return []
    done = []
    with ledger.transaction():
        for name in bad:
            lost = ledger.forget_segment(name.removeprefix("segments/"))
            done.append(f"{name}: let go of {lost} results")
    texts = _texts(version) if version is not None else {}
    held = [row.document_id for row in ledger.documents()]
    missing = [key for key in held if key not in ledger.present("document", held)]
    restored = 0
    with ledger.transaction():
        for document_id in missing:
            if document_id in texts:
                ledger.put("document", document_id, texts[document_id].encode())
                restored += 1
    ledger.seal()
    if missing:
        done.append(
            f"ledger.sqlite: {restored} of {len(missing)} lost texts restored from the version's tables"
        )
    for name in bad:
        (index / "segments" / name.removeprefix("segments/")).unlink(missing_ok=True)
    return done


def _texts(version: Version) -> dict[str, str]:
    path = version.directory / "tables" / "documents.parquet"
    try:
        table = pq.read_table(path, columns=["document_id", "text"])
    except (OSError, pa.ArrowException):
        return {}
    return dict(zip(table["document_id"].to_pylist(), table["text"].to_pylist(), strict=True))
