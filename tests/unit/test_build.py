"""Builds of small folders with a model that walks grammars by chance."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hornbeam.build import Build, BuildReport
from hornbeam.errors import ModelError, StoreError, UsageError
from hornbeam.extract.forms import ENTITIES, RELATIONS
from hornbeam.extract.verification import GRAMMAR as VERIFICATION_GRAMMAR
from hornbeam.grammar.relations import OPENING as RELATIONS_OPENING
from hornbeam.llm.protocol import Request
from hornbeam.organise.prompts import OPENING as NAMING_OPENING
from hornbeam.progress import Progress
from hornbeam.records import Retry
from hornbeam.schema import GraphSchema, load_schema
from hornbeam.settings import Settings
from hornbeam.store.ledger import Ledger
from hornbeam.store.lock import write_lock
from hornbeam.store.promotions import promote
from hornbeam.store.versions import list_versions, open_current
from support.building import GRAPH_TABLES, build, table, table_bytes, walker, walking_settings
from support.invariants import check_invariants, read_tables, violations
from support.version_by_hand import HashedWords

TEXTS = {
    "curie.txt": "Marie Curie was born in Warsaw in 1867. She worked in Paris with Pierre Curie.\n\n"
    "In 1909 she founded the Radium Institute, which stands in Paris to this day.\n\n"
    "Her daughter Irène Joliot-Curie led it after her, and won the Nobel Prize in Chemistry.",
    "tolstoy.md": "# Лев Толстой\n\nЛев Толстой родился в Ясной Поляне. Он написал роман «Война и мир».",
    "beijing.txt": "北京大学位于海淀区。清华大学也在北京。蔡元培曾任北京大学校长。",
    "lists.jsonl": '{"text": "Ada Lovelace wrote to Charles Babbage."}\n'
    '{"text": "Charles Babbage built an engine in London."}\n',
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus", TEXTS)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"


def write_corpus(folder: Path, texts: dict[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def assert_balanced(report: BuildReport) -> None:
    documents, chunks = report.documents, report.chunks
    parts = (
        documents["indexed"],
        documents["unchanged"],
        documents["duplicates"],
        len(documents["rejected"]),
    )
    assert documents["seen"] == sum(parts)
    assert chunks["total"] == chunks["done"] + chunks["degraded"] + chunks["failed"]


def directory(index: Path, report: BuildReport) -> Path:
    assert report.version is not None
    return index / "versions" / report.version


# One build


def test_a_folder_becomes_a_promoted_version_that_keeps_the_invariants(corpus: Path, index: Path) -> None:
    report = build(index, [corpus])

    tables = check_invariants(directory(index, report))
    assert report.promoted
    assert open_current(index).version_id == report.version
    assert report.documents == {
        "seen": 5, "indexed": 5, "unchanged": 0, "duplicates": 0, "rejected": [], "excluded": 0,
        "changed": 0, "moved": 0, "removed": 0,
    }  # fmt: skip
    assert_balanced(report)
    assert report.chunks["total"] == len(tables["chunks"]) > 5
    for name in ("entities", "relations", "attributes"):
        assert getattr(report, name) == len(tables[name]) > 0, name
    assert report.communities["coverage"] == 1.0
    assert report.communities["leaf"] == sum(row["level"] == 0 for row in tables["communities"])


def test_the_independent_checker_sees_what_is_broken(corpus: Path, index: Path) -> None:
    """Otherwise the tests that rely on it could not fail."""
    version = directory(index, build(index, [corpus]))
    tables = read_tables(version)
    assert list(violations(version, tables)) == []

    def broken(name: str, **values: Any) -> list[str]:
        rows = [dict(row) for row in tables[name]]
        rows[0] |= values
        return list(violations(version, tables | {name: rows}))

    assert broken("entities", type="unheard of")
    assert broken("relations", type="unheard of")
    assert broken("relations", tail_id="gone")
    assert broken("mentions", surface="elsewhere")
    assert broken("chunks", state="pending")
    assert broken("communities", size=99)
    assert list(violations(version, tables | {"community_members": tables["community_members"][1:]}))


def test_the_report_says_what_design_9_asks_for(corpus: Path, index: Path) -> None:
    model = walker()
    run = Build(
        index,
        walking_settings(cost={"gpu_hour_price": 3.6, "currency": "EUR"}),
        load_schema("general"),
        model,
        HashedWords(),
        Progress(quiet=True),
    )
    report = run.run([corpus])
    said = json.loads(json.dumps(run.to_json()))

    assert {"seen", "indexed", "unchanged", "rejected"} <= set(said["documents"])
    assert {"total", "done", "degraded", "failed"} <= set(said["chunks"])
    assert {"levels", "leaf", "coverage"} <= set(said["communities"])
    assert set(said["tokens"]) == {"entities", "relations", "summaries"}
    for spent in said["tokens"].values():
        assert set(spent) == {"calls", "prompt", "cached", "output"}
    assert sum(spent["calls"] for spent in said["tokens"].values()) == model.calls
    assert {"read", "extract", "consolidate", "organise", "summarise", "index"} <= set(said["seconds"])
    assert said["tokens_per_second"] > 0
    assert said["cost"]["currency"] == "EUR"
    assert said["cost"]["gpu_hour_price"] == 3.6
    assert said["cost"]["per_document"] == pytest.approx(sum(said["seconds"].values()) / 1000 / 5, abs=1e-4)
    assert all({"value", "threshold", "passed"} <= set(gate) for gate in said["gates"].values())
    assert said["version"] == report.version
    with Ledger(index, create=False) as ledger:
        assert json.loads(ledger.runs.last_report() or "") == said


def test_rejected_inputs_and_duplicates_are_counted_and_named(corpus: Path, index: Path) -> None:
    (corpus / "picture.png").write_bytes(b"\x89PNG")
    (corpus / "empty.txt").write_text("")
    (corpus / "copy.txt").write_text(TEXTS["curie.txt"], "utf-8")

    report = build(index, [corpus])
    again = build(index, [corpus])

    for one in (report, again):  # they stay reported
        assert sorted(Path(entry["path"]).name for entry in one.documents["rejected"]) == [
            "empty.txt",
            "picture.png",
        ]
        assert all(entry["reason"] for entry in one.documents["rejected"])
        assert one.exit_code == 1
        assert_balanced(one)
    assert (report.documents["indexed"], report.documents["duplicates"]) == (5, 1)
    assert (again.documents["unchanged"], again.documents["duplicates"]) == (6, 0)
    sources = [row["sources"] for row in table(index, report.version, "documents")]
    assert [str(corpus / "copy.txt"), str(corpus / "curie.txt")] in sources


@pytest.mark.parametrize(
    "texts",
    [
        {"a.png": "\x89PNG", "b.zip": "PK"},
        {"a.txt": "?!"},
        {"a.txt": "?! … —\n\n...", "b.txt": "Marie Curie was born in Warsaw."},
    ],
    ids=["nothing readable", "nothing to name", "one chunk without names"],
)
def test_a_corpus_with_little_or_nothing_in_it_is_a_version_all_the_same(
    tmp_path: Path, index: Path, texts: dict[str, str]
) -> None:
    corpus = write_corpus(tmp_path / "corpus", texts)

    report = build(index, [corpus])

    check_invariants(directory(index, report))
    assert_balanced(report)
    assert report.promoted
    assert report.documents["seen"] == len(texts)
    assert report.chunks["done"] == report.chunks["total"]


def test_a_folder_without_a_file_is_a_mistake_and_changes_nothing(
    tmp_path: Path, corpus: Path, index: Path
) -> None:
    empty = tmp_path / "empty"
    (empty / "deep" / ".hidden").mkdir(parents=True)
    (empty / "deep" / ".hidden" / "a.txt").write_text("Unseen.")
    with pytest.raises(UsageError, match=r"there is no file in '.*/empty'"):
        build(index, [empty])
    assert not index.exists()

    version = build(index, [corpus]).version
    with pytest.raises(UsageError, match="there is no file in"):
        build(index, [empty])
    assert build(index, [corpus, empty]).version == version


def test_a_schema_without_relations_or_attributes_gives_entities_alone(corpus: Path, index: Path) -> None:
    schema = GraphSchema.model_validate(
        {"name": "names", "entity_types": [{"name": "name"}, {"name": "place"}]}
    )
    model = walker()

    report = build(index, [corpus], schema=schema, model=model)

    check_invariants(directory(index, report))
    assert report.entities > 0
    assert (report.relations, report.attributes) == (0, 0)
    assert set(report.tokens) == {"entities", "summaries"}


def test_nothing_is_written_when_the_call_is_wrong(corpus: Path, index: Path) -> None:
    with pytest.raises(UsageError):
        build(index, [corpus / "missing.txt"])
    with pytest.raises(ModelError, match="context"):
        build(index, [corpus], model=walker(max_model_len=300))

    assert not index.exists()


def test_an_index_that_another_process_writes_is_left_alone(corpus: Path, index: Path) -> None:
    with write_lock(index), pytest.raises(StoreError, match="being written"):
        build(index, [corpus])


def test_the_manifest_holds_no_secret(corpus: Path, index: Path) -> None:
    settings = walking_settings(
        model={"path": "https://me:s3cret@host:8000/v1?token=t0ken", "api_key": "k3y"}
    )

    report = build(index, [corpus], settings=settings)

    text = (directory(index, report) / "manifest.json").read_text("utf-8")
    assert json.loads(text)["settings"]["model"]["path"] == "https://host:8000/v1"
    for secret in ("s3cret", "t0ken", "k3y"):
        assert secret not in text


# The next build


def test_a_second_build_makes_no_call_and_finds_its_version(corpus: Path, index: Path) -> None:
    first = build(index, [corpus])
    model = walker()
    second = build(index, [corpus], model=model)

    assert model.calls == 0
    assert second.version == first.version
    assert second.unchanged
    assert not first.unchanged
    assert second.documents["unchanged"] == 5
    assert second.chunks["reused"] == second.chunks["total"]
    assert (second.entities, second.relations, second.gates) == (first.entities, first.relations, first.gates)


def test_an_unchanged_build_promotes_its_version_again(corpus: Path, index: Path) -> None:
    first = build(index, [corpus])
    (corpus / "more.txt").write_text("Emmy Noether taught in Göttingen.")
    second = build(index, [corpus])
    assert first.version
    promote(index, first.version)

    build(index, [corpus])

    assert open_current(index).version_id == second.version


def test_the_same_documents_give_the_same_version_anywhere(corpus: Path, tmp_path: Path) -> None:
    versions = {build(tmp_path / side, [corpus]).version for side in ("one", "two")}

    assert len(versions) == 1


def test_a_changed_file_is_extracted_where_it_changed_and_its_old_text_is_gone(
    corpus: Path, index: Path
) -> None:
    build(index, [corpus])
    changed = TEXTS["curie.txt"].replace("Radium Institute", "Polonium Academy")
    (corpus / "curie.txt").write_text(changed, "utf-8")
    model = walker()

    report = build(index, [corpus], model=model)

    tables = check_invariants(directory(index, report))
    assert not any("Radium" in row["text"] for name in ("documents", "chunks") for row in tables[name])
    assert not any("Radium" in row["surface"] for row in tables["mentions"])
    # The first paragraph's chunk is as before; only the others are asked for.
    asked = [request for request in model.requests if stage_of(request) == ENTITIES]
    assert asked
    assert all("Polonium" in request.prompt for request in asked)
    assert (report.documents["indexed"], report.documents["unchanged"]) == (1, 4)
    assert report.chunks["reused"] == report.chunks["total"] - len(asked)


def test_a_file_that_goes_back_to_its_old_text_needs_no_call(corpus: Path, index: Path) -> None:
    first = build(index, [corpus])
    (corpus / "curie.txt").write_text("Something else altogether.", "utf-8")
    build(index, [corpus])
    (corpus / "curie.txt").write_text(TEXTS["curie.txt"], "utf-8")
    model = walker()

    third = build(index, [corpus], model=model)

    assert third.version == first.version
    assert model.calls == 0


def test_records_that_are_gone_from_a_file_are_gone_from_the_graph(corpus: Path, index: Path) -> None:
    build(index, [corpus])
    (corpus / "lists.jsonl").write_text(TEXTS["lists.jsonl"].splitlines()[0] + "\n")

    report = build(index, [corpus])

    tables = check_invariants(directory(index, report))
    assert report.documents["removed"] == 1
    assert not any("built an engine" in row["text"] for row in tables["documents"])
    assert len(tables["documents"]) == 4


def test_a_plain_file_named_like_a_record_of_another_is_not_taken_for_one(
    tmp_path: Path, index: Path
) -> None:
    corpus = write_corpus(tmp_path / "corpus", {"note": "Ada wrote.", "note#2": "Babbage built."})
    build(index, [corpus])

    report = build(index, [corpus / "note"])

    assert len(table(index, report.version, "documents")) == 2
    assert report.documents["removed"] == 0


def test_a_file_that_becomes_unreadable_is_rejected_and_its_text_gone(corpus: Path, index: Path) -> None:
    build(index, [corpus])
    (corpus / "curie.txt").write_bytes(b"")

    report = build(index, [corpus])

    tables = check_invariants(directory(index, report))
    assert [Path(entry["path"]).name for entry in report.documents["rejected"]] == ["curie.txt"]
    assert not any("Warsaw" in row["text"] for row in tables["documents"])


def test_the_order_and_the_places_of_documents_do_not_change_the_graph(tmp_path: Path) -> None:
    """Titles come from the sources, so the documents' own table differs; the graph does not."""
    flat = write_corpus(tmp_path / "flat", TEXTS)
    deep = write_corpus(
        tmp_path / "deep", {f"{place}/x/{name}": text for place, (name, text) in enumerate(TEXTS.items())}
    )
    one = build(tmp_path / "one", [flat])
    two = build(tmp_path / "two", [*sorted(deep.iterdir(), reverse=True)])

    assert table_bytes(tmp_path / "one", one.version) == table_bytes(tmp_path / "two", two.version)


def test_the_order_in_which_copies_are_met_does_not_change_the_version(tmp_path: Path) -> None:
    corpus = write_corpus(
        tmp_path / "corpus", {"a.txt": "# Ada\n\nAda wrote.", "b.md": "# Ada\n\nAda wrote."}
    )
    paths = [corpus / "a.txt", corpus / "b.md"]

    versions = {
        build(tmp_path / str(number), order).version for number, order in enumerate((paths, paths[::-1]))
    }

    assert len(versions) == 1


def test_documents_can_come_in_several_builds(corpus: Path, tmp_path: Path) -> None:
    at_once = build(tmp_path / "one", [corpus])
    for path in sorted(corpus.iterdir()):
        in_parts = build(tmp_path / "two", [path])

    assert in_parts.version == at_once.version


def test_another_schema_is_another_version_of_the_same_index(corpus: Path, index: Path) -> None:
    first = build(index, [corpus])
    second = build(index, [corpus], schema=load_schema("research"))

    assert first.version != second.version
    check_invariants(directory(index, first))
    check_invariants(directory(index, second))
    assert len(list_versions(index)) == 2


@pytest.mark.parametrize(
    "extract",
    [{"window": 3}, {"retries": 4}, {"min_confidence": 0.3}],
    ids=["window", "retries", "threshold"],
)
def test_settings_that_do_not_change_what_a_call_returns_repeat_no_extraction(
    corpus: Path, index: Path, extract: dict[str, Any]
) -> None:
    build(index, [corpus])
    report = build(index, [corpus], settings=walking_settings(extract=extract))

    assert set(report.tokens) <= {"summaries"}
    check_invariants(directory(index, report))


def test_another_chunk_size_cuts_every_document_anew(corpus: Path, index: Path) -> None:
    first = build(index, [corpus])
    report = build(index, [corpus], settings=walking_settings(chunk={"max_tokens": 200}))

    assert report.documents["unchanged"] == 5
    assert report.chunks["total"] < first.chunks["total"]
    check_invariants(directory(index, report))


# Failures


def stage_of(request: Request) -> str:
    if request.prompt.endswith(NAMING_OPENING):
        return "naming"
    return RELATIONS if request.prompt.endswith(RELATIONS_OPENING) else ENTITIES


def entity_stage_fails(text: str) -> Callable[[Request], str | None]:
    """For the chunks that hold `text`; it must not stand in the prompt's examples."""

    def fails(request: Request) -> str | None:
        return "the server is gone" if stage_of(request) == ENTITIES and text in request.prompt else None

    return fails


def test_a_failed_chunk_is_reported_and_the_next_run_tries_it_again(corpus: Path, index: Path) -> None:
    settings = walking_settings(gates={"max_failed_chunks": 1.0})
    model = walker(fail_when=entity_stage_fails("北京大学"))
    first = build(index, [corpus], model=model, settings=settings)

    check_invariants(directory(index, first))
    assert_balanced(first)
    assert first.chunks["failed"] >= 1
    assert first.chunks["reasons"]["model_error"] == first.chunks["failed"]
    failed = [lost for lost in first.chunks["lost"] if lost["state"] == "failed"]
    assert {Path(lost["source"]).name for lost in failed} == {"beijing.txt"}
    assert first.exit_code == 1

    recovered = walker()
    second = build(index, [corpus], model=recovered, settings=settings)

    assert second.chunks["failed"] == 0
    assert second.version != first.version
    assert second.tokens[ENTITIES]["calls"] == first.chunks["failed"]  # and nothing else again
    undisturbed = build(index.with_name("undisturbed"), [corpus], settings=settings)
    assert second.version == undisturbed.version


def test_a_failed_chunk_that_fails_again_gives_the_same_version(corpus: Path, index: Path) -> None:
    settings = walking_settings(gates={"max_failed_chunks": 1.0})
    first, second = (
        build(index, [corpus], model=walker(fail_when=entity_stage_fails("北京大学")), settings=settings)
        for _ in range(2)
    )

    assert second.version == first.version
    assert second.chunks["failed"] == first.chunks["failed"] > 0


def test_a_chunk_that_lost_its_relations_to_a_failure_gets_them_from_the_next_run(
    corpus: Path, index: Path
) -> None:
    def relation_stage_fails(request: Request) -> str | None:
        return "the server is gone" if stage_of(request) == RELATIONS else None

    first = build(index, [corpus], model=walker(fail_when=relation_stage_fails))

    check_invariants(directory(index, first))
    assert first.entities > 0
    assert first.relations == 0
    assert first.chunks["degraded"] > 0
    assert "model_error" in first.chunks["reasons"]

    second = build(index, [corpus])

    assert second.relations > 0
    assert RELATIONS in second.tokens
    assert second.version == build(index.with_name("undisturbed"), [corpus]).version


# Verification


def evidence(index: Path, report: BuildReport) -> list[bool | None]:
    tables = ("relation_evidence", "attribute_evidence")
    return [row["verified"] for name in tables for row in table(index, report.version, name)]


def verifying(threshold: float = 0.5) -> Settings:
    return walking_settings(extract={"verify": True, "verify_threshold": threshold})


def is_verification(request: Request) -> bool:
    return request.grammar == VERIFICATION_GRAMMAR


def test_verification_asks_about_facts_alone_and_fills_the_evidence(corpus: Path, index: Path) -> None:
    plain = build(index, [corpus])
    assert set(evidence(index, plain)) == {None}
    assert "unverified_facts" not in plain.gates

    model = walker()
    verified = build(index, [corpus], model=model, settings=verifying(0.0))
    check_invariants(directory(index, verified))
    asked = [request for request in model.requests if stage_of(request) in (ENTITIES, RELATIONS)]
    assert all(is_verification(request) for request in asked)
    assert verified.tokens["verification"]["calls"] == len(asked) > 0
    assert set(evidence(index, verified)) == {True}
    assert (verified.relations, verified.attributes) == (plain.relations, plain.attributes)
    assert verified.gates["unverified_facts"]["value"] == 0.0

    # One run with it is the same as two, and a third asks nothing.
    assert build(index.with_name("at once"), [corpus], settings=verifying(0.0)).version == verified.version
    assert not build(index, [corpus], settings=verifying(0.0)).tokens


def test_refuted_facts_stay_in_the_segment_and_out_of_the_graph(corpus: Path, index: Path) -> None:
    build(index, [corpus], settings=verifying(0.0))
    before = build(index, [corpus], settings=verifying(0.0))
    half = build(index, [corpus], settings=verifying(0.5))
    none = build(index, [corpus], settings=verifying(1.0))
    assert not half.tokens.keys() & {ENTITIES, RELATIONS, "verification"}
    check_invariants(directory(index, half))
    assert none.relations < half.relations < before.relations
    assert none.attributes <= half.attributes < before.attributes


def test_a_verification_that_fails_leaves_the_fact_unverified_until_the_next_run(
    corpus: Path, index: Path
) -> None:
    def fails(request: Request) -> str | None:
        return (
            "the server is gone" if is_verification(request) and "Babbage built" in request.prompt else None
        )

    first = build(index, [corpus], model=walker(fail_when=fails), settings=verifying(0.0))
    assert first.chunks["failed"] == first.chunks["degraded"] == 0
    assert set(evidence(index, first)) == {True, None}
    gate = first.gates["unverified_facts"]
    assert gate["value"] == pytest.approx(evidence(index, first).count(None) / len(evidence(index, first)))
    assert gate["passed"] == (gate["value"] <= 0.05)

    second = build(index, [corpus], settings=verifying(0.0))
    assert set(evidence(index, second)) == {True}
    assert not {ENTITIES, RELATIONS} & second.tokens.keys()
    assert 0 < second.tokens["verification"]["calls"] < first.tokens["verification"]["calls"]
    assert second.version == build(index.with_name("undisturbed"), [corpus], settings=verifying(0.0)).version


# Chunks taken up again


def test_a_retry_reads_nothing_and_asks_for_the_failed_chunks_alone(corpus: Path, index: Path) -> None:
    settings = walking_settings(gates={"max_failed_chunks": 1.0})
    first = build(index, [corpus], model=walker(fail_when=entity_stage_fails("北京大学")), settings=settings)
    assert first.chunks["failed"] > 0

    untouched = build(index, [], settings=settings, retry=[Retry.DEGRADED])
    assert untouched.chunks["failed"] == first.chunks["failed"]

    second = build(index, [], settings=settings, retry=[Retry.FAILED])
    assert second.documents["seen"] == 0
    assert second.chunks["failed"] == 0
    assert second.tokens[ENTITIES]["calls"] == first.chunks["failed"]
    assert second.version == build(index.with_name("undisturbed"), [corpus], settings=settings).version


def test_degraded_chunks_taken_up_again_with_more_tokens_make_another_version(
    corpus: Path, index: Path
) -> None:
    def settings(budget: float) -> Settings:
        ladder = {"retry_budget": budget, "retry_splits": 0, "retry_types": 0}
        return walking_settings(extract={"max_output_tokens": 32} | ladder)

    patient = walker(closing=0.01)
    first = build(index, [corpus], model=patient, settings=settings(1.0))
    assert first.chunks["degraded"] > 0
    assert not first.chunks["rungs"]

    # The ladder is no part of a result's key: the plain run repeats nothing.
    plain = build(index, [corpus], model=walker(closing=0.01), settings=settings(20.0))
    assert "entities" not in plain.tokens

    again = build(index, [], model=walker(closing=0.01), settings=settings(20.0), retry=[Retry.DEGRADED])
    check_invariants(directory(index, again))
    assert again.version != plain.version
    assert again.chunks["degraded"] < first.chunks["degraded"]
    assert again.chunks["rungs"]["budget"] > 0
    assert sum(row["chunks"] for row in again.chunks["states"]) == again.chunks["total"]

    same = build(index, [], model=walker(closing=0.01), settings=settings(20.0), retry=[Retry.DEGRADED])
    assert same.version == again.version


def test_there_is_nothing_to_retry_where_there_is_no_index(index: Path) -> None:
    with pytest.raises(StoreError, match="is no index"):
        build(index, [], retry=[Retry.FAILED])
    assert not index.exists()


def test_communities_that_a_failure_left_unnamed_are_reported_and_named_by_the_next_run(
    corpus: Path, index: Path
) -> None:
    def naming_fails(request: Request) -> str | None:
        return "the server is gone" if stage_of(request) == "naming" else None

    first = build(index, [corpus], model=walker(fail_when=naming_fails))

    check_invariants(directory(index, first))
    named = {row["community_id"]: row for row in table(index, first.version, "communities")}
    unnamed = first.communities["unnamed"]
    assert unnamed
    for entry in unnamed:
        assert entry["reason"] == "model_error"
        assert named[entry["community_id"]]["name"] == ", ".join(named[entry["community_id"]]["keywords"])
    assert first.exit_code == 1

    second = build(index, [corpus])

    assert second.communities["unnamed"] == []
    assert set(second.tokens) == {"summaries"}
    assert second.version == build(index.with_name("undisturbed"), [corpus]).version


def test_a_version_that_fails_a_gate_is_kept_but_not_promoted(corpus: Path, index: Path) -> None:
    good = build(index, [corpus])
    (corpus / "more.txt").write_text("Emmy Noether taught in Göttingen.")

    report = build(index, [corpus], model=walker(fail_when=entity_stage_fails("Noether")))

    assert not report.gates["failed_chunks"]["passed"]
    assert report.gates["failed_chunks"]["offenders"]
    assert not report.promoted
    assert report.exit_code == 3
    assert open_current(index).version_id == good.version
    assert directory(index, report).is_dir()

    assert build(index, [corpus]).promoted


def test_a_model_that_fails_at_everything_loses_no_document(corpus: Path, index: Path) -> None:
    settings = walking_settings(gates={"max_failed_chunks": 1.0})

    report = build(index, [corpus], model=walker(fail_when=lambda request: "gone"), settings=settings)

    tables = check_invariants(directory(index, report))
    assert report.chunks["failed"] == report.chunks["total"] > 0
    assert len(tables["documents"]) == 5
    assert all(tables[name] == [] for name in GRAPH_TABLES)


# Durability within a run


def test_what_a_poll_brought_is_durable_before_the_model_works_again(corpus: Path, index: Path) -> None:
    """One transaction a poll: seen from another connection at the beginning of every poll."""
    finished: list[int] = []
    returned: list[int] = []

    def look() -> None:
        with Ledger(index, create=False) as ledger:
            usage = ledger.runs.usage()
            finished.append(sum(row["calls"] for row in usage.values()))
        returned.append(model.calls - model.in_flight)

    model = walker(per_poll=2, before_poll=look)
    build(index, [corpus], model=model, settings=walking_settings(extract={"window": 4}))

    assert returned[-1] > 10
    # Calls of chunks whose second call is still to come are counted with it.
    assert all(0 <= out - durable <= 4 for out, durable in zip(returned, finished, strict=True))


def test_a_model_that_is_gone_stops_the_run_and_the_next_run_goes_on(tmp_path: Path, index: Path) -> None:
    texts = {
        f"{number}.txt": f"Ada Lovelace wrote letter {number} to Charles Babbage." for number in range(60)
    }
    corpus = write_corpus(tmp_path / "many", texts)
    answered = 0

    def gone(request: Request) -> str | None:
        nonlocal answered
        answered += 1
        return "connection refused" if answered > 20 else None

    with pytest.raises(ModelError, match="in a row, the last with: connection refused"):
        build(index, [corpus], model=walker(fail_when=gone))
    with Ledger(index, create=False) as ledger:
        assert ledger.counts()["documents"] == 60
    with pytest.raises(StoreError, match="no build was finished yet"):
        open_current(index)

    report = build(index, [corpus], model=walker())
    assert report.promoted
    assert report.chunks["done"] == 60
    assert report.chunks["reused"] > 0
