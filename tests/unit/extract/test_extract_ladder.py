"""The ladder: what is asked in place of a call that could not give all, and how its parts come together."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.extract.ladder import Piece, halved_types
from hornbeam.extract.result import ChunkExtraction, Reason, Rung
from hornbeam.extract.stages import Extractor
from hornbeam.grammar import relations as relation_stage
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.checked import CheckedModel
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Completion, Request
from hornbeam.records import ChunkState
from hornbeam.schema.load import load_schema
from hornbeam.settings import ExtractSettings
from support.walker import GrammarWalker

try:
    embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)

GENERAL = load_schema("general")
TEXT = (
    "Ada Byron met Charles Babbage in London, and wrote to Mary Somerville. She was born in 1815. "
    "The Analytical Engine was built by Babbage; Luigi Menabrea described it in Turin in 1842. "
)
CHUNKS = {f"c{i}": f"{TEXT * 2}Number {i} was sold to Henry Hollier." for i in range(8)}
OFF: dict[str, Any] = {"retry_budget": 1, "retry_splits": 0, "retry_types": 0}


class Judge:
    """Refuses what a function of the grammar says."""

    def __init__(self, too_large: Callable[[str], bool]) -> None:
        self._too_large = too_large

    def submit(self, grammar: str) -> Future[bool]:
        verdict: Future[bool] = Future()
        verdict.set_result(self._too_large(grammar))
        return verdict


def extract(
    model: GrammarWalker, chunks: dict[str, str], too_large: Any = lambda grammar: False, **limits: Any
) -> dict[str, ChunkExtraction]:
    extractor = Extractor(CheckedModel(model, Judge(too_large)), GENERAL, ExtractSettings(**limits))
    return dict(extractor.run(chunks.items()))


class Wordy(GrammarWalker):
    """Has spent most of its tokens before it begins, so that lists end at the limit."""

    def complete(self, request: Request) -> Completion:
        return super().complete(replace(request, max_tokens=request.max_tokens // 4))


def cutting() -> GrammarWalker:
    return Wordy(7, closing=0.03)


def check_grounded(text: str, result: ChunkExtraction) -> None:
    for entity in result.entities:
        assert entity.spans
        assert all(" ".join(text[start:end].split()) == entity.name for start, end in entity.spans)
    for relation in result.relations:
        head, tail = result.entities[relation.head], result.entities[relation.tail]
        assert GENERAL.allows(relation.type, head.type, tail.type)
        assert head != tail
    for attribute in result.attributes:
        assert " ".join(text[attribute.start : attribute.end].split()) == attribute.value


def test_a_list_that_was_cut_is_asked_again_with_more_tokens() -> None:
    plain = extract(cutting(), CHUNKS, **OFF)
    assert any(Reason.ENTITIES_CUT in result.reasons for result in plain.values())
    raised = extract(cutting(), CHUNKS, **OFF | {"retry_budget": 8.0})
    for key, result in raised.items():
        if Reason.ENTITIES_CUT in plain[key].reasons:
            assert Rung.BUDGET in result.rungs
        assert (result.state is ChunkState.DONE) == (not result.reasons)
    assert sum(bool(r.reasons) for r in raised.values()) < sum(bool(r.reasons) for r in plain.values())


@pytest.mark.parametrize(
    ("rung", "setting"), [(Rung.SPLIT, {"retry_splits": 2}), (Rung.TYPES, {"retry_types": 2})]
)
def test_halves_keep_what_the_whole_found_and_stand_where_they_say(rung: Rung, setting: Any) -> None:
    plain = extract(cutting(), CHUNKS, **OFF)
    climbed = extract(cutting(), CHUNKS, **OFF | setting)
    assert any(rung in result.rungs for result in climbed.values())
    for key, result in climbed.items():
        check_grounded(CHUNKS[key], result)
        assert {e.name for e in plain[key].entities} <= {e.name for e in result.entities}
    assert sum(len(r.entities) for r in climbed.values()) > sum(len(r.entities) for r in plain.values())


def test_a_prompt_that_is_too_long_is_split_until_it_fits() -> None:
    def longest(request: Request) -> str | None:
        shown = request.prompt.count("was sold to") + request.prompt.count("met Charles")
        return "prompt of 9 tokens exceeds the context of 8" if shown > 1 else None

    model = GrammarWalker(3, closing=0.1, fail_when=longest)
    result = extract(model, {"a": CHUNKS["c0"]}, retry_splits=2)["a"]
    assert result.rungs[Rung.SPLIT] >= 1
    assert Reason.PROMPT_TOO_LONG not in result.reasons
    assert result.state is ChunkState.DONE
    check_grounded(CHUNKS["c0"], result)


def test_a_piece_that_stays_too_long_is_lost_and_said_so() -> None:
    model = GrammarWalker(3, closing=0.1)
    model.fail_when = lambda request: "it exceeds the context" if "Babbage" in request.prompt else None
    result = extract(model, {"a": CHUNKS["c0"]}, retry_splits=1)["a"]
    assert (result.state, result.reasons) == (ChunkState.FAILED, (Reason.PROMPT_TOO_LONG,))
    assert result.detail == "it exceeds the context"


def test_a_grammar_that_is_too_large_becomes_several_that_are_not() -> None:
    limit = 3500
    model = GrammarWalker(3, closing=0.1)
    results = extract(model, CHUNKS, lambda grammar: len(grammar) > limit)
    assert all(len(request.grammar or "") <= limit for request in model.requests)
    for key, result in results.items():
        assert result.rungs[Rung.GRAMMAR_SPLIT] >= 1
        assert result.state is ChunkState.DONE
        check_grounded(CHUNKS[key], result)
    firsts = [r for r in model.requests if not r.prompt.endswith(relation_stage.OPENING)]
    # The same prompt for every part: it is read from the cache.
    assert len({r.prompt for r in firsts}) == len(CHUNKS) < len(firsts)


def test_a_grammar_of_which_no_part_is_small_enough_is_a_failed_chunk() -> None:
    model = GrammarWalker(3)
    result = extract(model, {"a": TEXT}, lambda grammar: True)["a"]
    assert (result.state, result.reasons) == (ChunkState.FAILED, (Reason.GRAMMAR_TOO_LARGE,))
    assert model.calls == 0


def test_an_answer_that_is_not_of_the_form_is_not_asked_for_at_greater_length() -> None:
    class Prose(GrammarWalker):
        def complete(self, request: Request) -> Completion:
            return super().complete(replace(request, grammar=None))

    model = Prose(1)
    result = extract(model, {"a": TEXT})["a"]
    assert (result.state, result.reasons) == (ChunkState.DEGRADED, (Reason.ENTITIES_CUT,))
    assert model.calls == 1


# Pieces and types


@pytest.mark.parametrize(
    ("text", "halves"),
    [
        ("Ada met Bob, and Carl left", ["Ada met Bob, ", "and Carl left"]),
        ("one two three four", ["one two ", "three four"]),
        ("史进去寻王进。王进走了", ["史进去寻王进。", "王进走了"]),
        ("word", None),
        ("... word ...", None),
        ("", None),
    ],
)
def test_a_text_is_halved_at_the_clause_nearest_to_its_middle(text: str, halves: list[str] | None) -> None:
    pieces = Piece(0, SpanLexicon(text, 10)).halves()
    assert [piece.lexicon.text for piece in pieces] == (halves or [])
    assert [piece.start for piece in pieces] == ([0, len(halves[0])] if halves else [])


def test_halved_types_make_up_the_whole_and_end_with_one_type() -> None:
    todo, seen = [GENERAL], []
    while todo:
        schema = todo.pop()
        halves = halved_types(schema)
        assert len(halves) in (0, 2)
        todo += halves
        if not halves:
            assert len(schema.relation_types) + len(schema.attribute_types) == 1
            seen += [*schema.relation_types, *schema.attribute_types]
    assert sorted(item.name for item in seen) == sorted(
        item.name for item in (*GENERAL.relation_types, *GENERAL.attribute_types)
    )
