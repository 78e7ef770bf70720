"""Text2KGBench's measures, by hand and against published figures."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from hornbeam.evaluate.text2kg import (
    Answer,
    ValueForms,
    faithfulness,
    is_right,
    scores,
    sentence_scores,
)
from hornbeam.extract.known_facts import KnownSentence
from hornbeam.schema.model import EntityType, GraphSchema, RelationType

GOLD = (("Ada_Byron", "birthPlace", "London"), ("Ada_Byron", "birthDate", "1815-12-10"))


def answer(*found: tuple[str, str, str], ontology: str = "a") -> Answer:
    return Answer(ontology, "Ada Byron was born in London.", GOLD, found)


def test_case_spaces_and_underscores_do_not_count() -> None:
    assert is_right(("ada byron", "BirthPlace", "LON DON"), GOLD)
    assert not is_right(("ada byron", "deathPlace", "London"), GOLD)


def test_the_official_filter_leaves_out_relations_that_gold_lacks() -> None:
    found = answer(("Ada Byron", "birthPlace", "London"), ("Ada Byron", "spouse", "London"))
    assert sentence_scores(found, official_filter=False) == (0.5, 0.5, 0.5)
    assert sentence_scores(found, official_filter=True) == (1.0, 0.5, pytest.approx(2 / 3))


def test_a_sentence_without_a_find_has_zero_and_ontologies_count_alike() -> None:
    right = answer(("Ada Byron", "birthPlace", "London"))
    report = scores([right, answer(), answer(ontology="b")], seed=1)
    assert report["all"]["precision"] == pytest.approx(0.25)
    low, high = report["all"]["precision_interval"]
    assert low <= 0.25 <= high


def test_ends_that_the_text_lacks_are_hallucinations() -> None:
    schema = GraphSchema(
        name="s",
        entity_types=(EntityType(name="City"),),
        relation_types=(RelationType(name="birthPlace"),),
    )
    found = answer(("ada byron", "birthPlace", "Paris"), ("Ada Byron", "unheard", "City"))
    shares = faithfulness([found], {"a": schema})
    assert shares["conformance"] == 0.5
    assert shares["subject_hallucination"] == 0.0
    assert shares["subject_not_verbatim"] == 0.5
    assert shares["object_hallucination"] == 0.5
    assert shares["object_not_verbatim"] == 1.0


def test_white_space_in_a_text_makes_no_hallucination() -> None:
    schema = GraphSchema(
        name="s",
        entity_types=(EntityType(name="City"),),
        relation_types=(RelationType(name="birthPlace"),),
    )
    text = "Ada \u00a0 Byron\nwas born in London."
    found = Answer(
        "a", text, GOLD, (("Ada Byron", "birthPlace", "London"), ("AdaByron", "birthPlace", "London"))
    )
    shares = faithfulness([found], {"a": schema})
    assert (shares["subject_not_verbatim"], shares["object_not_verbatim"]) == (0.5, 0.0)


def test_values_are_written_as_most_known_ones_are() -> None:
    known = [
        KnownSentence(
            "",
            (
                ("a", "birthDate", '"1815-12-10"'),
                ("a", "height", "175.26"),
                ("a", "staff", "250"),
                ("a", "nickname", '"Ada"'),
            ),
        )
    ]
    forms = ValueForms.of(known)
    assert forms.write(("The Ada", "birthDate", "July 10, 1989")) == ("Ada", "birthDate", '"1989-07-10"')
    assert forms.write(("a", "height", "42"))[2] == "42.0"
    assert forms.write(("a", "staff", "1,250"))[2] == "1250"
    assert forms.write(("a", "nickname", "Bee"))[2] == '"Bee"'
    assert forms.write(("a", "unheard", "July 10, 1989"))[2] == "July 10, 1989"


def _data() -> Path:
    return Path(os.environ.get("HORNBEAM_DATA", Path(__file__).parents[4] / "shared" / "data"))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("1_university", (0.31, 0.19, 0.23)),
        ("4_building", (0.48, 0.33, 0.38)),
        ("7_company", (0.49, 0.37, 0.41)),
    ],
)
def test_vicunas_answers_have_their_published_scores(name: str, published: tuple[float, ...]) -> None:
    root = _data() / "text2kgbench" / "dbpedia_webnlg"
    if not root.is_dir():
        pytest.skip(f"no evaluation data at {root}")
    truth = (root / "ground_truth" / f"ont_{name}_ground_truth.jsonl").read_text("utf-8")
    answers = root / "baselines" / "Vicuna-13B" / "llm_responses" / f"{name}_Vicuna13B_responses.jsonl"
    replies = answers.read_text("utf-8")
    found = {entry["id"]: entry["triples"] for entry in map(json.loads, replies.splitlines())}
    rows = [
        sentence_scores(
            Answer(
                name,
                entry["sent"],
                tuple((t["sub"], t["rel"], t["obj"]) for t in entry["triples"]),
                tuple(tuple(triple) for triple in found[entry["id"]] if len(triple) == 3),
            ),
            official_filter=True,
        )
        for entry in map(json.loads, truth.splitlines())
    ]
    # Published with two decimals.
    assert np.mean(rows, axis=0) == pytest.approx(published, abs=0.006)
