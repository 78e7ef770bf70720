"""Sets of sentences with known facts, in the forms in which they are published."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from hornbeam.errors import UsageError
from hornbeam.evaluate.fact_sets import read_fact_sets

ONTOLOGY = {
    "title": "People",
    "concepts": [{"qid": "Person", "label": "Person"}, {"qid": "City", "label": "City"}],
    "relations": [{"pid": "p", "label": "birthPlace", "domain": "Person", "range": "City"}],
}


def _jsonl(file: Path, entries: list[dict[str, object]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(entry) + "\n" for entry in entries), "utf-8")


def _triple(subject: str, place: str) -> dict[str, str]:
    return {"sub": subject, "rel": "birthPlace", "obj": place}


def _text2kgbench(folder: Path) -> Path:
    (folder / "ontologies").mkdir(parents=True)
    for name in ("1_people", "2_others"):
        (folder / "ontologies" / f"{name}_ontology.json").write_text(json.dumps(ONTOLOGY), "utf-8")
    train: list[dict[str, object]] = [
        {"id": f"t{n}", "sent": f"P{n} was born in C{n}.", "triples": [_triple(f"P{n}", f"C{n}")]}
        for n in range(10)
    ]
    _jsonl(folder / "train" / "ont_1_people_train.jsonl", train)
    _jsonl(folder / "train" / "ont_2_others_train.jsonl", train)
    gold: list[dict[str, object]] = [{"id": "g", "sent": "Q was born in R.", "triples": [_triple("Q", "R")]}]
    _jsonl(folder / "ground_truth" / "ont_1_people_ground_truth.jsonl", gold)
    return folder


def test_text2kgbench_asks_the_ground_truth_and_knows_the_training(tmp_path: Path) -> None:
    (found,) = read_fact_sets(_text2kgbench(tmp_path / "web").parent, None, "test")
    assert (found.name, len(found.known), len(found.asked)) == ("web/1_people", 10, 1)
    assert found.asked[0].triples == (("Q", "birthPlace", "R"),)
    assert found.schema.allows("birthPlace", "Person", "City")


def test_held_out_sentences_are_about_other_things_than_the_known_ones(tmp_path: Path) -> None:
    (found,) = read_fact_sets(_text2kgbench(tmp_path / "web"), None, "held-out")
    assert found.name == "web/2_others"
    known = {fact[0] for sentence in found.known for fact in sentence.facts}
    asked = {fact[0] for sentence in found.asked for fact in sentence.triples}
    assert len(known) == 7
    assert len(asked) == 3
    assert not known & asked


def test_training_lines_of_one_sentence_are_one_sentence(tmp_path: Path) -> None:
    folder = _text2kgbench(tmp_path)
    lines: list[dict[str, object]] = [
        {"id": "a", "sent": "S", "sub_label": "X", "rel_label": "birthPlace", "obj_label": place}
        for place in ("Y", "Z")
    ]
    _jsonl(folder / "train" / "ont_1_people_train.jsonl", lines)
    (found,) = read_fact_sets(folder, [1], "test")
    assert [sentence.facts for sentence in found.known] == [
        (("X", "birthPlace", "Y"), ("X", "birthPlace", "Z"))
    ]


def _entry(name: str, subject: str) -> str:
    return (
        f'<entry id="{name}"><text>{subject} was born in C.</text><triples><triple><sub>{subject}</sub>'
        "<rel>birthPlace</rel><obj>C</obj></triple></triples></entry>"
    )


def test_oskgc_reads_xml_and_its_packed_training(tmp_path: Path) -> None:
    (tmp_path / "ontology").mkdir()
    (tmp_path / "data" / "test").mkdir(parents=True)
    (tmp_path / "ontology" / "1_A.json").write_text(json.dumps(ONTOLOGY), "utf-8")
    xml = f"<benchmark><entries>{_entry('t', 'P')}{_entry('u', 'Q')}</entries></benchmark>"
    (tmp_path / "data" / "test" / "1_A.xml").write_text(xml, "utf-8")
    with tarfile.open(tmp_path / "data" / "train.tar.gz", "w:gz") as packed:
        member = tarfile.TarInfo("train/1_A.xml")
        member.size = len(xml)
        packed.addfile(member, io.BytesIO(xml.encode()))
    (found,) = read_fact_sets(tmp_path, None, "test")
    assert [sentence.sentence_id for sentence in found.asked] == ["t", "u"]
    assert found.asked[1].triples == (("Q", "birthPlace", "C"),)
    assert len(found.known) == 2


CONLL = """#doc 7
0\tAda\tB-Peop\t['N']\t[0]
1\tByron\tI-Peop\t['Live_In']\t[4]
2\tlives\tO\t['N']\t[2]
3\tin\tO\t['N']\t[3]
4\tLondon\tB-Loc\t['N']\t[4]
"""


def test_conll_relations_stand_at_last_words(tmp_path: Path) -> None:
    for name in ("train.txt", "dev.txt"):
        (tmp_path / name).write_text(CONLL, "utf-8")
    (found,) = read_fact_sets(tmp_path, None, "test")
    assert found.asked[0].text == "Ada Byron lives in London"
    assert found.asked[0].triples == (("Ada Byron", "Live_In", "London"),)
    assert found.schema.allows("Live_In", "Peop", "Loc")
    assert not found.schema.allows("Live_In", "Loc", "Peop")


def test_docred_facts_belong_to_the_sentences_that_name_both_ends(tmp_path: Path) -> None:
    document = {
        "title": "A",
        "vertexSet": [
            [{"name": "Ada", "type": "PER", "sent_id": 0}, {"name": "She", "type": "PER", "sent_id": 1}],
            [{"name": "London", "type": "LOC", "sent_id": 0}],
            [{"name": "Paris", "type": "LOC", "sent_id": 1}],
        ],
        "labels": [{"h": 0, "t": 1, "r": "P19"}, {"h": 0, "t": 2, "r": "P551"}],
        "sents": [["Ada", "of", "London", "."], ["She", "saw", "Paris", "."]],
    }
    (tmp_path / "dev_revised.json").write_text(json.dumps([document, document]), "utf-8")
    (tmp_path / "rel_info.json").write_text(json.dumps({"P19": "birth", "P551": "residence"}), "utf-8")
    (found,) = read_fact_sets(tmp_path, None, "test")
    assert [sentence.triples for sentence in found.asked] == [
        (("Ada", "birth", "London"),),
        (("She", "residence", "Paris"),),
    ]


def test_relations_by_line_are_gathered_by_sentence(tmp_path: Path) -> None:
    (tmp_path / "relation2id.txt").write_text("unknown 0\n拥有 1\n", "utf-8")
    lines = "甲\t乙\t拥有\t甲拥有乙。\n乙\t甲\tunknown\t甲拥有乙。\n丙\t丁\t拥有\t丙拥有丁。\n"
    (tmp_path / "valid.txt").write_text(lines, "utf-8")
    (found,) = read_fact_sets(tmp_path, None, "test")
    assert found.known[0].facts == (("甲", "拥有", "乙"),)
    assert found.asked[0].triples == (("丙", "拥有", "丁"),)


def test_a_folder_of_no_known_form_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no set of a known form"):
        read_fact_sets(tmp_path, None, "test")


def test_numbers_that_no_ontology_has_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no ontology of these numbers"):
        read_fact_sets(_text2kgbench(tmp_path), [9], "test")


def test_a_line_that_is_no_json_names_its_file(tmp_path: Path) -> None:
    folder = _text2kgbench(tmp_path)
    (folder / "train" / "ont_1_people_train.jsonl").write_text("{", "utf-8")
    with pytest.raises(UsageError, match=r"ont_1_people_train\.jsonl"):
        read_fact_sets(folder, [1], "test")
