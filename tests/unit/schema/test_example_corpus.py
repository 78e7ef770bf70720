"""The demo corpus: its files are of the promised forms, and its questions have answers in it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CORPUS = EXAMPLES / "corpus"


def questions() -> list[dict[str, object]]:
    return [json.loads(line) for line in (EXAMPLES / "questions.jsonl").read_text("utf-8").splitlines()]


def test_the_corpus_shows_every_plain_text_format() -> None:
    assert {file.suffix for file in CORPUS.iterdir()} == {".txt", ".md", ".html", ".jsonl", ".csv"}
    records = [json.loads(line) for line in (CORPUS / "people.jsonl").read_text("utf-8").splitlines()]
    assert [sorted(record) for record in records] == [["id", "text", "title"]] * 2
    with (CORPUS / "awards.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 7
    assert all(None not in row and row["recipient"] in row["text"] for row in rows)


def test_prose_documents_are_short() -> None:
    for file in CORPUS.iterdir():
        if file.suffix in {".txt", ".md"} and ".zh" not in file.name:
            assert 150 <= len(file.read_text("utf-8").split()) <= 350, file.name


def test_every_answer_stands_in_the_last_of_its_documents() -> None:
    for item in questions():
        documents = item["documents"]
        assert isinstance(documents, list)
        assert str(item["answer"]) in (CORPUS / documents[-1]).read_text("utf-8")


def test_the_two_hop_question_cannot_be_answered_from_one_document() -> None:
    (company, founder) = (
        (CORPUS / name).read_text("utf-8") for name in ("selkie-turbine.md", "ilsabet-corvane.txt")
    )
    assert "Corvane Tidal Works" in company
    assert "Ulde" not in company
    assert "Ilsabet" not in company
    assert "Corvane Tidal Works" in founder
    assert "Selkie" not in founder


def test_the_answer_of_the_third_question_stands_only_in_the_chinese_document() -> None:
    holders = [file.name for file in CORPUS.iterdir() if "Lanbi" in file.read_text("utf-8")]
    assert holders == ["hu-lanting.zh.txt"]
