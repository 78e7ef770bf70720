from __future__ import annotations

import codecs
import random
import time
from pathlib import Path

import pytest

from hornbeam.corpus.encoding import NotText, decode, file_encoding

ENGLISH = "The “quoted” word – and a naïve café. " * 30
RUSSIAN = "Мария Склодовская родилась в Варшаве, в семье учителя, и рано узнала нужду. " * 20
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy, řekl švec své ženě. " * 20
TURKISH = "Pijamalı hasta yağız şoföre çabucak güvendi. Işık ılık süt içti. " * 20
FRENCH = "Après l'été, la forêt où naît l'élève français paraît très mûre. " * 20
JAPANESE = "彼女はワルシャワで生まれ、パリで学んだ。ラジウムを発見した。" * 20
CHINESE = "话说大宋仁宗天子在位，嘉祐三年三月三日五更三点，天子驾坐紫宸殿。" * 20
KOREAN = "그녀는 바르샤바에서 태어나 파리에서 공부하였다. 라듐을 발견하였다. " * 20


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (ENGLISH, "utf-8"),
        (ENGLISH, "utf-8-sig"),
        (ENGLISH, "utf-16"),
        (ENGLISH, "utf-16-le"),
        (ENGLISH, "utf-16-be"),
        (ENGLISH, "utf-32"),
        (ENGLISH, "utf-32-le"),
        (ENGLISH, "utf-32-be"),
        (ENGLISH, "cp1252"),
        (FRENCH, "iso8859_1"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8_r"),
        (RUSSIAN, "cp866"),
        (RUSSIAN, "iso8859_5"),
        (CZECH, "cp1250"),
        (CZECH, "iso8859_2"),
        (TURKISH, "cp1254"),
        (JAPANESE, "cp932"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        (CHINESE, "gb18030"),
        (KOREAN, "cp949"),
        (KOREAN, "iso2022_kr"),
    ],
)
def test_text_is_decoded_whatever_its_encoding(tmp_path: Path, text: str, codec: str) -> None:
    data = text.encode(codec)
    assert decode(data).text == text
    file = tmp_path / "text"
    file.write_bytes(data)
    encoding, errors = file_encoding(file)
    assert file.read_text(encoding, errors) == text


def test_declared_charset_is_believed_where_statistics_would_not_do() -> None:
    page = '<html><head><meta charset="iso-8859-7"></head><body>Ωό</body></html>'
    assert decode(page.encode("iso8859_7")).text == page
    feed = '<?xml version="1.0" encoding="koi8-r"?><a>Да</a>'
    assert decode(feed.encode("koi8_r")).text == feed


def test_wrong_declaration_does_not_override_valid_utf8() -> None:
    page = '<html><head><meta charset="iso-8859-1"></head><body>Łódź</body></html>'
    assert decode(page.encode()).text == page


def test_a_few_damaged_bytes_do_not_turn_utf8_into_another_encoding() -> None:
    data = RUSSIAN.encode()
    damaged = data[:1001] + b"\xff" + data[1001:]
    text, encoding = decode(damaged)
    assert encoding == "utf-8"
    assert "\ufffd" in text
    assert text.count("Варшаве") >= 19
    assert decode(data[:-1] if data[-1] > 0x7F else data[:-2]).encoding == "utf-8"


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)) * 4,
        bytes(random.Random(1).choices(range(1, 256), k=4096)),
        b"text with a NUL\x00 in the middle of it",
        codecs.BOM_UTF32_LE + b"\xff\xff\xff\xff",
    ],
)
def test_binary_data_is_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(NotText, match=r"binary file|not text"):
        decode(data)


def test_a_large_legacy_file_is_decoded_in_little_time() -> None:
    data = (RUSSIAN * 2000).encode("cp1251")
    started = time.perf_counter()
    assert decode(data).encoding == "cp1251"
    assert time.perf_counter() - started < 3


def test_a_legacy_character_after_the_sample_is_still_decoded() -> None:
    text = "plain ascii line\n" * 10_000 + "naïve café, déjà vu, çà et là\n" * 3
    assert decode(text.encode("cp1252")).text == text


@pytest.mark.parametrize(
    "data",
    [
        b"abc\0" * 200,
        b"name\0value\0x\0" * 50,
        b"an ordinary line of text\n" * 40 + b"a\0\n",
        b"odd\0" + b"even\0\0" * 60,
    ],
)
def test_ascii_with_nuls_is_no_utf16(data: bytes) -> None:
    with pytest.raises(NotText, match="NUL"):
        decode(data)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text",
    [
        "Hello world, naïve — text’s end.\n" * 9,
        "Привет, мир! 123\n" * 10,
        "東京は日本の首都です。人口は1400万人。\n" * 20,
        "שלום עולם, 2024\n" * 10,
    ],
)
def test_utf16_without_a_mark_is_still_read(text: str, codec: str) -> None:
    assert decode(text.encode(codec)) == (text, codec)


def test_halves_of_pairs_in_utf8_are_joined_and_lone_ones_replaced(tmp_path: Path) -> None:
    """CESU-8: the rest of the text must not be read in another encoding because of them."""
    data = "naïve: ".encode() + b"\xed\xa0\xbd\xed\xb8\x80 and \xed\xa0\x80 alone"
    assert decode(data) == ("naïve: 😀 and \ufffd alone", "utf-8")
    (tmp_path / "x.txt").write_bytes(data)
    assert file_encoding(tmp_path / "x.txt") == ("utf-8", "surrogatepass")


@pytest.mark.parametrize("mark", [b"\xff\xfe", b""])
def test_a_lone_half_in_utf16_costs_one_character(mark: bytes) -> None:
    data = mark + "A text of some length. ".encode("utf-16-le") * 20 + b"\x00\xd8" + "end".encode("utf-16-le")
    assert decode(data).text == "A text of some length. " * 20 + "\ufffdend"


def test_random_bytes_behind_a_mark_are_no_text() -> None:
    with pytest.raises(NotText):
        decode(codecs.BOM_UTF16_LE + random.Random(4).randbytes(4000))
