"""Bytes to text: which encoding a file is in, or why it is no text.

Order of trust: byte-order mark; the shape of UTF-16 and UTF-32 without one; strict UTF-8; what an HTML or
XML file declares; statistics (charset-normalizer) on a bounded sample. Whatever is chosen must decode the
whole file strictly, otherwise the next candidate is tried.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from hornbeam.corpus.normalise import whole_characters

#: What the statistics see. charset-normalizer takes about 1 s for 100 kB of a legacy encoding.
SAMPLE_BYTES = 24 * 1024
#: Where the marks of a binary file, a byte-order mark and a declaration are looked for.
HEAD_BYTES = 64 * 1024
_BLOCK_BYTES = 1024 * 1024

#: Share of control characters above which a file is binary; of random bytes it is 10 %.
_MAX_CONTROLS = 0.03
#: Damaged sequences per well-formed non-ASCII one up to which a file still counts as (damaged) UTF-8.
_MAX_DAMAGE = 0.02

_BOMS = (  # UTF-32 first: its little-endian mark starts with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)|<meta\s[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)""",
    re.IGNORECASE,
)
# No C0 controls except \t \n \v \f \r, backspace (in man pages), ESC (ISO-2022) and ^Z (end of a DOS file).
_CONTROLS = bytes({*range(0x20), 0x7F} - {0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1A, 0x1B})
_SHIFTS = b"\x0e\x0f"
_CONTROL_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
# Encodings in which texts are really met; EBCDIC, HP Roman or Baltic DOS only ever win by accident.
_STATISTICAL = [
    "big5", "big5hkscs", "cp949", "cp932", "euc_jp", "gb18030", "johab", "cp1250", "cp1251", "cp1252",
    "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp437", "cp850", "cp852", "cp855",
    "cp866", "cp874", "iso8859_2", "iso8859_5", "iso8859_6", "iso8859_7", "iso8859_8", "iso8859_15",
    "koi8_r", "koi8_u", "mac_cyrillic",
]  # fmt: skip
_LATIN = frozenset(
    {"cp1250", "cp1252", "cp1254", "cp1257", "cp1258", "iso8859_2", "iso8859_15", "cp850", "cp437"}
)
#: language -> codec, the bytes of its lower-case letters beyond ASCII. The first of equals is taken.
_ALPHABETS = {
    "French": ("cp1252", "e0 e2 e7 e8 e9 ea eb ee ef f4 f9 fb 9c"),
    "Spanish": ("cp1252", "e1 e9 ed f1 f3 fa fc"),
    "Portuguese": ("cp1252", "e0 e1 e2 e3 e7 e9 ea ed f3 f4 f5 fa"),
    "German": ("cp1252", "df e4 f6 fc"),
    "Italian": ("cp1252", "e0 e8 e9 ec f2 f9"),
    "Nordic": ("cp1252", "e4 e5 e6 f6 f8 e9"),
    "Icelandic": ("cp1252", "e1 e6 e9 ed f0 f3 f6 fa fd fe"),
    "Hungarian": ("cp1250", "e1 e9 ed f3 f5 f6 fa fb fc"),
    "Czech": ("cp1250", "e1 e8 e9 ec ed ef f2 f3 f8 f9 fa fd 9a 9d 9e"),
    "Czech, ISO": ("iso8859_2", "e1 e8 e9 ec ed ef f2 f3 f8 f9 fa fd b9 bb be"),
    "Slovak": ("cp1250", "e1 e4 e5 e8 e9 ed ef f2 f3 f4 fa fd be 9a 9d 9e"),
    "Slovak, ISO": ("iso8859_2", "e1 e4 e5 e8 e9 ed ef f2 f3 f4 fa fd b5 b9 bb be"),
    "Polish": ("cp1250", "b3 b9 bf e6 ea f1 f3 9c 9f"),
    "Polish, ISO": ("iso8859_2", "b1 b3 b6 bc bf e6 ea f1 f3"),
    "South Slavic": ("cp1250", "e6 e8 f0 9a 9e"),
    "South Slavic, ISO": ("iso8859_2", "b9 be e6 e8 f0"),
    "Romanian": ("cp1250", "ba e2 e3 ee fe"),
    "Turkish": ("cp1254", "e2 e7 ee f0 f6 fb fc fd fe"),
}
# Upper case is 0x20 below, in the upper half of these code pages; what no alphabet has does not count.
_LOWER = bytes(byte + 0x20 if 0xC0 <= byte < 0xDF else byte for byte in range(256))
_NO_LETTERS = bytes(
    {*range(256)} - set(bytes.fromhex("".join(letters for _, letters in _ALPHABETS.values())))
)


class NotText(Exception):
    """The bytes are no text; the message is the reason."""


class Decoded(NamedTuple):
    text: str
    encoding: str  # a Python codec


def decode(data: bytes) -> Decoded:
    """The text of `data` and the codec it was in.

    Text that is UTF-8 but for a few damaged bytes comes back as UTF-8 with U+FFFD at these places: any
    other codec would turn every other character to nonsense.

    Raises NotText for binary data and for text in no known encoding.
    """
    for encoding, errors in _candidates(data[:HEAD_BYTES], [data]):
        try:
            return Decoded(whole_characters(data.decode(encoding, errors)), encoding)
        except (UnicodeDecodeError, LookupError):
            continue
    raise NotText("text in an unknown encoding")


def file_encoding(path: Path) -> tuple[str, str]:
    """The codec and the error handler to open the text file `path` with; reads it in blocks.

    Raises NotText like `decode`, and OSError.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    for encoding, errors in _candidates(head, _Blocks(path)):
        try:
            decoder = codecs.getincrementaldecoder(encoding)(errors)
            for block in _Blocks(path):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except (UnicodeDecodeError, LookupError):
            continue
        return encoding, errors
    raise NotText("text in an unknown encoding")


class _Blocks:
    """The content of a file in blocks, as often as it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                yield block


def _candidates(head: bytes, blocks: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """(codec, error handler), the most trusted first."""
    for mark, codec in _BOMS:
        if head.startswith(mark):
            yield codec, "strict"
            if codec == "utf-8-sig" or (codec == "utf-16" and _is_text(_decoded(head, codec))):
                yield codec, "replace"
            raise NotText(f"not text: starts like {codec} but is none")
    if wide := _wide_unicode(head):
        yield wide, "strict"
        yield wide, "replace"
    if reason := binary_reason(head):
        raise NotText(reason)
    if b"\x1b$" in head or b"\x1b(" in head:  # ISO-2022 is made of ASCII bytes, so it would pass as UTF-8
        yield "iso2022_kr" if b"\x1b$)C" in head else "iso2022_jp_2", "strict"
        yield "iso2022_jp_ext", "strict"
    if b"~{" in head and b"~}" in head and head.isascii():
        yield "hz", "strict"
    yield "utf-8", "strict"
    yield "utf-8", "surrogatepass"  # halves of pairs, each written for itself (CESU-8, old Java and MySQL)
    damage = _utf8_damage(blocks)
    if damage is not None and damage <= _MAX_DAMAGE:
        yield "utf-8", "replace"
    if (declared := declared_encoding(head)) and declared not in ("utf-8", "ascii"):
        yield declared, "strict"
    for codec in _by_statistics(_sample(blocks)):
        yield codec, "strict"


def binary_reason(head: bytes) -> str | None:
    """Why the first bytes of a file are no text in an encoding of single bytes or UTF-8, or None."""
    if b"\x00" in head:
        return "binary file (NUL bytes)"
    shifts = _SHIFTS if b"\x1b$)" in head else b""  # ISO-2022-KR switches alphabets with SO and SI
    controls = len(head) - len(head.translate(None, _CONTROLS.translate(None, shifts)))
    if controls > _MAX_CONTROLS * len(head) and controls > 2:
        return f"binary file ({controls / len(head):.0%} control characters)"
    return None


def declared_encoding(head: bytes) -> str | None:
    """The Python codec that an XML declaration or an HTML meta element names, if Python has it."""
    match = _DECLARED.search(head[:8192])
    if match is None:
        return None
    name = (match[1] or match[2]).decode("ascii").lower()
    # The same supersets that browsers take (WHATWG Encoding Standard): real pages use their characters.
    name = {
        "gb2312": "gb18030", "gbk": "gb18030", "x-gbk": "gb18030", "shift_jis": "cp932", "x-sjis": "cp932",
        "shift-jis": "cp932", "euc-kr": "cp949", "ks_c_5601-1987": "cp949", "iso-8859-1": "cp1252",
        "latin1": "cp1252", "iso-8859-9": "cp1254", "tis-620": "cp874", "iso-8859-11": "cp874",
        "windows-874": "cp874", "big5": "big5hkscs", "x-mac-cyrillic": "mac_cyrillic", "us-ascii": "ascii",
        "utf-16": "utf-8", "utf-16le": "utf-8", "utf-16be": "utf-8",  # ASCII-compatible after all
    }.get(name, name)  # fmt: skip
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None


def _wide_unicode(head: bytes) -> str | None:
    """UTF-16 or UTF-32 without a byte-order mark, by where the NUL bytes are."""
    if b"\x00" not in head or len(head) < 8:
        return None
    head = head[: len(head) // 4 * 4]
    for codec, top in (("utf-32-le", 3), ("utf-32-be", 0)):
        if not any(head[top::4]) and max(head[abs(top - 1) :: 4]) <= 0x10:
            return codec
    even, odd = head[0::2].count(0), head[1::2].count(0)
    few, many = sorted((even, odd))
    # Spaces, digits and line ends make NULs in one half of the pairs; in text the other half has none.
    if few > 0.01 * many or many < 0.002 * len(head) / 2:
        return None
    # Of Chinese a third of the pairs without a NUL look like two ASCII characters, of other scripts none; of
    # ASCII text with NULs between its words all.
    pairs = [pair for pair in zip(head[0::2], head[1::2], strict=True) if 0 not in pair]
    ascii_pairs = sum(0x20 <= first < 0x7F and 0x20 <= second < 0x7F for first, second in pairs)
    if ascii_pairs > 0.6 * len(pairs):
        return None
    codec = "utf-16-le" if odd > even else "utf-16-be"
    return codec if _is_text(_decoded(head, codec)) else None


def _decoded(head: bytes, codec: str) -> str:
    """Without what the end of the sample has cut."""
    return head.decode(codec, "replace").removesuffix("\ufffd")


def _is_text(decoded: str) -> bool:
    suspicious = len(_CONTROL_TEXT.findall(decoded)) + decoded.count("\ufffd")
    return suspicious <= 0.01 * len(decoded)


def _utf8_damage(blocks: Iterable[bytes]) -> float | None:
    """Damaged sequences per well-formed non-ASCII character if read as UTF-8; None without any such."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    damaged = good = 0
    for block in blocks:
        text = decoder.decode(block)
        bad = text.count("\ufffd")
        damaged += bad
        good += len(text) - len(text.encode("ascii", "ignore")) - bad
    damaged += decoder.decode(b"", final=True).count("\ufffd")
    return damaged / good if good else None


def _by_statistics(sample: bytes) -> list[str]:
    """Codecs that charset-normalizer finds plausible for the sample, best first."""
    from charset_normalizer import from_bytes

    plausible: list[str] = []
    for match in from_bytes(sample, cp_isolation=_STATISTICAL, preemptive_behaviour=False, threshold=0.3):
        plausible += [match.encoding, *match.could_be_from_charset]
    if plausible and plausible[0] in _LATIN:
        plausible.insert(0, _by_alphabet(sample) or plausible[0])
    return list(dict.fromkeys(plausible))


def _by_alphabet(sample: bytes) -> str | None:
    """Tell Latin code pages apart by the accented letters of single languages.

    They differ in a handful of letters, which is too little for the statistics: French becomes Czech.
    """
    high = Counter(sample.translate(_LOWER).translate(None, _NO_LETTERS))
    if high.total() < 5:
        return None
    covered = {
        language: sum(high[byte] for byte in bytes.fromhex(letters)) / high.total()
        for language, (_, letters) in _ALPHABETS.items()
    }
    best = max(covered, key=lambda language: covered[language])
    return _ALPHABETS[best][0] if covered[best] >= 0.9 else None


def _sample(blocks: Iterable[bytes]) -> bytes:
    """The first lines that are not ASCII, so that the accents of a long English text are seen at all.

    A line or a space is never part of a multi-byte character, so no character is cut where there are any.
    """
    sample = bytearray()
    for block in blocks:
        if block.isascii():
            continue
        for line in block.splitlines(keepends=True):
            if not line.isascii():
                sample += line
            if len(sample) >= SAMPLE_BYTES:
                end = sample.rfind(b" ", SAMPLE_BYTES // 2, SAMPLE_BYTES)
                return bytes(sample[: end + 1 if end > 0 else SAMPLE_BYTES])
    return bytes(sample)
