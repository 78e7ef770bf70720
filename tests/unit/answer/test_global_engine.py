"""The global engine: a bounded number of calls, however many communities there are."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from hornbeam.answer.events import EvidenceFound, Final
from hornbeam.answer.loop import answer_question
from hornbeam.index.build import build_indexes
from hornbeam.llm.protocol import Request
from hornbeam.records import Community, CommunityMember, Entity
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import AnswerSettings, EmbedderSettings, RetrieveSettings
from support.scripted_model import ScriptedModel
from support.version_by_hand import HashedWords, small_rows, write_tables
from support.walker import GrammarWalker

WORDS = [
    "harbour",
    "turbine",
    "lantern",
    "orchard",
    "ferry",
    "granite",
    "pepper",
    "violin",
    "glacier",
    "saddle",
    "copper",
    "marsh",
]


def many_communities(count: int) -> dict[str, list[Any]]:
    """The small version and `count` communities of one entity each, whose summaries name two words."""
    chance = random.Random(7)
    rows = small_rows()
    for number in range(count):
        first, second = chance.sample(WORDS, 2)
        rows["entities"].append(Entity(f"x{number}", f"{first} {number}", "thing", "", [], 0, 0, 0.9))
        summary = f"The {first} of place {number} and its {second}."
        rows["communities"].append(
            Community(f"c{number}", 0, None, f"{first} {second}", summary, 1, f"x{number}", [first])
        )
        rows["community_members"].append(CommunityMember(f"c{number}", f"x{number}"))
    return rows


@pytest.fixture(scope="module")
def large_kb(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    directory = write_tables(tmp_path_factory.mktemp("large") / "version", many_communities(10_000))
    build_indexes(directory, HashedWords(), EmbedderSettings())
    return KnowledgeBase.open(directory, HashedWords())


def ask(kb: KnowledgeBase, model: Any, **answer: object) -> list[object]:
    settings = AnswerSettings().model_copy(update=answer)
    return list(
        answer_question(
            kb,
            model,
            "What is said about the harbour and the turbine?",
            retrieve=RetrieveSettings(),
            answer=settings,
            engine="global",
            style="extract",
        )
    )


def test_at_ten_thousand_communities_a_question_costs_at_most_twelve_calls(large_kb: KnowledgeBase) -> None:
    assert len(large_kb.communities) > 10_000
    model = ScriptedModel(lambda request: "none")
    final = ask(large_kb, model)[-1]
    assert isinstance(final, Final)
    assert 2 <= len(model.requests) <= 12
    assert final.tokens["calls"] == len(model.requests)
    rejecting = ScriptedModel(lambda request: "yes")
    ask(large_kb, rejecting, mode="reject", answerable_threshold=0.0)
    assert len(rejecting.requests) <= 12


def test_the_weightiest_points_choose_the_communities_that_are_answered_from(large_kb: KnowledgeBase) -> None:
    def say(request: Request) -> str:
        if "Summaries:" not in request.prompt:
            return "violin [1]"
        lines = re.findall(r"^\[(\d+)\] (.*violin.*)$", request.prompt.split("Summaries:")[-1], re.M)
        return "\n".join(f"{9 - place} violin [{number}]" for place, (number, _) in enumerate(lines[:3]))

    events = ask(large_kb, ScriptedModel(say))
    gathered = [event for event in events if isinstance(event, EvidenceFound)][1].evidence
    assert gathered
    assert all("violin" in piece.text for piece in gathered)
    weights = [int(re.search(r"weight (\d)", piece.reason)[1]) for piece in gathered]  # type: ignore[index]
    assert weights == sorted(weights, reverse=True)


@pytest.mark.parametrize("style", ["extract", "sentences"])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_model_says_the_points_are_read_and_the_citations_resolve(
    kb: KnowledgeBase, seed: int, style: Any
) -> None:
    walker = GrammarWalker(seed=seed, closing=0.2)
    events = list(
        answer_question(
            kb,
            walker,
            "What happened in Poland?",
            retrieve=RetrieveSettings(),
            answer=AnswerSettings(max_tokens=400),
            engine="global",
            style=style,
        )
    )
    final = events[-1]
    assert isinstance(final, Final)
    known = {piece.label for event in events if isinstance(event, EvidenceFound) for piece in event.evidence}
    assert {int(label) for label in re.findall(r"\[(\d+)\]", final.answer)} <= known
    assert final.cut or final.citations


def test_an_index_without_communities_answers_from_what_it_has(tmp_path: Path) -> None:
    rows = small_rows() | {"communities": [], "community_members": []}
    directory = write_tables(tmp_path / "version", rows)
    build_indexes(directory, HashedWords(), EmbedderSettings())
    kb = KnowledgeBase.open(directory, HashedWords())
    events = list(
        answer_question(
            kb,
            GrammarWalker(),
            "What happened in Warsaw?",
            retrieve=RetrieveSettings(),
            answer=AnswerSettings(),
            engine="global",
            style="extract",
        )
    )
    final = events[-1]
    assert isinstance(final, Final)
    assert final.citations
