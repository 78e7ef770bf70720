"""The comparison where the right facts are known: what its two baselines read and what its grammar takes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

import xgrammar

from hornbeam.evaluate.fact_sets import GoldSentence, fact_set
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.schema.model import AttributeType, EntityType, GraphSchema, RelationType
from hornbeam.settings import ExtractSettings
from support.version_by_hand import HashedWords
from support.walker import GrammarWalker, vocabulary

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
try:
    import text2kg_baselines as script
finally:
    sys.path.remove(str(BENCH))

SCHEMA = GraphSchema(
    name="people",
    entity_types=(EntityType(name="Person"), EntityType(name="Place")),
    relation_types=(RelationType(name="born in", domain=("Person",), range=("Place",)),),
    attribute_types=(AttributeType(name="birthDate", domain=("Person",), kind="date"),),
)
BORN = ("Ada Byron", "born in", "London")
KNOWN = [GoldSentence("k", "Ada Byron was born in London.", (BORN,))]
ASKED = [
    GoldSentence("1", "Karl Kesel was born in Prague.", (("Karl_Kesel", "born in", "Prague"),)),
    GoldSentence("2", "Jan Novak was born on 1 May 1820.", (("Jan_Novak", "birthDate", "1820-05-01"),)),
]
SET = fact_set("people", SCHEMA, KNOWN, ASKED)


@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        (script.as_answer([BORN, BORN]), [BORN]),
        ('Yes: {"facts": [["a", "b", "c"], ["a", "b"], ["a", "b", 1], 7]} and more', [("a", "b", "c")]),
        ('{"facts":[["a","b"', None),
        ('{"facts":{}}', None),
        ("none", None),
    ],
)
def test_answers_are_read_or_unreadable(answer: str, facts: object) -> None:
    assert script.read_facts(answer) == facts


def test_the_json_grammar_takes_the_examples_and_no_unknown_relation() -> None:
    info = vocabulary(embedded_model_directory()).info
    compiled = xgrammar.GrammarCompiler(info, max_threads=1).compile_grammar(script.json_grammar(SCHEMA))

    def takes(answer: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        return bool(matcher.accept_string(answer) and matcher.is_completed())

    assert takes(script.as_answer([BORN, ("Ada", "birthDate", "1815")]))
    assert takes('{"facts":[]}')
    assert not takes(script.as_answer([("Ada", "devours", "London")]))


def test_the_four_ways_are_measured_alike() -> None:
    model = GrammarWalker(6, closing=0.05)
    settings = ExtractSettings(max_output_tokens=96)
    report = script.compare([SET], model, HashedWords(), settings, list(script._WAYS))
    assert list(report) == ["free text", "JSON schema", "staged", "guided"]
    for name, one in report.items():
        assert one["sentences"] == 2
        assert one["tokens"]["calls"] > 0, name
    free, _, staged, guided = report.values()
    assert (free["unreadable"], free["facts"]) == (2, 0)  # what a model says by chance is no JSON
    for ours in (staged, guided):
        assert (ours["unreadable"], ours["faithfulness"]["subject_not_verbatim"]) == (0, 0.0)
    assert guided["facts"] > 0
    prompts = [request.prompt for request in model.requests]
    assert sum(prompt.count(script.as_answer([BORN])) for prompt in prompts) == 4
    lines = script.as_table(report).splitlines()
    assert len({len(line) for line in lines}) == 1


def test_one_way_alone_is_measured_and_an_unknown_one_refused(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ExtractSettings(max_output_tokens=96)
    assert list(script.compare([SET], GrammarWalker(3), HashedWords(), settings, ["guided"])) == ["guided"]
    with pytest.raises(SystemExit):
        script.main(["somewhere", "--only", "guided,best"])
    assert "'best' is not one of free text, JSON schema, staged, guided" in capsys.readouterr().err


def test_a_sentence_without_room_is_unreadable_and_not_asked() -> None:
    model = GrammarWalker(3, max_model_len=40)
    settings = ExtractSettings(max_output_tokens=32)
    measured = script._measured([SET], model, HashedWords(), script._free_text, settings)
    assert (measured["unreadable"], measured["tokens"]["calls"]) == (2, 0)
