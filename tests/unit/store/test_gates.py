"""Every gate against tables that are right, and tables with one thing wrong."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hornbeam.records import AttributeEvidence, Chunk, CommunityMember, RelationEvidence
from hornbeam.schema import GraphSchema
from hornbeam.settings import GateSettings
from hornbeam.store.gates import Gate, evaluate_gates
from support.version_by_hand import ENTITIES, RELATIONS, small_rows, write_tables

Rows = dict[str, list[Any]]


def _schema() -> GraphSchema:
    types = sorted({kind for _, kind, _ in ENTITIES.values()})
    kind_of = {entity_id: kind for entity_id, (_, kind, _) in ENTITIES.items()}
    return GraphSchema.model_validate(
        {
            "name": "by hand",
            "entity_types": [{"name": kind} for kind in types],
            "relation_types": [
                {"name": name, "domain": [kind_of[head]], "range": [kind_of[tail]]}
                for head, name, tail, _ in RELATIONS.values()
            ],
            "attribute_types": [{"name": "workplace", "domain": ["person"]}],
        }
    )


STORES = {"vectors/entities.faiss": "", "graph/mentions.npz": ""}


def gates_of(
    tmp_path: Path,
    rows: Rows,
    settings: GateSettings | None = None,
    stores: dict[str, str] = STORES,
) -> dict[str, Gate]:
    directory = write_tables(tmp_path / "version", rows)
    gates = evaluate_gates(directory, _schema(), settings or GateSettings(), stores)
    return {gate.name: gate for gate in gates}


def change(rows: Rows, table: str, place: int, **values: Any) -> None:
    rows[table][place] = replace(rows[table][place], **values)


def test_a_sound_version_passes_every_gate(tmp_path: Path) -> None:
    gates = gates_of(tmp_path, small_rows())

    assert {name for name, gate in gates.items() if not gate.passed} == set()
    assert set(gates) == {
        "schema_violations", "dangling_edges", "grounding", "coverage", "degraded_chunks", "failed_chunks",
        "duplicate_compression", "store_consistency",
    }  # fmt: skip
    assert all(gate.offenders == () for gate in gates.values())


def test_a_version_without_rows_passes_every_gate(tmp_path: Path) -> None:
    gates = gates_of(tmp_path, {})

    assert all(gate.passed for gate in gates.values())


Break = Callable[[Rows], None]


@pytest.mark.parametrize(
    ("break_it", "offender"),
    [
        (lambda rows: change(rows, "entities", 3, type="planet"), "e4"),
        # e1 discovered e4 (an element), now a city: out of range.
        (lambda rows: change(rows, "relations", 2, tail_id="e2"), "r3"),
        # e2, a city, is no person: out of domain.
        (lambda rows: change(rows, "relations", 0, head_id="e2", tail_id="e2"), "r1"),
        (lambda rows: change(rows, "relations", 1, type="twinned_with"), "r2"),
        (lambda rows: change(rows, "attributes", 0, type="height"), "a1"),
        (lambda rows: change(rows, "attributes", 0, entity_id="e2"), "a1"),
    ],
    ids=["entity type", "range", "domain", "relation type", "attribute type", "attribute domain"],
)
def test_what_the_schema_does_not_allow_is_counted_and_named(
    tmp_path: Path, break_it: Break, offender: str
) -> None:
    rows = small_rows()
    break_it(rows)

    gate = gates_of(tmp_path, rows)["schema_violations"]

    assert not gate.passed
    assert gate.value >= 1
    assert offender in gate.offenders


@pytest.mark.parametrize(
    ("break_it", "offender"),
    [
        (lambda rows: change(rows, "relations", 0, head_id="gone"), "r1"),
        (lambda rows: change(rows, "relations", 1, tail_id="gone"), "r2"),
        (lambda rows: change(rows, "attributes", 0, entity_id="gone"), "a1"),
        (lambda rows: change(rows, "mentions", 0, entity_id="gone"), "gone"),
        (lambda rows: rows["relation_evidence"].append(RelationEvidence("rx", "d1c0", 0.5, None)), "rx"),
        (lambda rows: change(rows, "relation_evidence", 2, chunk_id="gone"), "r3"),
        (lambda rows: rows["attribute_evidence"].append(AttributeEvidence("ax", "d1c0", 0, 1, 0.5)), "ax"),
        (lambda rows: change(rows, "attribute_evidence", 0, chunk_id="gone"), "a1"),
        (lambda rows: rows["community_members"].append(CommunityMember("k1", "ex")), "ex"),
        (lambda rows: rows["community_members"].append(CommunityMember("kx", "e1")), "kx"),
        (lambda rows: change(rows, "communities", 1, parent_id="gone"), "k2"),
    ],
)
def test_a_reference_to_nothing_is_counted_and_named(tmp_path: Path, break_it: Break, offender: str) -> None:
    rows = small_rows()
    break_it(rows)

    gate = gates_of(tmp_path, rows)["dangling_edges"]

    assert not gate.passed
    assert gate.value == 1
    assert gate.offenders == (offender,)


@pytest.mark.parametrize(
    "change_to",
    [{"start": 1}, {"surface": "Someone else"}, {"chunk_id": "gone"}, {"end": 10_000}],
    ids=["offset", "surface", "chunk", "past the end"],
)
def test_a_mention_that_does_not_stand_in_its_chunk_is_not_grounded(
    tmp_path: Path, change_to: dict[str, Any]
) -> None:
    rows = small_rows()
    change(rows, "mentions", 0, **change_to)

    gate = gates_of(tmp_path, rows)["grounding"]

    assert not gate.passed
    assert gate.value == pytest.approx(1 - 1 / len(rows["mentions"]))
    assert gate.offenders == (rows["mentions"][0].surface,)


def test_offsets_count_code_points_not_letters_as_people_see_them(tmp_path: Path) -> None:
    rows = small_rows()
    text = "👩‍👩‍👧 e\u0301 北京 Marie Curie"
    rows["chunks"][0] = replace(rows["chunks"][0], text=text)
    start = text.index("Marie")
    rows["mentions"] = [
        replace(rows["mentions"][0], start=start, end=start + 11),
        replace(rows["mentions"][0], start=6, end=8, surface="e\u0301"),
    ]

    assert gates_of(tmp_path, rows)["grounding"].passed


@pytest.mark.parametrize(
    "members",
    [
        lambda rows: rows["community_members"].pop(),
        lambda rows: rows["community_members"].append(CommunityMember("k1", "e5")),
    ],
    ids=["in none", "in two"],
)
def test_an_entity_in_no_or_two_leaves_is_not_covered(tmp_path: Path, members: Callable[[Rows], Any]) -> None:
    rows = small_rows()
    members(rows)

    gate = gates_of(tmp_path, rows)["coverage"]

    assert not gate.passed
    assert gate.value == pytest.approx(4 / 5)
    assert gate.offenders == ("e5",)


@pytest.mark.parametrize(("state", "name"), [("degraded", "degraded_chunks"), ("failed", "failed_chunks")])
def test_too_large_a_share_of_chunks_that_lost_something_is_refused(
    tmp_path: Path, state: str, name: str
) -> None:
    rows = small_rows()
    chunk: Chunk = rows["chunks"][1]
    change(rows, "chunks", 1, state=state)

    strict = gates_of(tmp_path / "a", rows, GateSettings(max_degraded_chunks=0.2, max_failed_chunks=0.2))
    lenient = gates_of(tmp_path / "b", rows, GateSettings(max_degraded_chunks=0.25, max_failed_chunks=0.25))

    assert (strict[name].value, strict[name].threshold) == (0.25, 0.2)
    assert not strict[name].passed
    assert lenient[name].passed
    assert strict[name].offenders == (chunk.chunk_id,)


def test_stores_that_do_not_match_their_tables_are_named(tmp_path: Path) -> None:
    wrong = STORES | {"vectors/chunks.faiss": "3 rows where the table has 4"}
    gate = gates_of(tmp_path, small_rows(), stores=wrong)["store_consistency"]

    assert not gate.passed
    assert gate.value == pytest.approx(2 / 3)
    assert gate.offenders == ("vectors/chunks.faiss: 3 rows where the table has 4",)


def test_compression_is_reported_and_never_refuses(tmp_path: Path) -> None:
    rows = small_rows()
    rows["mentions"] = rows["mentions"][:1]  # fewer mentions than entities

    gate = gates_of(tmp_path, rows)["duplicate_compression"]

    assert gate.value == pytest.approx(1 / 5)
    assert gate.passed


def test_a_gate_is_reported_with_value_threshold_verdict_and_offenders(tmp_path: Path) -> None:
    rows = small_rows()
    change(rows, "entities", 3, type="planet")

    gates = gates_of(tmp_path, rows)

    assert gates["grounding"].to_json() == {"value": 1.0, "threshold": 1.0, "passed": True}
    assert gates["schema_violations"].to_json() == {
        "value": 2.0,  # the entity, and the relation that leads to it
        "threshold": 0.0,
        "passed": False,
        "offenders": ["e4", "r3"],
    }


def test_evidence_without_an_answer_is_a_gate_when_facts_are_verified(tmp_path: Path) -> None:
    rows = small_rows()
    answered = [replace(row, verified=True) for row in rows["relation_evidence"]]
    rows["relation_evidence"] = [replace(answered[0], verified=None), *answered[1:]]
    rows["attribute_evidence"] = [replace(row, verified=False) for row in rows["attribute_evidence"]]
    directory = write_tables(tmp_path / "version", rows)
    evidence = len(answered) + len(rows["attribute_evidence"])

    def unverified(threshold: float) -> Gate:
        settings = GateSettings(max_unverified_facts=threshold)
        gates = evaluate_gates(directory, _schema(), settings, STORES, verified=True)
        return next(gate for gate in gates if gate.name == "unverified_facts")

    assert unverified(0.05).value == pytest.approx(1 / evidence)
    assert not unverified(0.05).passed
    assert unverified(0.05).offenders == (answered[0].relation_id,)
    assert unverified(1.0).passed
