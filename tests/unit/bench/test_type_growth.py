"""The measuring of a schema's growth: what is read from the sets, and what is counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import UsageError
from hornbeam.settings import Settings
from support.version_by_hand import HashedWords
from support.walker import GrammarWalker

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
try:
    import type_growth as script
finally:
    sys.path.remove(str(BENCH))

CONLL = """#doc a
0\tAda\tB-Peop\t['N']\t[0]
1\tByron\tI-Peop\t['N']\t[1]
2\tmet\tO\t['N']\t[2]
3\tRome\tB-Loc\t['N']\t[3]
4\t1815\tB-Other\t['N']\t[4]

#doc b
0\tNothing\tO\t['N']\t[0]
"""
OSKGC = """<benchmark><entries><entry><text>Ada was born in Rome.</text>
<triples><triple><sub>Ada_Byron</sub><rel>born</rel><obj>"Rome"</obj></triple></triples>
<schemas><schema><sub>Person</sub><rel>born</rel><obj>City</obj></schema></schemas></entry></entries></benchmark>
"""
DOCRED = [
    {
        "sents": [["Ada", "met", "IBM"], ["."]],
        "vertexSet": [
            [{"name": "Ada", "type": "PER"}],
            [{"name": "IBM", "type": "ORG"}],
            [{"name": "1815", "type": "TIME"}],
        ],
    }
]


def test_texts_are_read_with_their_things_and_types(tmp_path: Path) -> None:
    for name, files in {
        "conll": {"train.txt": CONLL},
        "oskgc": {"data/test/1_x.xml": OSKGC},
        "docred": {"dev_revised.json": json.dumps(DOCRED)},
    }.items():
        for file, text in files.items():
            (tmp_path / name / file).parent.mkdir(parents=True)
            (tmp_path / name / file).write_text(text, "utf-8")
    assert list(script.typed_texts(tmp_path / "conll")) == [
        script.TypedText("Ada Byron met Rome 1815", (("Ada Byron", "person"), ("Rome", "place"))),
        script.TypedText("Nothing", ()),
    ]
    assert list(script.typed_texts(tmp_path / "oskgc")) == [
        script.TypedText("Ada was born in Rome.", (("Ada Byron", "Person"), ("Rome", "City")))
    ]
    assert list(script.typed_texts(tmp_path / "docred")) == [
        script.TypedText("Ada met IBM .", (("Ada", "person"), ("IBM", "organization")))
    ]
    with pytest.raises(UsageError, match="no set of a known form"):
        list(script.typed_texts(tmp_path))


SHIPS = [
    script.TypedText(f"the ship Lark{number} sails", ((f"Lark{number}", "ship"),)) for number in range(16)
]
TOWNS = [
    script.TypedText(f"Osterby{number} has a town hall", ((f"Osterby{number}", "town"),))
    for number in range(16)
]


def test_a_text_that_says_its_type_is_touched() -> None:
    report = script.measure_touching([*SHIPS, *TOWNS], HashedWords(), Settings().evolve)
    assert (report["texts"], report["types"], report["texts_with_a_type"]) == (32, 2, 0.5)
    assert report["fixed"]["0.3"] == {"recall": 1.0, "touched": 0.5, "precision": 1.0}
    assert report["falling_by_texts_seen"]["3"]["recall"] == 1.0


def test_without_a_type_to_measure_it_says_so() -> None:
    with pytest.raises(UsageError, match="no type"):
        script.measure_touching(SHIPS, HashedWords(), Settings().evolve)


def test_what_a_model_proposes_is_held_against_what_is_known() -> None:
    report = script.measure_proposals(
        [*SHIPS, *TOWNS], 16, Settings(), GrammarWalker(3, closing=0.02), HashedWords()
    )
    assert report["asked"] == 32
    assert sum(report["things"].values()) == report["suggestions"] > 0
    assert sum(row["suggestions"] for row in report["by_confidence"]) == report["suggestions"]
    assert sum(row["named_right"] for row in report["by_confidence"]) == report["named_right"]
    assert set(report["names"]) == {"ship", "town"}
