import pytest

from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.query import encode_query
from hornbeam.retrieve.routes import TYPE_BONUS, entity_route
from hornbeam.retrieve.types import asked_types
from hornbeam.settings import RetrieveSettings

TYPES = ("", "City", "academic_award", "person", "riverBasin")


@pytest.mark.parametrize(
    ("question", "types"),
    [
        ("Who won?", {"person"}),
        ("Where is it?", {"City"}),
        ("Which award did she win in 1903?", {"academic_award"}),
        ("Which rivers flow there?", {"riverBasin"}),
        ("Why?", set()),
        ("", set()),
    ],
)
def test_a_question_asks_for_types_by_name_or_by_its_question_word(question: str, types: set[str]) -> None:
    assert asked_types(question, TYPES) == types


def test_an_asked_type_lifts_an_entity_and_keeps_no_other_out(kb: KnowledgeBase) -> None:
    def scores(question: str) -> dict[int, float]:
        query = encode_query(kb.embedder, question)
        return {one.rows[0]: one.score for one in entity_route(kb, query, RetrieveSettings())}

    assert kb.entity_types == ("city", "country", "element", "organization", "person")
    plain, asked = scores("Curie Poland"), scores("Curie Poland person")
    assert asked.keys() >= {0, 2}
    name_part = plain[0]  # found by name, which the added word does not change
    assert asked[0] == pytest.approx(min(1.0, name_part + TYPE_BONUS), abs=1e-6)
