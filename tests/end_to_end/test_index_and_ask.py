"""Documents to answers with the embedded model: nothing on the way is replaced."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from end_to_end.conftest import DOCUMENTS, Indexed, build
from hornbeam.answer.events import AnswerText, Cited, EvidenceFound, Final
from hornbeam.answer.loop import answer_question
from hornbeam.index.embedder import Embedder
from hornbeam.llm.protocol import Completion, LanguageModel, Request
from hornbeam.retrieve.search import search
from hornbeam.settings import Settings
from support.invariants import check_invariants

pytestmark = pytest.mark.model

BORN = "In which village was Ilsabet Corvane born?"


def test_the_real_model_builds_a_graph_that_keeps_every_invariant(indexed: Indexed) -> None:
    tables = check_invariants(indexed.version.directory)
    assert len(tables["entities"]) >= 10
    assert len(tables["relations"]) >= 3
    assert {"Ilsabet Corvane", "Tolvemere"} <= {row["name"] for row in tables["entities"]}
    assert any(row["language"] == "zh" for row in tables["documents"])


def test_the_report_balances_and_names_the_rejected_file(indexed: Indexed) -> None:
    documents, chunks = indexed.report["documents"], indexed.report["chunks"]
    assert documents["indexed"] == len(DOCUMENTS)
    assert [Path(item["path"]).name for item in documents["rejected"]] == ["broken.pdf"]
    assert documents["seen"] == len(DOCUMENTS) + 1
    assert chunks["total"] == chunks["done"] + chunks["degraded"] + chunks["failed"]
    assert indexed.report["exit_code"] == 1
    assert all(gate["passed"] for gate in indexed.report["gates"].values())


def test_stage_two_reads_most_of_its_prompt_from_the_cache(indexed: Indexed) -> None:
    usage = indexed.report["tokens"]["relations"]
    assert usage["cached"] >= 0.6 * usage["prompt"]


def test_every_community_has_a_name(indexed: Indexed) -> None:
    rows = check_invariants(indexed.version.directory)["communities"]
    assert rows
    assert all(row["name"].strip() for row in rows)


def test_building_again_makes_no_model_call_and_gives_the_same_version(
    indexed: Indexed, settings: Settings, model: LanguageModel, embedder: Embedder, tmp_path: Path
) -> None:
    index = tmp_path / "copy"
    shutil.copytree(indexed.index, index)
    folder = Path(indexed.report["documents"]["rejected"][0]["path"]).parent
    again = build([folder], index, settings, model, embedder).to_json()
    assert again["tokens"] == {}
    assert again["unchanged"]
    assert again["version"] == indexed.report["version"]


def test_search_finds_the_passage_that_states_the_fact(indexed: Indexed, settings: Settings) -> None:
    result = search(indexed.kb, BORN, settings.retrieve)
    best = result.chunks[0]
    assert "born on 14 March 1951 in Ulde" in best.text
    assert best.provenance is not None
    assert {"chunk_dense", "chunk_bm25"} <= set(best.routes)
    kinds = {item.kind for item in result.items}
    assert "chunk" in kinds
    assert kinds & {"triple", "attribute"}


def test_chinese_text_is_found_by_a_chinese_question(indexed: Indexed, settings: Settings) -> None:
    result = search(indexed.kb, "澜碧港的渔民给“咸九号”起了什么名字？", settings.retrieve)
    assert all("咸九号" in chunk.text or "胡岚汀" in chunk.text for chunk in result.chunks[:2])
    assert any("铁海螺" in chunk.text for chunk in result.chunks[:2])


@pytest.mark.parametrize("style", ["extract", "sentences"])
def test_an_answer_streams_after_its_evidence_and_its_citations_quote_the_documents(
    indexed: Indexed, settings: Settings, model: LanguageModel, style: str
) -> None:
    texts = {
        row["document_id"]: row["text"] for row in check_invariants(indexed.version.directory)["documents"]
    }
    events = list(
        answer_question(
            indexed.kb, model, BORN, retrieve=settings.retrieve, answer=settings.answer, style=style
        )
    )
    assert isinstance(events[1], EvidenceFound)
    final = events[-1]
    assert isinstance(final, Final)
    assert "".join(event.text for event in events if isinstance(event, AnswerText)) == final.answer
    assert final.tokens["output"] > 0
    cited = [event.evidence for event in events if isinstance(event, Cited)]
    assert tuple(cited) == final.citations
    for piece in cited:
        if piece.document_id is not None:
            assert texts[piece.document_id][piece.start : piece.end] == piece.quote
    if style == "extract":
        assert cited
        claim = final.answer.rpartition(" [")[0]
        assert any(claim in " ".join(f"{piece.quote} {piece.text}".split()) for piece in cited)


def test_reject_mode_decides_with_a_probability(
    indexed: Indexed, settings: Settings, model: LanguageModel
) -> None:
    def final(threshold: float) -> Final:
        answer = settings.answer.model_copy(update={"mode": "reject", "answerable_threshold": threshold})
        *_, last = answer_question(indexed.kb, model, BORN, retrieve=settings.retrieve, answer=answer)
        assert isinstance(last, Final)
        return last

    accepted, refused = final(0.0), final(1.0)
    assert accepted.answerable is not None
    assert 0 < accepted.answerable < 1
    assert not accepted.rejected
    assert refused.rejected
    assert not refused.citations


def test_closing_a_stream_stops_the_model(model: LanguageModel) -> None:
    stream = model.stream(Request("endless", model.chat_prompt("Count.", "Count to a thousand."), 2000))
    next(stream)
    assert model.in_flight == 1
    stream.close()  # type: ignore[attr-defined] # a generator
    assert model.in_flight == 0


def test_a_bad_grammar_fails_alone(model: LanguageModel) -> None:
    prompt = model.chat_prompt("Say yes.", "Yes?")
    model.submit(Request("bad", prompt, 8, grammar="root ::= missing"))
    model.submit(Request("good", prompt, 8, grammar='root ::= "7"', logprobs=True))
    done: dict[str, Completion] = {}
    while model.in_flight:
        done |= {completion.request_id: completion for completion in model.poll()}
    assert done["bad"].finish_reason == "error"
    assert "missing" in done["bad"].error
    assert done["good"].text == "7"
    # One token is allowed, so its probability after the mask is 1.
    assert done["good"].tokens[0].logprob == pytest.approx(0.0, abs=1e-6)


def test_a_prompt_that_exceeds_the_context_is_an_error_not_a_crash(model: LanguageModel) -> None:
    model.submit(Request("long", "word " * 10_000, 8))
    (completion,) = model.poll()
    assert completion.finish_reason == "error"
    assert "exceeds the context" in completion.error


def test_stored_settings_name_model_schema_and_embedder(indexed: Indexed, embedder: Embedder) -> None:
    manifest = json.loads((indexed.version.directory / "manifest.json").read_text("utf-8"))
    assert manifest["model"]["name"] == "SmolLM2-135M-Instruct"
    assert manifest["schema"]["name"] == "general"
    assert manifest["embedder"]["fingerprint"] == embedder.fingerprint
    assert manifest["settings"]["chunk"]["max_tokens"] > 0
