"""The comparison of ways to extract: what it reads, counts and enforces."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

import xgrammar

from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.schema import load_schema
from hornbeam.settings import Settings
from support.walker import GrammarWalker, vocabulary

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
try:
    import extraction_baselines as script
finally:
    sys.path.remove(str(BENCH))

GENERAL = load_schema("general")
BORN = script.Fact("Ada Lovelace", "person", "born_in", "London", "place")
TEXT = "Ada\nLovelace was born in London."


@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        ('{"facts":[["Ada Lovelace","person","born_in","London","place"]]}', [BORN]),
        ('Sure! {"facts": [["Ada Lovelace", "person", "born_in", "London", "place"]]} Done.', [BORN]),
        ('{"facts":[["Ada","person","born_in"],7,["a","b","c","d",1]]}', []),
        ('{"facts":[["Ada Lovelace","person","born_in","Lon', None),  # cut
        ('{"facts":"none"}', None),
        ("There are no facts.", None),
        ("", None),
    ],
)
def test_answers_are_read_or_unreadable(answer: str, facts: list[script.Fact] | None) -> None:
    assert script.read_facts(answer) == facts


def test_facts_are_counted_by_what_is_wrong_with_them() -> None:
    score = script.Score()
    facts = [
        BORN,
        BORN,  # usable once
        script.Fact("London", "place", "born_in", "Ada Lovelace", "person"),  # the wrong way round
        script.Fact("Ada Lovelace", "poet", "born_in", "London", "place"),
        script.Fact("Ada Lovelace", "person", "slept_in", "London", "place"),
        script.Fact("Ada Byron", "person", "born_in", "London", "place"),
        script.Fact("", "person", "born_in", "London", "place"),
    ]
    score.add(facts, TEXT, GENERAL)
    score.add(None, TEXT, GENERAL)
    assert (score.passages, score.unreadable, score.facts) == (2, 1, 7)
    assert (score.out_of_schema, score.ungrounded, score.usable) == (3, 2, 1)


def test_the_json_grammar_takes_the_examples_of_the_prompt_and_no_unknown_type() -> None:
    info = vocabulary(embedded_model_directory()).info
    compiled = xgrammar.GrammarCompiler(info, max_threads=1).compile_grammar(script.json_grammar(GENERAL))

    def takes(answer: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return bool(matcher.accept_string(answer) and matcher.is_completed())

    shown = [line for line in script.prompt(GENERAL, 3).splitlines() if line.startswith("{")]
    assert len(shown) == 3
    assert all(takes(answer) and script.read_facts(answer) for answer in shown)
    assert takes('{"facts":[]}')
    assert not takes('{"facts":[["Ada","poet","born_in","London","place"]]}')


def test_whatever_the_model_says_grounded_facts_are_usable() -> None:
    settings = Settings.model_validate({"extract": {"max_output_tokens": 160, "examples": 1}})
    texts = [TEXT, *(f"Grace Hopper worked for the Navy in Philadelphia {n} times." for n in range(12))]
    model = GrammarWalker(closing=0.05)
    scores = {
        "JSON schema": script._one_call(texts, settings, GENERAL, model, script.json_grammar(GENERAL)),
        "grounded": script._grounded(texts, settings, GENERAL, model),
        "no model": script._cooccurring(texts, settings),
    }
    grounded = scores["grounded"]
    assert (grounded.unreadable, grounded.out_of_schema, grounded.ungrounded) == (0, 0, 0)
    assert grounded.usable > 0
    assert scores["no model"].usable == 1 + 12 * 3
    assert scores["no model"].calls == 0
    rows = [script.table_head(), *(script.table_row(name, score) for name, score in scores.items())]
    assert len({len(row) for row in rows}) == 1
