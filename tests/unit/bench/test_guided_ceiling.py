"""What a perfect model could find under the grammar of guided extraction."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

from hornbeam.evaluate.fact_sets import GoldSentence, fact_set
from hornbeam.schema.model import EntityType, GraphSchema, RelationType
from hornbeam.settings import Settings
from support.version_by_hand import HashedWords
from support.walker import GrammarWalker

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
try:
    import guided_ceiling as script
finally:
    sys.path.remove(str(BENCH))

SCHEMA = GraphSchema(
    name="people",
    entity_types=(EntityType(name="Person"), EntityType(name="Place")),
    relation_types=(
        RelationType(name="birthPlace", domain=("Person",), range=("Place",)),
        RelationType(name="deathPlace", domain=("Person",), range=("Place",)),
    ),
)
KNOWN = [GoldSentence("1", "Karl Kesel came from Oslo.", (("Karl Kesel", "birthPlace", "Oslo"),))]
ASKED = [
    GoldSentence(
        "2",
        "Karl Kesel was born in Oslo.",
        (
            ("Karl Kesel", "birthPlace", "Oslo"),  # offered
            ("Karl_Kesel", "birthPlace", "Norway"),  # its tail does not stand there
            ("Somebody Else", "birthPlace", "Norway"),  # nor does its head
            ("Karl Kesel", "deathPlace", "Oslo"),  # nobody proposes the type
        ),
    )
]


def test_gold_facts_are_counted_by_what_keeps_them_from_being_found() -> None:
    one = fact_set("people", SCHEMA, KNOWN, ASKED)
    counted = script.ceiling(one, GrammarWalker(1), HashedWords(), Settings())
    told = script.shares(counted)
    assert told["head among the spans"] == 0.75
    assert told["tail among the spans"] == 0.5
    assert told["both among the spans"] == 0.5
    assert told["type asked for"] == 0.75
    assert told["offered"] == 0.25
    assert told["lines"] == 1
    assert (told["sentences"], told["gold"]) == (1, 4)
