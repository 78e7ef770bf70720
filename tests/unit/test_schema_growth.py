"""From a build that asks for types to a build with a new one and back, with a model of script and chance."""

from pathlib import Path
from typing import Any

import pytest

from hornbeam.build import BuildReport
from hornbeam.errors import HornbeamError, SchemaError, StoreError, UsageError
from hornbeam.evolve.accepting import accept_proposals, grown_schema, read_proposals
from hornbeam.evolve.touching import Touch
from hornbeam.opening import open_schema
from hornbeam.pipeline import inheritance
from hornbeam.schema import GraphSchema, difference, load_schema
from hornbeam.settings import Settings, load_settings
from hornbeam.store.ledger import Ledger
from hornbeam.store.schemas import accepted_file, accepted_schema, undo_schema
from support.building import build, table, table_bytes, walking_settings
from support.invariants import check_invariants
from support.type_scripts import TypeScript, asks_for_types

SHIPS = {
    "one.txt": "The schooner Petrel left Marrow Bay. Ada Veil sailed the Petrel for nine years.",
    "two.txt": "Osterby saw the schooner Lark in 1931. Its captain was Ines Ravel of Quillhaven.",
    # Says nothing of a schooner, but holds a name that was said to be one.
    "three.txt": "In the harbour of Osterby lay the Lark, painted green, and nobody knew why.",
    # Two that no sign touches.
    "four.txt": "Aldo Brenn wrote a novel about glass. The Larch Prize was given to him in 1979.",
    "five.txt": "Castel College teaches music in Quillhaven. Olga Ravel studied there until 2004.",
}
KNOWN = {"name": "general", "entity_types": [{"name": "person"}, {"name": "place"}]}
SCHEMA = GraphSchema.model_validate(
    KNOWN | {"relation_types": [{"name": "born_in", "domain": ["person"], "range": ["place"]}]}
)
EVOLVING = {
    "enabled": True,
    "min_confidence": 0.5,
    "min_support": 2,
    "touch_similarity": 1.0,
    "touch_share": 0.0,
}


def ships(text: str) -> list[list[str]]:
    return [[name, "schooner"] for name in ("Petrel", "Lark") if f"schooner {name}" in text]


def script(**options: Any) -> TypeScript:
    return TypeScript(ships, lambda text: ([], []), **options)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name, text in SHIPS.items():
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"


def settings(**evolve: Any) -> Settings:
    return walking_settings(chunk={"max_tokens": 64, "overlap_tokens": 8}, evolve=EVOLVING | evolve)


def run(index: Path, corpus: Path, model: TypeScript, *, schema: GraphSchema, **evolve: Any) -> BuildReport:
    return build(index, [corpus], model=model, schema=schema, settings=settings(**evolve))


def extracted(model: TypeScript) -> set[str]:
    """The documents that the model was asked to extract something from."""
    prompts = [request.prompt for request in model.requests if not asks_for_types(request)]
    extracting = [prompt for prompt in prompts if '{"entities":[' in prompt]
    return {name for name, text in SHIPS.items() if any(text in prompt for prompt in extracting)}


def test_a_build_collects_proposals_and_leaves_the_schema_alone(corpus: Path, index: Path) -> None:
    plain = run(index, corpus, script(), schema=SCHEMA, enabled=False)
    model = script()

    report = run(index, corpus, model, schema=SCHEMA)

    assert plain.proposals is None
    assert report.version == plain.version
    assert all(asks_for_types(request) for request in model.requests)
    proposals = report.proposals
    assert proposals is not None
    assert proposals["passing"] == ["entity schooner"]
    assert (proposals["chunks"], proposals["reused"], proposals["failed"]) == (5, 0, 0)
    assert report.tokens["proposals"]["calls"] == proposals["questions"] == model.calls
    (judged,) = read_proposals(index, settings().evolve).proposals
    proposal = judged.proposal
    assert (proposal.name, proposal.support, proposal.nearest is None) == ("schooner", 2, False)
    for example in proposal.examples:
        (chunk,) = (
            row for row in table(index, report.version, "chunks") if row["chunk_id"] == example.chunk_id
        )
        (place,) = example.places
        assert chunk["text"][place.start : place.end] == place.surface
    assert accepted_schema(index) is None


def test_answers_are_kept_and_failed_questions_asked_again(corpus: Path, index: Path) -> None:
    def unlucky(request: Any) -> str | None:
        return "down" if asks_for_types(request) and "Lark in 1931" in request.prompt else None

    first = run(index, corpus, script(fail_when=unlucky), schema=SCHEMA)
    model = script()
    second = run(index, corpus, model, schema=SCHEMA)
    third = run(index, corpus, script(), schema=SCHEMA)

    assert first.proposals is not None
    assert second.proposals is not None
    assert third.proposals is not None
    assert first.proposals["failed"] > 0
    assert first.exit_code == 1
    assert first.proposals["passing"] == []  # one document is not enough
    assert model.calls == first.proposals["failed"]
    assert second.proposals["passing"] == ["entity schooner"]
    assert third.proposals["reused"] == third.proposals["questions"]
    assert third.tokens == {}


def test_a_sample_is_drawn_by_content(corpus: Path, index: Path) -> None:
    first = run(index, corpus, script(), schema=SCHEMA, max_chunks=3)
    (corpus / "six.txt").write_text("Something new, of nobody.", "utf-8")
    second = run(index, corpus, script(), schema=SCHEMA, max_chunks=3)

    assert first.proposals is not None
    assert second.proposals is not None
    assert (first.proposals["chunks"], second.proposals["chunks"]) == (3, 3)
    assert second.proposals["reused"] >= second.proposals["questions"] // 2


def test_only_touched_chunks_are_extracted_again_and_undo_leaves_nothing_of_the_type(
    corpus: Path, index: Path
) -> None:
    first = run(index, corpus, script(), schema=SCHEMA)
    accepted = accept_proposals(index, [], settings().evolve)
    assert accepted.path == index / "schemas" / "general-v2.json"
    assert load_schema(str(accepted.path)) == accepted.schema == accepted_schema(index)
    model = script()

    second = run(index, corpus, model, schema=accepted.schema, enabled=False)

    # Proposed there, proposed there, a thing of the type stands there.
    assert extracted(model) == {"one.txt", "two.txt", "three.txt"}
    assert second.chunks["reused_from_parent"] == second.chunks["reused"] == 2
    assert second.version != first.version
    tables = check_invariants(index / "versions" / str(second.version))
    assert "schooner" in {row["type"] for row in tables["entities"]}

    again = script()
    same = run(index, corpus, again, schema=accepted.schema, enabled=False)
    assert (again.calls, same.version) == (0, second.version)
    assert same.chunks["reused_from_parent"] == 2

    undone, before = undo_schema(index)
    assert (undone, before.hash()) == (accepted.schema, SCHEMA.hash())
    back = script()
    third = run(index, corpus, back, schema=before, enabled=False)
    assert back.calls == 0
    assert third.version == first.version
    assert "schooner" not in {row["type"] for row in table(index, third.version, "entities")}


def test_everything_is_extracted_again_when_asked_for(corpus: Path, index: Path) -> None:
    run(index, corpus, script(), schema=SCHEMA)
    grown = accept_proposals(index, ["schooner"], settings().evolve).schema
    touched = run(index, corpus, script(), schema=grown, enabled=False)
    model = script()

    everything = run(index, corpus, model, schema=grown, enabled=False, reextract="all")

    assert extracted(model) == {"four.txt", "five.txt"}
    assert everything.chunks["reused_from_parent"] == 0
    assert everything.version != touched.version
    fresh = run(index.parent / "fresh", corpus, script(), schema=grown, enabled=False)
    assert table_bytes(index, everything.version) == table_bytes(index.parent / "fresh", fresh.version)


def test_a_text_like_the_new_type_is_touched(corpus: Path, index: Path) -> None:
    run(index, corpus, script(), schema=SCHEMA)
    grown = accept_proposals(index, ["schooner"], settings().evolve).schema
    model = script()

    run(index, corpus, model, schema=grown, enabled=False, touch_similarity=0.0)

    assert extracted(model) == set(SHIPS)


def test_likeness_is_measured_on_the_texts_in_which_the_type_was_seen(
    corpus: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(index, corpus, script(), schema=SCHEMA)
    grown = accept_proposals(index, ["schooner"], settings().evolve).schema
    given: list[tuple[Any, ...]] = []

    def watched(*arguments: Any) -> Touch:
        given.append(arguments[-3:])
        return Touch(*arguments)

    monkeypatch.setattr(inheritance, "Touch", watched)
    run(index, corpus, script(), schema=grown, enabled=False, touch_similarity=0.9, touch_share=0.5)

    ((similarity, seen, share),) = given
    assert (similarity, share) == (0.9, 0.5)
    assert {key: set(texts) for key, texts in seen.items()} == {
        ("entity", "schooner"): {SHIPS["one.txt"], SHIPS["two.txt"]}
    }


def test_a_schema_that_lost_a_type_takes_nothing_over(corpus: Path, index: Path) -> None:
    run(index, corpus, script(), schema=SCHEMA)
    accepted = accept_proposals(index, ["schooner"], settings().evolve)
    text = accepted.path.read_text("utf-8").replace('"name": "place"', '"name": "harbour"')
    accepted.path.write_text(text.replace('"place"', '"harbour"'), "utf-8")
    edited = accepted_schema(index)
    assert edited is not None
    model = script()

    report = run(index, corpus, model, schema=edited, enabled=False)

    assert extracted(model) == set(SHIPS)
    assert report.chunks["reused_from_parent"] == 0


def test_new_documents_are_extracted_under_the_new_schema(corpus: Path, index: Path) -> None:
    run(index, corpus, script(), schema=SCHEMA)
    grown = accept_proposals(index, ["schooner"], settings().evolve).schema
    (corpus / "six.txt").write_text("Nobody has read this before.", "utf-8")

    report = run(index, corpus, script(), schema=grown, enabled=False)

    assert report.chunks["reused_from_parent"] == 2
    assert report.chunks["total"] == 6


def test_results_that_were_sealed_are_taken_over_too(corpus: Path, index: Path) -> None:
    run(index, corpus, script(), schema=SCHEMA)
    with Ledger(index, create=False) as ledger:
        ledger.seal(rows=1)
    grown = accept_proposals(index, ["schooner"], settings().evolve).schema

    report = run(index, corpus, script(), schema=grown, enabled=False)

    assert report.chunks["reused_from_parent"] == 2
    check_invariants(index / "versions" / str(report.version))


# Accepting and undoing


def test_the_difference_an_acceptance_would_make_is_shown_before(corpus: Path, index: Path) -> None:
    run(index, corpus, script(), schema=SCHEMA)

    before, after = grown_schema(index, settings().evolve)

    assert before == SCHEMA
    lines = [line for change in difference(before, after) for line in change.lines()]
    assert lines == ["+ entity schooner: such as Petrel, Lark"]
    assert accepted_file(index) is None


def test_names_are_checked_and_nothing_is_written_when_they_are_wrong(corpus: Path, index: Path) -> None:
    run(index, corpus, script(), schema=SCHEMA)
    evolve = settings().evolve
    strict = settings(min_support=3).evolve

    with pytest.raises(UsageError, match="'shooner' is not proposed; did you mean 'schooner'"):
        accept_proposals(index, ["shooner"], evolve)
    with pytest.raises(UsageError, match="did not pass the gates: support 2 below 3"):
        accept_proposals(index, ["schooner"], strict)
    with pytest.raises(UsageError, match="none of 1 proposals passes"):
        accept_proposals(index, [], strict)
    taken = index.parent / "taken.json"
    taken.touch()
    with pytest.raises(UsageError, match="exists already"):
        accept_proposals(index, ["schooner"], evolve, output=taken)
    assert not (index / "schemas").exists()

    copy = index.parent / "copy.json"
    accepted = accept_proposals(index, ["entity:schooner"], strict, force=True, output=copy)
    assert load_schema(str(copy)) == accepted.schema
    with pytest.raises(UsageError, match="'schooner' is not proposed"):
        accept_proposals(index, ["schooner"], evolve)


def test_where_nothing_was_asked_nothing_is_proposed(corpus: Path, index: Path) -> None:
    with pytest.raises(StoreError, match="is no index"):
        read_proposals(index, settings().evolve)
    run(index, corpus, script(), schema=SCHEMA, enabled=False)
    with pytest.raises(StoreError, match="nothing is proposed"):
        read_proposals(index, settings().evolve)
    with pytest.raises(StoreError, match="nothing to undo"):
        undo_schema(index)


def test_what_was_undone_and_accepted_again_is_the_same_version(corpus: Path, index: Path) -> None:
    run(index, corpus, script(), schema=SCHEMA)
    first = accept_proposals(index, ["schooner"], settings().evolve)
    undo_schema(index)
    with pytest.raises(StoreError, match="is the first one"):
        undo_schema(index)

    second = accept_proposals(index, ["schooner"], settings().evolve)

    assert second == first
    assert sorted(path.name for path in (index / "schemas").glob("*.json")) == [
        "general-v1.json",
        "general-v2.json",
    ]


def test_the_accepted_schema_is_used_unless_one_is_given(corpus: Path, index: Path) -> None:
    default = load_settings(environment={})
    given = load_settings(overrides={"schema_file": "medical"}, environment={})
    assert open_schema(index, default) == (load_schema("general"), "")
    run(index, corpus, script(), schema=SCHEMA)
    grown = accept_proposals(index, ["schooner"], settings().evolve).schema

    used, said = open_schema(index, default)
    assert (used, said) == (grown, "schema 'general' version 2, accepted for this index")
    other, said = open_schema(index, given)
    assert other.name == "medical"
    assert "version 2, which was accepted for this index, is not used" in said

    (index / "schemas" / "general-v2.json").write_text("{}", "utf-8")
    with pytest.raises(SchemaError) as error:
        open_schema(index, default)
    assert isinstance(error.value, HornbeamError)
