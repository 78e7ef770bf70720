"""Names of different documents that are one thing."""

from pathlib import Path

import pytest
from test_resolution import document, names, write

FRIEND = ("Otto Lenz", "person")


def test_names_of_the_same_letters_are_one_in_whatever_documents(tmp_path: Path) -> None:
    one = document("d1", "The ScanEagle flew.", [("ScanEagle", "product")])
    other = document("d2", "A Scan Eagle fell. Scan Eagle!", [("Scan Eagle", "product")])
    rows, _ = write(tmp_path, [one, other])
    assert names(rows) == {("Scan Eagle", "ScanEagle")}
    (merge,) = rows["merges"]
    assert (merge["kind"], merge["document_id"], merge["chunk_id"]) == ("spelling", None, "c-d1")
    assert (merge["start"], merge["end"]) == (4, 13)


def test_case_forms_of_a_name_are_one_in_whatever_documents(tmp_path: Path) -> None:
    one = document("d1", "Иван Петров пришёл.", [("Иван Петров", "person")])
    other = document("d2", "С Иваном Петровым.", [("Иваном Петровым", "person")])
    rows, _ = write(tmp_path, [one, other])
    assert len(rows["entities"]) == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [("Annabella Weber", "Anabella Weber"), ("John Henry Dearle", "J. H. Dearle")],
)
def test_forms_of_one_name_are_one_where_they_keep_the_same_company(
    tmp_path: Path, first: str, second: str
) -> None:
    texts = {"d1": f"{first} wrote songs of rivers.", "d2": f"Quarterly tonnage fell, says {second}!"}
    apart = [
        document("d1", texts["d1"], [(first, "person")]),
        document("d2", texts["d2"], [(second, "person")]),
    ]
    rows, _ = write(tmp_path / "apart", apart, neighbours=5)
    assert len(rows["entities"]) == 2  # alike in name only

    together = [
        document("d1", texts["d1"] + " Otto Lenz came.", [(first, "person"), FRIEND]),
        document("d2", texts["d2"] + " Otto Lenz left.", [(second, "person"), FRIEND]),
    ]
    rows, done = write(tmp_path / "together", together, neighbours=5)
    assert len(rows["entities"]) == 2  # they, and their friend
    assert done.merges == {"context": 1}

    rows, _ = write(tmp_path / "off", together)
    assert len(rows["entities"]) == 3


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("North Carolina", "South Carolina", "place"),
        ("World War I", "World War II", "event"),
        ("Weber", "Anna Weber", "person"),
        ("1911", "1912", "date"),
    ],
)
def test_other_things_in_the_same_company_are_not_one(
    tmp_path: Path, first: str, second: str, kind: str
) -> None:
    rows, _ = write(
        tmp_path,
        [
            document("d1", f"{first} and Otto Lenz.", [(first, kind), FRIEND]),
            document("d2", f"{second} and Otto Lenz.", [(second, kind), FRIEND]),
        ],
        neighbours=5,
    )
    assert len(rows["entities"]) == 3
