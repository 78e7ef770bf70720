"""Every form of an answer is a grammar whose walks are read back as facts of the sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError, UsageError
from hornbeam.evaluate.fact_sets import FactSet, GoldSentence, fact_set
from hornbeam.evaluate.known_examples import example_rows
from hornbeam.extract.reading import read_entities, read_relations
from hornbeam.extract.result import FoundEntity
from hornbeam.grammar.entities import entity_grammar
from hornbeam.grammar.relations import NamedEntity, relation_grammar
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.protocol import Request
from hornbeam.schema.load import load_schema
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings
from support.version_by_hand import HashedWords
from support.walker import GrammarWalker

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
try:
    import extraction_forms
finally:
    sys.path.remove(str(BENCH))

try:
    GrammarWalker()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)

TEXT = "Ada Byron met Charles Babbage in London in 1833. She was born in Bath."
GENERAL = load_schema("general")
FORMS = [extraction_forms.Form(lines, index) for lines in (False, True) for index in (False, True)]


@pytest.mark.parametrize("form", FORMS, ids=[form.name for form in FORMS])
def test_the_walks_of_every_form_are_read_as_facts(form: extraction_forms.Form) -> None:
    lexicon = SpanLexicon(TEXT, 10)
    names = [("Charles Babbage", "person"), ("London", "place"), ("Bath", "place")]
    ends = [str(n) if form.index else name for n, (name, _) in enumerate(names)]
    entities = [
        FoundEntity(name=end, type=kind, confidence=0.5, spans=tuple(lexicon.occurrences(name)))
        for end, (name, kind) in zip(ends, names, strict=True)
    ]
    first = entity_grammar(lexicon, GENERAL, 3)
    second = relation_grammar(
        [NamedEntity(entity.name, entity.type) for entity in entities],
        lexicon,
        GENERAL,
        relations_per_head=3,
        attributes_per_entity=2,
    )
    assert first is not None
    assert second is not None
    found = facts = 0
    for seed in range(48):
        model = GrammarWalker(seed)
        said = model.complete(Request("e", "p", 200, grammar=form.grammar(first), logprobs=True))
        read = read_entities(form.answer(said), lexicon, GENERAL)
        assert (read.complete, read.dropped) == (True, 0)
        found += len(read.entities)
        said = model.complete(Request("r", "p", 200, grammar=form.grammar(second), logprobs=True))
        told = read_relations(form.answer(said), entities, lexicon, GENERAL)
        assert (told.complete, told.dropped) == (True, 0)
        facts += len(told.relations) + len(told.attributes)
    assert found > 8
    assert facts > 0


def small_set() -> FactSet:
    schema = GraphSchema.model_validate(
        {
            "name": "people",
            "entity_types": [{"name": "person"}, {"name": "place"}],
            "relation_types": [{"name": "birthPlace", "domain": ["person"], "range": ["place"]}],
            "attribute_types": [{"name": "birthDate", "domain": ["person"], "kind": "date"}],
        }
    )
    known = [
        GoldSentence(
            "1",
            "Karl Kesel was born in Victor, on January 7, 1959.",
            (("Karl Kesel", "birthPlace", "Victor"), ("Karl Kesel", "birthDate", "January 7, 1959")),
        ),
        GoldSentence("2", "Jan Novak was born in Prague.", (("Jan_Novak", "birthPlace", "Prague"),)),
    ]
    asked = [GoldSentence("3", "Ada Byron was born in London.", (("Ada Byron", "birthPlace", "London"),))]
    return fact_set("people", schema, known, asked)


def test_known_sentences_are_examples_in_the_order_of_the_text() -> None:
    first, second = example_rows(small_set())
    assert first["entities"] == [("Karl Kesel", "person"), ("Victor", "place")]
    assert first["attributes"] == [("Karl Kesel", "birthDate", "January 7, 1959")]
    assert second["relations"] == [("Jan Novak", "birthPlace", "Prague")]


def test_all_forms_are_asked_about_the_same_sentences() -> None:
    scores = dict(
        extraction_forms.compare(
            [small_set()], GrammarWalker(2, closing=0.05), HashedWords(), ExtractSettings()
        )
    )
    assert tuple(scores) == extraction_forms.NAMES
    for score in scores.values():
        assert len(score.f1) == 1
        assert score.calls >= 1
        assert score.output > 0


def test_a_form_is_told_of_before_the_next_one_is_asked() -> None:
    model = GrammarWalker(2, closing=0.05)
    told: list[tuple[str, int]] = []
    forms = extraction_forms.compare(
        [small_set(), small_set()],
        model,
        HashedWords(),
        ExtractSettings(),
        extraction_forms.NAMES[:2],
        lambda name, score: told.append((name, len(score.f1))),
    )
    assert next(forms)[0] == extraction_forms.NAMES[0]
    assert told == [(extraction_forms.NAMES[0], 1), (extraction_forms.NAMES[0], 2)]


def test_forms_are_chosen_by_number_and_others_are_refused() -> None:
    assert extraction_forms._chosen("5,1") == [extraction_forms.ONE_CALL, extraction_forms.FORMS[0].name]
    with pytest.raises(UsageError, match="--only 6"):
        extraction_forms._chosen("6")
