"""Follow-ups: rewritten to stand alone where they lean on what was said, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hornbeam.answer.conversation import Turn, rewritings
from hornbeam.answer.events import Asked, Final
from hornbeam.answer.session import Session
from hornbeam.llm.protocol import Request
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import Settings
from hornbeam.store.versions import Version
from support.scripted_model import ScriptedModel
from support.walker import GrammarWalker

BEFORE = [Turn("Who wrote The Glass Ferry?", "Aldo Brenn")]


@pytest.mark.parametrize(
    ("question", "forms"),
    [
        ("Where was he born?", ["Where was Aldo Brenn born?", "Where was Glass Ferry born?"]),
        ("Who was his mother?", ["Who was Aldo Brenn's mother?", "Who was Glass Ferry's mother?"]),
        ("And The Stone Boat?", ["Who wrote The Stone Boat?"]),
        ("Where was Lena Sorvik born?", []),
        ("他在哪里出生？", ["Aldo Brenn在哪里出生？", "Glass Ferry在哪里出生？"]),
    ],
)
def test_only_a_question_that_points_back_can_be_rewritten(question: str, forms: list[str]) -> None:
    assert rewritings(question, BEFORE) == [question, *forms]


def test_without_history_a_question_stays_as_it_is() -> None:
    assert rewritings("Where was he born?", []) == ["Where was he born?"]
    assert rewritings("And Poland?", []) == ["And Poland?"]


@given(st.text(max_size=50), st.text(max_size=50), st.text(max_size=50))
def test_the_question_itself_is_always_among_the_forms(question: str, before: str, answer: str) -> None:
    forms = rewritings(question, [Turn(before, answer)])
    assert forms[0] == question
    assert len(set(forms)) == len(forms)


def opened(kb: KnowledgeBase, model: object) -> Session:
    return Session(kb, Version("v1", Path(kb.directory), {}), model, Settings())  # type: ignore[arg-type]


def test_a_follow_up_is_answered_as_it_was_rewritten(kb: KnowledgeBase) -> None:
    def say(request: Request) -> str:
        if "standalone" in request.request_id:
            return "Where was Marie Curie born?"
        return "Marie Curie [1]"

    model = ScriptedModel(say)
    with opened(kb, model) as session:
        talk = session.conversation()
        talk.ask("Who discovered polonium?", engine="mix").final()
        assert len(model.requests) == 1  # the first question leans on nothing
        asked, *_, final = list(talk.ask("Where was she born?", engine="mix"))
        assert isinstance(asked, Asked)
        assert (asked.question, asked.standalone) == ("Where was she born?", "Where was Marie Curie born?")
        assert isinstance(final, Final)
        assert final.tokens["calls"] == 2
        assert "Question: Where was Marie Curie born?" in model.requests[-1].prompt
        assert [turn.question for turn in talk.turns] == [
            "Who discovered polonium?",
            "Where was Marie Curie born?",
        ]
        assert talk.turns[0].answer == "Marie Curie"


@pytest.mark.parametrize("seed", range(5))
def test_the_compact_model_can_only_choose_among_the_forms(kb: KnowledgeBase, seed: int) -> None:
    with opened(kb, GrammarWalker(seed=seed)) as session:
        talk = session.conversation()
        talk.turns.append(Turn("Who discovered polonium?", "Marie Curie"))
        asked = next(iter(talk.ask("Where was she born?", engine="naive")))
    assert isinstance(asked, Asked)
    assert asked.standalone in ("Where was she born?", "Where was Marie Curie born?")
