"""Plans: every walk through the grammar is one, and a plan's sub-questions come to a cited answer."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("xgrammar")

from hornbeam.answer.events import (
    Cited,
    Event,
    EvidenceFound,
    Final,
    Planned,
    Stepped,
    SubQuestionFinished,
    SubQuestionStarted,
)
from hornbeam.answer.loop import answer_question
from hornbeam.answer.plans import SubQuestion, parse_plan, plan_grammar, put_in
from hornbeam.llm.protocol import LanguageModel, Request
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import AnswerSettings, RetrieveSettings
from support.scripted_model import ScriptedModel
from support.walker import GrammarWalker

TYPES = ["person", "city", 'a "quoted" type', "地点"]
QUESTION = "Where was the discoverer of polonium born?"


def is_valid(plan: tuple[SubQuestion, ...], types: list[str], limit: int) -> bool:
    return (
        1 <= len(plan) <= limit
        and [one.number for one in plan] == list(range(1, len(plan) + 1))
        and all(set(one.types) <= set(types) for one in plan)
        and all(rest < one.number for one in plan for rest in one.depends_on)
        and all(re.search(r"\w", one.text) for one in plan)
    )


QUESTIONS = st.one_of(
    st.sampled_from([QUESTION, "澜碧港的渔民给“咸九号”起了什么名字？", "", '"\\', "#1 #2?"]),
    st.text(max_size=40),
)


@settings(max_examples=12)
@given(QUESTIONS, st.integers(1, 5), st.integers(0, 10**6), st.booleans())
def test_every_walk_through_the_grammar_is_a_valid_plan(
    question: str, limit: int, seed: int, any_words: bool
) -> None:
    grammar = plan_grammar(question, TYPES, limit, any_words=any_words)
    walker = GrammarWalker(seed=seed, closing=0.3)
    done = walker.complete(Request("p", question, 4000, grammar=grammar))
    assert done.finish_reason == "stop", done.error
    plan = parse_plan(done.text)
    assert is_valid(plan, TYPES, limit), done.text
    for cut in (len(done.text) // 2, len(done.text) - 3):  # a token limit may end it anywhere
        assert parse_plan(done.text[:cut]) == plan[: len(parse_plan(done.text[:cut]))]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ('{"questions":[["node",[],"a?"],["triple",["x"],"b #1?"]]}', [1, 2]),
        ('{"questions":[["node",[],"a?"],["triple",["x"],"b #2?"]]}', [1]),  # rests on itself
        ('{"questions":[["planet",[],"a?"]]}', []),
        ('{"questions":[["node",[],"a?"],["triple"', [1]),
        ("no plan", []),
        ("", []),
    ],
)
def test_what_is_no_sub_question_ends_the_plan(text: str, numbers: list[int]) -> None:
    assert [one.number for one in parse_plan(text)] == numbers


def test_a_sub_question_that_is_asked_again_is_the_first_one() -> None:
    plan = parse_plan(
        '{"questions":[["node",["person"],"Who is it?"],["node",["city"],"who is it?"],'
        '["triple",[],"Where was #2 born?"],["triple",[],"Where was #1 born?"],["node",[],"When was #3?"]]}'
    )
    assert plan == (
        SubQuestion(1, "Who is it?", "node", ("person",), ()),
        SubQuestion(2, "Where was #1 born?", "triple", (), (1,)),
        SubQuestion(3, "When was #2?", "node", (), (2,)),
    )


def test_answers_are_put_in_for_their_marks() -> None:
    assert put_in("Where was #1 born, and #2?", {1: "Marie Curie"}) == "Where was Marie Curie born, and #2?"


def ask(kb: KnowledgeBase, model: LanguageModel, question: str = QUESTION, **answer: Any) -> list[Event]:
    return list(
        answer_question(
            kb,
            model,
            question,
            retrieve=RetrieveSettings(),
            answer=AnswerSettings().model_copy(update=answer),
            engine="plan",
            style="extract",
        )
    )


def only(events: list[Event], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def script(plan: str, *replies: str) -> ScriptedModel:
    """Plans, answers every sub-question from its first piece, then says the replies, the last for ever."""
    left = list(replies)
    said: dict[str, str] = {}

    def say(request: Request) -> str:
        if request.request_id not in said:
            said[request.request_id] = one(request)
        return said[request.request_id]

    def one(request: Request) -> str:
        if "Types:" in request.prompt:
            return plan
        if "sub_questions" in request.request_id:
            asked = request.prompt.rsplit("Question:", 1)[-1]
            label = re.findall(r"\[(\d+)\]", request.prompt)[-1]
            return f"Marie Curie [{label}]" if "polonium" in asked else f"Warsaw [{label}]"
        return left.pop(0) if len(left) > 1 else left[0]

    return ScriptedModel(say)


TWO_STEPS = (
    '{"questions":[["triple",["person"],"Who discovered polonium?"],["node",["city"],"Where was #1 born?"]]}'
)


def test_a_question_that_rests_on_another_is_asked_with_its_answer(kb: KnowledgeBase) -> None:
    events = ask(kb, script(TWO_STEPS, "answer: Warsaw [1]"))
    (planned,) = only(events, Planned)
    assert [one.depends_on for one in planned.sub_questions] == [(), (1,)]
    started = only(events, SubQuestionStarted)
    assert [one.question for one in started] == ["Who discovered polonium?", "Where was Marie Curie born?"]
    finished = only(events, SubQuestionFinished)
    assert [one.answer for one in finished] == ["Marie Curie", "Warsaw"]
    assert all(one.labels for one in finished)
    assert isinstance(events[1], EvidenceFound)  # for the question itself, before the plan
    final = events[-1]
    assert isinstance(final, Final)
    assert final.answer == "Warsaw [1]"
    assert [cited.evidence.label for cited in only(events, Cited)] == [1]


def test_the_sub_questions_of_a_frontier_are_with_the_model_together(kb: KnowledgeBase) -> None:
    plan = '{"questions":[["node",[],"Who discovered polonium?"],["node",[],"Where is Warsaw?"],' + (
        '["node",[],"Where is Poland?"]]}'
    )
    model = script(plan, "answer: Warsaw [1]")
    ask(kb, model)
    assert model.peak == 3


def test_a_simple_question_stays_one(kb: KnowledgeBase) -> None:
    events = ask(kb, script('{"questions":[["triple",["person"],"Who discovered it?"]]}', "answer: x [1]"))
    (planned,) = only(events, Planned)
    assert [one.text for one in planned.sub_questions] == [QUESTION]
    assert not only(events, SubQuestionStarted)


def test_a_search_brings_new_evidence_and_the_loop_ends_with_an_answer(kb: KnowledgeBase) -> None:
    model = script("{}", "search: capital of Poland", "answer: Warsaw [1]")
    events = ask(kb, model, evidence_tokens=70)
    steps = only(events, Stepped)
    assert [step.action for step in steps][:1] == ["search"]
    assert steps[0].query == "capital of Poland"
    found = [event for event in only(events, EvidenceFound) if event.step == 1]
    assert len(found[0].evidence) == steps[0].new_evidence
    assert steps[-1].action == "answer"
    assert isinstance(events[-1], Final)
    assert not events[-1].rejected


EVERYTHING = "Marie Curie Warsaw polonium Poland 北京"


@pytest.mark.parametrize(
    ("queries", "reason"),
    [
        ([QUESTION], "the query repeats"),
        (["discoverer polonium born"], "the query repeats"),
        ([EVERYTHING, f"{EVERYTHING} again", f"{EVERYTHING} once more again"], "nothing new was found"),
    ],
)
def test_the_loop_stops_where_it_does_not_get_on(kb: KnowledgeBase, queries: list[str], reason: str) -> None:
    model = script("{}", *(f"search: {query}" for query in queries), "Warsaw [1]")
    steps = only(ask(kb, model, evidence_tokens=4000), Stepped)
    assert reason in [step.reason for step in steps if step.action == "stop"]
    assert steps[-1].action == "answer"


def test_the_steps_are_bounded_and_the_last_one_answers(kb: KnowledgeBase) -> None:
    words = iter(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])
    replies = [f"search: Curie {word}" for word in words]
    events = ask(kb, script("{}", *replies), max_steps=3, evidence_tokens=60)
    steps = only(events, Stepped)
    assert max(step.number for step in steps) <= 3
    assert steps[-1].action == "answer"


def test_reject_mode_searches_before_it_declines(kb: KnowledgeBase) -> None:
    walker = GrammarWalker(seed=3)
    events = ask(kb, walker, mode="reject", answerable_threshold=1.0, evidence_tokens=64)
    final = events[-1]
    assert isinstance(final, Final)
    assert final.rejected
    assert final.answerable is not None
    assert not only(events, Cited)
    assert only(events, Stepped)[-1].action == "stop"


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("words", ["question", "any"])
def test_whatever_the_model_says_there_is_a_valid_plan_and_every_citation_resolves(
    kb: KnowledgeBase, seed: int, words: str
) -> None:
    events = ask(kb, GrammarWalker(seed=seed, closing=0.3), words=words)
    (planned,) = only(events, Planned)
    assert is_valid(planned.sub_questions, list(kb.entity_types), 4)
    known = {piece.label for event in only(events, EvidenceFound) for piece in event.evidence}
    final = events[-1]
    assert isinstance(final, Final)
    assert final.citations
    assert {piece.label for piece in final.citations} <= known
    finished = {one.number for one in only(events, SubQuestionFinished)}
    assert finished == {one.number for one in only(events, SubQuestionStarted)}
    for piece in final.citations:
        row = next(
            (n for n in range(len(kb.chunks)) if kb.chunks.text("chunk_id", n) == piece.chunk_id), None
        )
        if row is not None and piece.start is not None and piece.end is not None:
            offset = kb.chunk_span(row)[0]
            assert kb.chunks.text("text", row)[piece.start - offset : piece.end - offset] == piece.quote


def test_a_plan_that_fails_is_said_and_the_question_is_answered_without_one(kb: KnowledgeBase) -> None:
    def fail(request: Request) -> str | None:
        return "no such grammar" if request.request_id.startswith("plan") else None

    events = ask(kb, GrammarWalker(fail_when=fail), max_steps=1)
    assert only(events, Planned)[0].sub_questions == ()
    assert "no such grammar" in only(events, Stepped)[0].reason
    final = events[-1]
    assert isinstance(final, Final)
    assert final.citations
