"""What a type of a schema is, as far as names are concerned: people are called by a surname, companies
without their legal form.

Schemas name their types as they like, so this is read off the name of the type.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache

import regex


class NameKind(StrEnum):
    PERSON = "person"
    ORGANISATION = "organisation"
    QUANTITY = "quantity"  # dates, numbers, amounts: written forms that differ are different things
    OTHER = "other"


_HINTS = {
    NameKind.PERSON: "person per people human character author actor artist scientist politician employee "
    "人物 人 персона человек",
    NameKind.ORGANISATION: "organization organisation org company institution agency team corporation "
    "publisher 组织 机构 公司 организация компания",
    NameKind.QUANTITY: "date time year num number money percent ordinal cardinal quantity age duration "
    "metric value 日期 时间 数字 дата число",
}
_KIND_OF = {word: kind for kind, words in _HINTS.items() for word in words.split()}
_WORDS = regex.compile(r"(?<=\p{Ll})(?=\p{Lu})|[\W_]+")


@cache
def name_kind(entity_type: str) -> NameKind:
    """The kind that a word of the type's name tells, the last word first: "birth place" is a place."""
    for word in reversed(_WORDS.split(entity_type)):
        if kind := _KIND_OF.get(word.lower()):
            return kind
    return NameKind.OTHER
