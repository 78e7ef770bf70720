"""What of a sentence can be an end of a fact, and the sentence without it."""

import pytest

from hornbeam.extract.argument_spans import argument_spans, frame


def kinds(text: str) -> dict[str, str]:
    return {span.text: span.kind for span in argument_spans(text, 10)}


def test_names_run_over_particles_and_initials_to_their_end() -> None:
    found = kinds("The club Esteghlal F.C. plays for the University of Warsaw and Ludwig van Beethoven.")
    assert {"Esteghlal F.C.", "University of Warsaw", "Ludwig van Beethoven"} <= found.keys()
    assert "The" not in found


def test_two_names_that_a_comma_parts_are_a_third() -> None:
    assert {"Gdynia", "Poland", "Gdynia, Poland"} <= kinds("He was born in Gdynia, Poland.").keys()


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("Akeem Ayers was born on July 10, 1989.", "July 10, 1989", "date"),
        ("Trane was founded on 01-01-1913.", "01-01-1913", "date"),
        ("It was completed in 1995.", "1995", "year"),
        ("The runway is 733.0 metres long.", "733.0", "number"),
        ("It has 556 people.", "556", "number"),
    ],
)
def test_values_are_whole(text: str, value: str, kind: str) -> None:
    found = kinds(text)
    assert found[value] == kind
    assert not [other for other in found if other != value and other in value]


def test_a_number_inside_a_name_is_part_of_it() -> None:
    assert "747" not in kinds("The Boeing 747 flies.")


def test_phrases_stand_between_function_words_and_hold_no_verb_alone() -> None:
    found = kinds("Turn On is of the punk blues genre, was born and is located in it.")
    assert found["punk blues genre"] == "phrase"
    assert not {"located", "born"} & found.keys()


@pytest.mark.parametrize("text", ["", "   ", "…", "😀", "العربية", "«»", "a" * 10_000])
def test_any_text_has_spans_that_stand_in_it(text: str) -> None:
    for span in argument_spans(text, 10):
        assert " ".join(text[span.start : span.end].split()) == span.text
        assert span.text


def test_repeated_names_of_an_unspaced_script_are_found() -> None:
    assert "宋江" in kinds("宋江到了梁山,卢俊义见宋江,众人随宋江下山。")


def test_sentences_that_say_the_same_have_the_same_frame() -> None:
    one, other = "Ada Byron was born on July 10, 1815.", "Karl Kesel was born on 3 May 1959."
    assert frame(one, argument_spans(one, 10)) == frame(other, argument_spans(other, 10))
    assert frame(one, argument_spans(one, 10)) == "X was born on date."
