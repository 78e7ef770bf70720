"""The extractor over a batching model: nothing is lost, the window is kept, failures are told apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.extract.result import ChunkExtraction, Reason
from hornbeam.extract.stages import Extractor
from hornbeam.grammar import relations as relation_stage
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Request
from hornbeam.records import ChunkState
from hornbeam.schema.load import load_schema
from hornbeam.schema.model import EntityType, GraphSchema
from hornbeam.settings import ExtractSettings
from support.walker import GrammarWalker

try:
    embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)

TEXT = "Ada Byron met Charles Babbage in London, and wrote to Mary Somerville. She was born in 1815."
GENERAL = load_schema("general")


def is_second(request: Request) -> bool:
    return request.prompt.endswith(relation_stage.OPENING)


def is_of(request: Request, key: str) -> bool:
    return request.request_id == key


#: Settings under which every call is made once.
NO_LADDER: dict[str, Any] = {"retry_budget": 1, "retry_splits": 0, "retry_types": 0}


def run(
    model: GrammarWalker, chunks: dict[str, str], schema: GraphSchema = GENERAL, **limits: Any
) -> dict[str, ChunkExtraction]:
    extractor = Extractor(model, schema, ExtractSettings(**limits))
    results = list(extractor.run(chunks.items()))
    assert len(results) == len(chunks)
    assert model.in_flight == 0
    return dict(results)


def find_seed() -> int:
    """A walk over TEXT that finds entities, and so makes a second call."""
    return next(s for s in range(50) if run(GrammarWalker(s, closing=0.05), {"a": TEXT})["a"].entities)


SEED = find_seed()


def walker() -> GrammarWalker:
    return GrammarWalker(SEED, closing=0.05)


def test_every_chunk_that_goes_in_comes_out_once() -> None:
    chunks = {f"c{i}": f"{TEXT} Number {i}." if i % 3 else "..." for i in range(20)}
    model = walker()
    results = run(model, chunks, window=4)
    assert set(results) == set(chunks)
    assert all(result.state is ChunkState.DONE for result in results.values())
    assert not any(result.dropped for result in results.values())  # a grammar leaves nothing to drop
    spent = [usage for result in results.values() for usage in result.usage.values()]
    assert sum(usage.calls for usage in spent) == model.calls
    assert all(usage.prompt > 0 and usage.output > 0 for usage in spent)


def test_the_result_of_a_chunk_does_not_depend_on_the_window() -> None:
    chunks = {f"c{i}": f"{TEXT} Number {i}." for i in range(6)}
    assert run(walker(), chunks, window=1) == run(walker(), chunks, window=64)


@pytest.mark.parametrize("window", [1, 3])
def test_no_more_than_the_window_is_in_flight_and_the_source_is_not_read_ahead(window: int) -> None:
    model = walker()
    taken = finished = 0
    most = 0

    def source() -> Iterator[tuple[str, str]]:
        nonlocal taken, most
        for i in range(9):
            taken += 1
            most = max(most, taken - finished)
            yield f"c{i}", f"{TEXT} Number {i}."

    for _ in Extractor(model, GENERAL, ExtractSettings(window=window)).run(source()):
        finished += 1
    assert model.peak == window
    # While a finished chunk is handed out it still counts as taken.
    assert most <= window
    assert taken == finished == 9


def test_nothing_is_read_or_asked_before_the_first_result_is_wanted() -> None:
    model = walker()

    source = iter([("a", TEXT)])
    Extractor(model, GENERAL, ExtractSettings()).run(source)
    assert model.calls == 0
    assert next(source) == ("a", TEXT)


def test_a_chunk_without_words_is_done_without_a_call() -> None:
    model = walker()
    for result in run(model, {"empty": "", "marks": "...!?\n\n–"}).values():
        assert result == ChunkExtraction()
    assert model.calls == 0


def test_a_schema_that_allows_no_relation_needs_no_second_call() -> None:
    bare = GraphSchema(name="bare", entity_types=(EntityType(name="thing"),))
    chunks = {f"c{i}": f"{TEXT} {i}" for i in range(4)}
    model = walker()
    results = run(model, chunks, bare)
    assert any(result.entities for result in results.values())
    assert model.calls == 4
    assert not any(is_second(request) for request in model.requests)


def test_a_failed_call_is_tried_again_and_leaves_no_trace_but_its_cost() -> None:
    model = walker()
    undisturbed = run(walker(), {"a": TEXT})["a"]
    failed: list[Request] = []

    def fail_once(request: Request) -> str | None:
        if request in failed:
            return None
        failed.append(request)
        return "hiccup"

    model.fail_when = fail_once
    result = run(model, {"a": TEXT}, retries=1)["a"]
    assert result.model_copy(update={"usage": {}}) == undisturbed.model_copy(update={"usage": {}})
    assert {stage: usage.calls for stage, usage in result.usage.items()} == {"entities": 2, "relations": 2}


@pytest.mark.parametrize("retries", [0, 2])
def test_a_call_that_fails_every_time_is_a_failed_chunk_after_the_retries(retries: int) -> None:
    model = walker()
    model.fail_when = lambda request: "the engine is on fire" if is_of(request, "bad") else None
    results = run(model, {"good": TEXT, "bad": TEXT, "other": TEXT}, retries=retries)
    bad = results["bad"]
    assert (bad.state, bad.reasons) == (ChunkState.FAILED, (Reason.MODEL_ERROR,))
    assert bad.detail == "the engine is on fire"
    assert sum(is_of(request, "bad") for request in model.requests) == 1 + retries
    assert results["good"].state is results["other"].state is ChunkState.DONE


def test_a_failed_second_stage_keeps_the_entities_as_degraded() -> None:
    model = walker()
    model.fail_when = lambda request: "lost" if is_second(request) else None
    result = run(model, {"a": TEXT})["a"]
    assert result.state is ChunkState.DEGRADED
    assert result.reasons == (Reason.MODEL_ERROR,)
    assert result.entities
    assert not result.relations


def test_a_chunk_that_does_not_fit_the_context_says_so() -> None:
    model = GrammarWalker(SEED, max_model_len=1500)
    result = run(model, {"long": "word " * 2000}, **NO_LADDER)["long"]
    assert (result.state, result.reasons) == (ChunkState.FAILED, (Reason.PROMPT_TOO_LONG,))


def test_cut_answers_keep_what_was_complete_and_say_which_list_was_cut() -> None:
    chunks = {f"c{i}": f"{TEXT * 4} Number {i}." for i in range(12)}
    results = run(GrammarWalker(SEED, closing=0.01), chunks, max_output_tokens=48, **NO_LADDER)
    reasons = {reason for result in results.values() for reason in result.reasons}
    assert Reason.ENTITIES_CUT in reasons
    for result in results.values():
        assert (result.state is ChunkState.DEGRADED) == bool(result.reasons)
        assert not result.detail
    assert any(result.entities for result in results.values() if Reason.ENTITIES_CUT in result.reasons)


def test_progress_is_told_while_the_model_fails() -> None:
    model = walker()
    model.fail_when = lambda request: "down"
    told: list[int] = []
    extractor = Extractor(model, GENERAL, ExtractSettings(window=2))
    results = dict(extractor.run(((f"c{i}", TEXT) for i in range(5)), told.append))
    assert {result.state for result in results.values()} == {ChunkState.FAILED}
    assert told[0] == max(told) == 2
    assert len(told) >= 3


def test_a_context_too_small_for_a_full_chunk_is_refused_beforehand() -> None:
    extractor = Extractor(GrammarWalker(max_model_len=2048), GENERAL, ExtractSettings(max_output_tokens=400))
    room = 2048 - extractor.prompts.of("").fixed_tokens - 800
    extractor.check_room(room)
    with pytest.raises(ModelError, match=r"lower chunk\.max_tokens"):
        extractor.check_room(room + 1)
