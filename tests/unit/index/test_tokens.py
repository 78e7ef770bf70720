import random

from hornbeam.index.tokens import tokenise


def test_words_are_folded_and_numbers_are_kept_whole() -> None:
    assert tokenise("Straße ＡＢＣ: 1,867 and 3.5 in 20th") == ["strasse", "abc", "1,867", "3.5", "20th"]


def test_plurals_and_possessives_meet_their_singular() -> None:
    assert tokenise("cities films Curie's O’Brien’s") == tokenise("city film Curie O'Brien")
    assert tokenise("glass status bus") == ["glass", "status", "bus"]


def test_stop_words_are_left_out_in_english_and_russian() -> None:
    assert tokenise("Where was the film made") == ["film", "made"]
    assert tokenise("Где родилась Мария Кюри") == ["родилась", "мария", "кюри"]


def test_unspaced_scripts_give_characters_and_pairs() -> None:
    assert tokenise("北京大学") == ["北", "京", "大", "学", "北京", "京大", "大学"]
    assert tokenise("ラーメン") == ["ラ", "ー", "メ", "ン", "ラー", "ーメ", "メン"]


def test_a_pair_never_spans_two_runs() -> None:
    assert "京大" not in tokenise("北京，大学")
    assert tokenise("北京2008年") == ["北", "京", "北京", "2008", "年"]


def test_a_thai_vowel_sign_stays_with_its_consonant() -> None:
    assert tokenise("ดี") == ["ดี"]


def test_hangul_is_split_at_spaces() -> None:
    assert tokenise("서울은 한국의") == ["서울은", "한국의"]


def test_nothing_gives_no_tokens() -> None:
    assert tokenise("") == tokenise(" ,.!? the ") == []


def test_a_text_of_ascii_alone_has_the_tokens_that_it_has_beside_other_letters() -> None:
    chance = random.Random(3)
    for _ in range(2000):
        text = "".join(chance.choices("as1S'.,_ -", k=chance.randint(0, 12)))
        assert [*tokenise(text), "é"] == tokenise(f"{text} é"), text
