"""Which names of one document are told to be one thing, and where."""

import pytest

from hornbeam.resolve.evidence import EvidenceKind, LocalName
from hornbeam.resolve.in_document import document_links
from hornbeam.resolve.names import canonical_name

Told = tuple[str, str, str]


def told(text: str, *names: tuple[str, str]) -> set[Told]:
    """(kind, alias, target) of every link; names are found in the text wherever they stand by themselves."""
    taken: list[tuple[int, int]] = []
    local = []
    for name, kind in sorted(names, key=lambda name: -len(name[0])):
        places = []
        start = text.find(name)
        while start >= 0:
            end = start + len(name)
            if not any(left <= start and end <= right for left, right in taken):
                places.append((start, end))
            start = text.find(name, start + 1)
        assert places, name
        taken += places
        local.append(LocalName(canonical_name(name), kind, name, places))
    local.sort(key=lambda name: (name.canonical, name.type))
    links = document_links(text, local)
    for link in links:
        assert 0 <= link.start < link.end <= len(text)
        assert local[link.alias].written in text[link.start : link.end]
    return {(link.kind.value, local[link.alias].written, local[link.target].written) for link in links}


@pytest.mark.parametrize(
    ("text", "alias", "target", "kind"),
    [
        ("Robert Zimmerman, better known as Bob Dylan, sang.", "Bob Dylan", "Robert Zimmerman", "person"),
        ("Robert Zimmerman (also known as Bob Dylan) sang.", "Bob Dylan", "Robert Zimmerman", "person"),
        ("Robert Zimmerman, a.k.a. Bob Dylan, sang.", "Bob Dylan", "Robert Zimmerman", "person"),
        ("Istanbul, formerly Constantinople, grew.", "Constantinople", "Istanbul", "place"),
        ("Kingstown was renamed Port Vale.", "Port Vale", "Kingstown", "place"),
        ("Anna Weber, née Sorvik, wrote.", "Sorvik", "Anna Weber", "person"),
        ("Greyfin Institute (GI) was founded.", "GI", "Greyfin Institute", "organization"),
        ("He wrote Le Ventre (French: Der Bauch).", "Der Bauch", "Le Ventre", "work"),
        ("The Sun (Russian: Солнце) shines.", "Солнце", "The Sun", "work"),
        ("宋江，表字公明，郓城人。", "公明", "宋江", "person"),
        ("此人姓林名冲，林冲绰号豹子头。", "豹子头", "林冲", "person"),
        ("胡兰亭，号石斋。", "石斋", "胡兰亭", "person"),
        ("北京大学简称北大。", "北大", "北京大学", "organization"),
        ("Мирон Застругин, он же Седой, молчал.", "Седой", "Мирон Застругин", "person"),
        ("Иван Петров, известный как Ворон, ушёл.", "Ворон", "Иван Петров", "person"),
    ],
)
def test_a_stated_alias_is_a_link_from_the_alias_to_the_name(
    text: str, alias: str, target: str, kind: str
) -> None:
    assert (EvidenceKind.STATED.value, alias, target) in told(text, (alias, kind), (target, kind))


@pytest.mark.parametrize(
    ("text", "first", "second", "kind"),
    [
        ("Robert Zimmerman and Bob Dylan sang.", "Robert Zimmerman", "Bob Dylan", "person"),
        ("Directed by Anna Weber and written by Otto Lenz.", "Anna Weber", "Otto Lenz", "person"),
        ("Anna Weber called Otto Lenz.", "Anna Weber", "Otto Lenz", "person"),
        ("Paris (France) is far.", "Paris", "France", "place"),
        ("a region of India known as Deccan", "India", "Deccan", "place"),
        ("Anna Weber, formerly of Black Ivory, sang.", "Anna Weber", "Black Ivory", "person"),
        ("Greyfin Institute met. GE is far.", "Greyfin Institute", "GE", "organization"),
        ("World War I came before World War II.", "World War I", "World War II", "event"),
        ("Paul Weber Sr. and Paul Weber Jr. met.", "Paul Weber Sr.", "Paul Weber Jr.", "person"),
        ("Mexico lies south of New Mexico.", "New Mexico", "Mexico", "place"),
        ("In 1911 and 1912.", "1911", "1912", "date"),
        ("Russia and the Russian coast", "Russia", "Russian", "place"),
    ],
)  # fmt: skip
def test_names_that_only_stand_together_are_no_link(text: str, first: str, second: str, kind: str) -> None:
    assert told(text, (first, kind), (second, kind)) == set()


def test_a_surname_or_given_name_stands_for_the_person_who_was_introduced() -> None:
    text = "Ramey Idriss wrote songs. Idriss lived long. Ramey played."
    assert told(text, ("Ramey Idriss", "person"), ("Idriss", "person"), ("Ramey", "person")) == {
        ("partial", "Idriss", "Ramey Idriss"),
        ("partial", "Ramey", "Ramey Idriss"),
    }


def test_a_surname_of_two_people_stands_for_neither() -> None:
    text = "Michael Jackson and Janet Jackson sang. Jackson smiled."
    people = [("Michael Jackson", "person"), ("Janet Jackson", "person"), ("Jackson", "person")]
    assert told(text, *people) == set()


def test_a_single_name_before_anyone_was_introduced_stands_for_nobody() -> None:
    assert (
        told("Idriss sang. Ramey Idriss did not.", ("Idriss", "person"), ("Ramey Idriss", "person")) == set()
    )


def test_initials_stand_for_given_names() -> None:
    text = "John Henry Dearle drew. J. H. Dearle died."
    assert told(text, ("John Henry Dearle", "person"), ("J. H. Dearle", "person")) == {
        ("partial", "J. H. Dearle", "John Henry Dearle")
    }


def test_a_given_name_in_characters_is_a_part_of_the_name() -> None:
    assert told("鲁智深大怒。智深走了。", ("鲁智深", "person"), ("智深", "person")) == {
        ("partial", "智深", "鲁智深")
    }


def test_a_company_goes_without_its_legal_form_and_a_place_without_nothing() -> None:
    text = "Taito Corporation made games. Taito closed."
    assert told(text, ("Taito Corporation", "organization"), ("Taito", "organization")) == {
        ("partial", "Taito", "Taito Corporation")
    }
    assert told(text, ("Taito Corporation", "place"), ("Taito", "place")) == set()


def test_an_acronym_is_linked_to_its_only_long_form() -> None:
    text = "The United Nations met. UN envoys spoke. The Union of Neighbours did not."
    once = [("United Nations", "organization"), ("UN", "organization")]
    assert told(text, *once) == {("acronym", "UN", "United Nations")}
    assert told(text, *once, ("Union of Neighbours", "organization")) == set()


@pytest.mark.parametrize(
    ("text", "first", "second", "kind", "evidence"),
    [
        ("ScanEagle flew. Scan Eagle fell.", "ScanEagle", "Scan Eagle", "product", "spelling"),
        ("Peña Blanca, or Pena Blanca", "Peña Blanca", "Pena Blanca", "place", "spelling"),
        ("Tobolesk on the map is Tobolsk.", "Tobolesk", "Tobolsk", "place", "slip"),
        ("Москва велика. В Москве дождь.", "Москва", "Москве", "place", "inflection"),
        ("Иван Петров пришёл. С Иваном Петровым.", "Иван Петров", "Иваном Петровым", "person", "inflection"),
    ],
)
def test_forms_of_one_name_are_a_link(text: str, first: str, second: str, kind: str, evidence: str) -> None:
    ((found, *pair),) = told(text, (first, kind), (second, kind))
    assert found == evidence
    assert set(pair) == {first, second}


def test_one_name_of_two_types_is_linked_to_the_likelier() -> None:
    names = [
        LocalName("jordan", "person", "Jordan", [(0, 6)], votes=0.4),
        LocalName("jordan", "place", "Jordan", [(0, 6)], votes=0.7),
    ]
    (link,) = document_links("Jordan", names)
    assert (link.kind, link.alias, link.target) == (EvidenceKind.TYPE, 0, 1)
