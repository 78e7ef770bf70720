"""From decoded text to a document's text: one form of line ends, spacing and Unicode; and its language.

Everything downstream (chunks, mentions, citations) counts characters of the normalised text.
"""

from __future__ import annotations

import re
import unicodedata

#: Sample for language detection; the slices come from the beginning, the middle and the end.
_SAMPLE_CHARACTERS = 6_000

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n{3,}")

# What the Unicode standard calls line ends become \n; a page or paragraph separator a blank line. The rest
# of C0 and C1 and the byte-order mark vanish.
_TRANSLATION: dict[int, str | None] = {
    **dict.fromkeys([*range(0x20), 0x7F, *range(0x80, 0xA0)]),
    0x09: "\t",
    0x0A: "\n",
    0x0B: "\n",
    0x0C: "\n\n",
    0x0D: "\n",
    0x85: "\n",
    0x2028: "\n",
    0x2029: "\n\n",
    0xFEFF: None,
}
_NEEDS_TRANSLATION = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


def normalise(text: str) -> str:
    """The form in which a document's text is stored; idempotent.

    NFC (not NFKC: "①" or "ﬁ" stay what the author wrote), `\\n` line ends, no control characters except
    newline and tab, no byte-order mark, U+FFFD for lone surrogates, no spaces at line ends, at most one
    blank line in a row, no white space around the whole.
    """
    text = whole_characters(text)
    if _NEEDS_TRANSLATION.search(text):
        text = text.replace("\r\n", "\n").translate(_TRANSLATION)
    text = unicodedata.normalize("NFC", text)
    text = "\n".join(line.rstrip() for line in text.split("\n"))
    return _BLANK_LINES.sub("\n\n", text).strip()


def whole_characters(text: str) -> str:
    """Halves of surrogate pairs joined; those without their other half become U+FFFD."""
    if not _SURROGATE.search(text):
        return text
    text = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _SURROGATE.sub("\ufffd", text)


def one_line(text: str, limit: int = 200) -> str:
    """`text` normalised, as a single line of at most `limit` characters: for titles."""
    return " ".join(normalise(text[: 4 * limit]).split())[:limit].rstrip()


_KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa\u31f0-\u31ff\uff66-\uff9d]")
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_CYRILLIC = re.compile(r"[\u0400-\u052f]")
# Letters that Russian does not have: Ukrainian, Belarusian, Serbian, Macedonian, Kazakh …
_NOT_RUSSIAN = re.compile(r"[\u0402-\u040f\u0452-\u045f\u0490-\u052f]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_WORD = re.compile(r"[^\W\d_]+")

# Words that hardly any other language has, and words that are English among others.
_ENGLISH = frozenset(
    """the and that with this from are were which have has had not they his her its their been would you
    your can will there these those when where what who but she he we our
    """.split()  # noqa: SIM905
)
_SHARED = frozenset(
    """of to is was in for by on at it be as a an or if no do so my all
    """.split()  # noqa: SIM905
)
_FOREIGN = frozenset(
    """der die das und ist nicht ein eine mit von den dem zu auf sich le la les des et que est dans pour
    une un du el los las en y por con del il di che per non het een van niet dat zijn de e o os do
    da em para och att som det på jest się na nie og
    """.split()  # noqa: SIM905
)


def detect_language(text: str) -> str:
    """One of en, ru, zh, ja, und (undetermined), from the scripts and, for Latin, the function words."""
    sample = _sample(text)
    kana, han = len(_KANA.findall(sample)), len(_HAN.findall(sample))
    cyrillic, latin = len(_CYRILLIC.findall(sample)), len(_LATIN.findall(sample))
    letters = sum(map(str.isalpha, sample))
    other = letters - kana - han - cyrillic - latin
    # An ideograph says about as much as three letters of an alphabet: a Chinese manual full of English
    # names and commands is Chinese.
    shares = {"cjk": 3 * (kana + han), "cyrillic": cyrillic, "latin": latin, "other": other}
    script = max(shares, key=lambda name: shares[name])
    if shares[script] == 0 or script == "other":
        return "und"
    if script == "cjk":
        return "ja" if kana > 0.05 * (kana + han) else "zh"
    if script == "cyrillic":
        return "ru" if len(_NOT_RUSSIAN.findall(sample)) <= 0.01 * cyrillic else "und"
    return "en" if _is_english(_WORD.findall(sample.lower())) else "und"


def _is_english(words: list[str]) -> bool:
    english = sum(word in _ENGLISH for word in words)
    shared = sum(word in _SHARED for word in words)
    foreign = sum(word in _FOREIGN for word in words)
    if english + shared <= foreign:
        return False
    if len(words) < 40:  # a sentence or a title: one clear sign is enough
        return english > 0 or shared >= 0.15 * len(words)
    return english >= 0.01 * len(words) and english + shared >= 0.08 * len(words)


def _sample(text: str) -> str:
    if len(text) <= _SAMPLE_CHARACTERS:
        return text
    size = _SAMPLE_CHARACTERS // 3
    middle = (len(text) - size) // 2
    return text[:size] + text[middle : middle + size] + text[-size:]
