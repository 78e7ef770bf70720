"""`hornbeam evaluate anonymity`: tags for names, questions about them, scores."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hornbeam.errors import UsageError
from hornbeam.evaluate.anonymised import TAG, Anonymiser, Tagged, choose
from hornbeam.evaluate.anonymity import DOCUMENTS, QUESTIONS, TAGS, make, score
from hornbeam.evaluate.anonymity_tasks import make_tasks
from hornbeam.evaluate.asking import variant
from hornbeam.index.build import build_indexes
from hornbeam.llm.protocol import Request
from hornbeam.llm.shared import SharedModel
from hornbeam.records import Chunk, Document, Entity, Mention, Relation, RelationEvidence
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import AnswerSettings, EmbedderSettings, RetrieveSettings
from support.scripted_model import ScriptedModel
from support.version_by_hand import HashedWords, write_tables

ENGLISH = {
    "names": [("Marie Curie", ["Curie", "M. Curie"], "person"), ("Warsaw", [], "place")],
    "texts": [
        "Marie Curie was born in Warsaw in the year 1867. Curie's work is known in Warsaw.",
        "In Warsaw a street is named after M. Curie, the chemist. Warsawians like it.",
    ],
    "relation": (0, "born_in", 1),
}
CHINESE = {
    "names": [("林冲", ["豹子头", "林教头"], "person"), ("东京城", ["汴京"], "place")],
    "texts": [
        "话说林冲住在东京城里，人称豹子头的便是此人，众人都敬他三分。",
        "林教头离了汴京往沧州去，一路上风雪甚大，十分辛苦。",
    ],
    "relation": (0, "住在", 1),
}


def version(directory: Path, corpus: dict) -> KnowledgeBase:  # type: ignore[type-arg]
    entities = [
        Entity(f"e{row}", name, kind, "", aliases, 1, 1, 0.9)
        for row, (name, aliases, kind) in enumerate(corpus["names"])
    ]
    documents, chunks, mentions = [], [], []
    for number, text in enumerate(corpus["texts"]):
        documents.append(Document(f"d{number}", f"{number}.txt", f"Text {number}", text, "und", []))
        chunks.append(Chunk(f"c{number}", f"d{number}", 0, len(text), text, 10, "done"))
        for entity in entities:
            for form in (entity.name, *entity.aliases):
                mentions += [
                    Mention(entity.entity_id, f"c{number}", at.start(), at.end(), form, 0.9)
                    for at in re.finditer(re.escape(form), text)
                ]
    head, kind, tail = corpus["relation"]
    rows = {
        "documents": documents,
        "chunks": chunks,
        "entities": entities,
        "mentions": mentions,
        "relations": [Relation("r0", f"e{head}", kind, f"e{tail}", 1.0, 0.9, "")],
        "relation_evidence": [RelationEvidence("r0", "c0", 0.9, None)],
    }
    build_indexes(write_tables(directory, rows), HashedWords(), EmbedderSettings())
    return KnowledgeBase.open(directory, HashedWords())


@pytest.mark.parametrize("corpus", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_a_name_and_its_aliases_share_one_tag_and_nothing_of_them_is_left(
    tmp_path: Path,
    corpus: dict,  # type: ignore[type-arg]
) -> None:
    kb = version(tmp_path / "version", corpus)
    tagged = choose(kb, 10, 1)
    assert {one.name for one in tagged} == {name for name, _, _ in corpus["names"]}
    assert len({one.tag for one in tagged}) == len(tagged)
    anonymiser = Anonymiser(tagged)
    for text in corpus["texts"]:
        hidden = anonymiser.text(text)
        assert set(TAG.findall(hidden)) == {one.tag for one in tagged}
        for one in tagged:
            for form in one.forms:
                assert re.search(rf"{re.escape(form)}(?![a-z])", hidden) is None


def test_a_word_that_only_begins_like_a_name_stays(tmp_path: Path) -> None:
    tagged = choose(version(tmp_path / "version", ENGLISH), 10, 1)
    tag = {one.name: one.tag for one in tagged}
    hidden = Anonymiser(tagged).text(ENGLISH["texts"][1] + " WarsawWarsaw Warsaw's")
    assert "Warsawians" in hidden
    assert "WarsawWarsaw" in hidden
    assert f"{tag['Warsaw']}'s" in hidden
    assert f"after {tag['Marie Curie']}," in hidden


def test_a_name_of_two_entities_stays_as_it_is(tmp_path: Path) -> None:
    names = [*ENGLISH["names"], ("Curie", [], "unit")]
    kb = version(tmp_path / "version", {**ENGLISH, "names": names})
    tagged = {one.name: one for one in choose(kb, 10, 1)}
    assert set(tagged) == {"Marie Curie", "Warsaw"}
    assert tagged["Marie Curie"].forms == ("Marie Curie", "M. Curie")


def test_tags_that_stand_in_the_text_already_are_not_used(tmp_path: Path) -> None:
    kb = version(tmp_path / "version", ENGLISH)
    first = [one.tag for one in choose(kb, 10, 1)]
    again = choose(kb, 10, 1, [f"see {first[0]}"])
    assert first[0] not in [one.tag for one in again]


def test_nothing_to_replace_changes_nothing() -> None:
    assert Anonymiser([]).text("Warsaw") == "Warsaw"
    odd = Tagged(0, "[X#1]", "X", "C++ (old)", ("C++ (old)",))
    assert Anonymiser([odd]).text("in C++ (old), not C++") == "in [X#1], not C++"


@pytest.mark.parametrize("corpus", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_questions_name_no_name(tmp_path: Path, corpus: dict) -> None:  # type: ignore[type-arg]
    kb = version(tmp_path / "version", corpus)
    tagged = choose(kb, 10, 1)
    tasks = make_tasks(kb, tagged, 5, 3)
    assert tasks == make_tasks(kb, tagged, 5, 3)
    for task in tasks:
        assert not any(form in task.question for one in tagged for form in one.forms)
        assert ("真实名字" in task.question or "标签" in task.question) == (corpus is CHINESE)
    of_fact = tasks[0]
    assert (of_fact.task, of_fact.answer) in {("tag", one.tag) for one in tagged}
    assert of_fact.answer not in of_fact.question
    assert any("____" in task.question for task in tasks)  # one fact only: gaps make up the number
    hidden = [task for task in tasks if task.task == "reversion"]
    assert {task.answer for task in hidden} == {one.name for one in tagged}


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, KnowledgeBase]:
    kb = version(tmp_path / "version", ENGLISH)
    report = make(kb, tmp_path / "out", entities=10, questions=5, seed=1)
    assert (report["documents"], report["entities"]) == (2, 2)
    assert report["names_replaced"] == 6
    documents = [json.loads(line) for line in (tmp_path / "out" / DOCUMENTS).read_text("utf-8").splitlines()]
    assert not any(name in json.dumps(documents) for name in ("Curie", "Warsaw "))
    tags = json.loads((tmp_path / "out" / TAGS).read_text("utf-8"))
    assert sorted(entry["name"] for entry in tags.values()) == ["Marie Curie", "Warsaw"]
    hidden = version(
        tmp_path / "hidden",
        {**ENGLISH, "names": [("Nobody", [], "x")] * 2, "texts": [one["text"] for one in documents]},
    )
    return tmp_path / "out", hidden


@pytest.mark.parametrize("mode", ["open", "reject"])
def test_tags_that_were_found_and_names_that_were_given_away_are_counted(
    made: tuple[Path, KnowledgeBase], mode: str
) -> None:
    folder, kb = made
    rows = [json.loads(line) for line in (folder / QUESTIONS).read_text("utf-8").splitlines()]
    answer_of = {row["question"]: row["answer"] for row in rows}
    reversions = [row["question"] for row in rows if row["task"] == "reversion"]

    def said(request: Request) -> str:
        asked = next(one for one in answer_of if one in " ".join(request.prompt.split()))
        if '"yes"' in (request.grammar or ""):
            return "no" if asked in reversions else "yes"
        return f"It is {answer_of[asked]}. [1]"

    model = SharedModel(ScriptedModel(said))
    try:
        report = score(
            folder,
            kb,
            model,
            variant("mix", (), RetrieveSettings(floor=0)),
            AnswerSettings.model_validate({"mode": mode}),
            "short",
        )
    finally:
        model.close()
    assert report["tag"]["exact"] == report["tag"]["named"] == 1.0
    assert report["tag"]["questions"] >= 2
    if mode == "open":
        assert report["reversion"]["reverted"] == 1.0
        assert report["reversion"]["exact"] == 0.0  # "It is …" is more than the name
        assert report["abstention"] is None
    else:
        assert report["reversion"]["reverted"] == 0.0
        assert report["reversion"]["declined"] == 1.0
        assert report["abstention"]["accuracy"] == report["abstention"]["auroc"] == 1.0


def test_an_index_without_names_is_refused(tmp_path: Path) -> None:
    kb = version(tmp_path / "version", {**ENGLISH, "names": [("tides", [], "x"), ("1867", [], "x")]})
    with pytest.raises(UsageError, match="nothing to anonymise"):
        make(kb, tmp_path / "out", entities=10, questions=5, seed=1)
