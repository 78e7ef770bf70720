"""Pairs and piles out of known documents, and what is counted of the model's answers."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

from hornbeam.errors import ModelError
from hornbeam.evaluate.alias_files import KnownDocument, KnownMention

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
try:
    import resolution_calls
finally:
    sys.path.remove(str(BENCH))

TEXT = "Ada Byron wrote notes. Byron knew Anna Byron. Ada Byron died young. Ada Byron lived in London."


def document() -> KnownDocument:
    entity = {"Ada Byron": 0, "Byron": 0, "Anna Byron": 1, "London": 2}
    kinds = {"London": "place"}
    mentions = []
    for name in ("Ada Byron", "Anna Byron", "London"):
        place = TEXT.find(name)
        while place >= 0:
            end = place + len(name)
            mentions.append(KnownMention(place, end, name, kinds.get(name, "person"), entity[name]))
            place = TEXT.find(name, end)
    start = TEXT.index("Byron knew")
    mentions.append(KnownMention(start, start + 5, "Byron", "person", 0))
    return KnownDocument("people", TEXT, mentions)


def test_pairs_are_of_one_type_and_show_the_sentences_of_both_names() -> None:
    right, wrong = resolution_calls.known_pairs([document()], 2, random.Random(1))
    assert (right.one_thing, wrong.one_thing) == (True, False)
    assert {right.pair.first, right.pair.second} == {"Ada Byron", "Byron"}
    assert "Anna Byron" in {wrong.pair.first, wrong.pair.second}
    assert "Byron knew Anna Byron." in (*right.pair.told_of_first, *right.pair.told_of_second)


def test_a_pile_is_the_entity_of_most_sentences() -> None:
    (pile,) = resolution_calls.piles([document()], 5)
    assert pile.name == "Ada Byron"
    assert len(pile.texts) == 4


def test_what_was_said_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xgrammar")
    from support.version_by_hand import HashedWords
    from support.walker import GrammarWalker

    try:
        model = GrammarWalker(1)
    except ModelError as missing:
        pytest.skip(f"no tokenizer: {missing}")
    monkeypatch.setattr(resolution_calls, "known_documents", lambda file: [document()])
    monkeypatch.setattr(resolution_calls, "open_model", lambda settings: model)
    monkeypatch.setattr(resolution_calls, "open_embedder", lambda settings: HashedWords())
    resolution_calls.main([str(tmp_path / "any.json"), "--pairs", "2", "--piles", "1", "--json"])
    report = json.loads(capsys.readouterr().out)
    names, told = report["same_thing"], report["summarising"]
    assert (names["right"], names["wrong"], names["unanswered"]) == (1, 1, 0)
    assert names["tokens"]["calls"] == 2
    assert told["piles"] == 1
    assert set(told["examples"]) == {"Ada Byron"}
    assert -1 <= told["cosine_told"] <= 1
