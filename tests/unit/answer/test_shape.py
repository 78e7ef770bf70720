"""Which engine `auto` takes for questions of every shape."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hornbeam.answer.engines import choose_engine

DATA = Path(os.environ.get("HORNBEAM_DATA") or Path(__file__).parents[4] / "shared" / "data")

LABELLED = {
    "mix": [
        "Who founded Oskwin Polytechnic?",
        "Where is the Selkie turbine made?",
        "What is the capital of Poland?",
        "what is the most common type of skin cancer?",
        "When did Marie Curie discover radium?",
        "澜碧港在哪里？",
        "Кто основал Политехнический институт?",
    ],
    "plan": [
        "In which village was the founder of the company that makes the Selkie turbine born?",
        "Who is the child of the director of film Devotion (1929 Film)?",
        "When was the director of Big Stone Gap born?",
        "Who is older, David Dzakhov or David Luna Sánchez?",
        "Were Joe Gallivan and John Loone from the same country?",
        "Who mothered the person under whom the empire that conquered it was largest?",
        "What is the name of the waterfall in the country where the river that feeds it is found?",
    ],
    "global": [
        "What are the main themes of the reports?",
        "Summarise what the documents say.",
        "Give an overview of the research programme.",
        "Which topics recur in these letters?",
        "这些文件的主题是什么？",
        "Сделай обзор документов.",
    ],
}


@pytest.mark.parametrize(
    ("question", "engine"), [(question, engine) for engine, asked in LABELLED.items() for question in asked]
)
def test_auto_goes_by_the_shape_of_the_question(question: str, engine: str) -> None:
    chosen, reason = choose_engine("auto", question)
    assert chosen == engine
    assert reason


@pytest.mark.data
def test_most_multi_hop_questions_are_planned_and_most_simple_ones_are_not() -> None:
    hops = DATA / "multihop_qa" / "normalized"
    facts = DATA / "graphrag_bench" / "questions" / "medical_questions.json"
    if not hops.is_dir() or not facts.is_file():
        pytest.skip("the evaluation data is not here (HORNBEAM_DATA)")
    asked = [json.loads(line)["question"] for file in hops.glob("*.jsonl") for line in file.open()]
    planned = sum(choose_engine("auto", question)[0] == "plan" for question in asked)
    assert planned >= 0.8 * len(asked)
    simple = [
        row["question"] for row in json.loads(facts.read_text()) if row["question_type"] == "Fact Retrieval"
    ]
    mixed = sum(choose_engine("auto", question)[0] == "mix" for question in simple)
    assert mixed >= 0.9 * len(simple)
