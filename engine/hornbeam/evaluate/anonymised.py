"""A corpus whose entities are tags: what a system then knows, it knows from the text.

Each chosen entity gets a tag, "[PERSON#12]"; its name and all its aliases become that tag, in every document.
The number is drawn by a seed and says nothing about how often the entity occurs. A name that two entities
share stays as it is: it would be no one's.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hornbeam.retrieve.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    import regex

#: Letters and numbers of scripts that put spaces between words: a name may not begin or end inside of them.
_SPACED = r"[[\p{L}\p{N}]--[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]"
TAG = re.compile(r"\[[A-Z][A-Z_]*#\d+\]")


@dataclass(frozen=True, slots=True)
class Tagged:
    """An entity and what stands for it."""

    row: int
    tag: str
    type: str
    name: str
    forms: tuple[str, ...]  # the name and the aliases that are replaced


def choose(kb: KnowledgeBase, count: int, seed: int, taken: Iterable[str] = ()) -> list[Tagged]:
    """The `count` entities that the most chunks mention, tagged.

    Only what reads like a name: with a capital or a number in it, or of letters without case, and of two
    characters at least. What is mentioned in one chunk only is left out: nothing else tells of it.

    Args:
        taken: texts whose own "[X#1]" must not become a tag.
    """
    chunks = {row: len(set(kb.mentions.of(row).tolist())) for row in range(len(kb.entities))}
    forms = {row: _forms(kb, row) for row in chunks}
    shared = Counter(form for names in forms.values() for form in set(names))
    named = [
        row
        for row in sorted(chunks, key=lambda row: (-chunks[row], row))
        if chunks[row] > 1 and _is_name(kb.entity_name(row)) and shared[kb.entity_name(row)] == 1
    ][:count]
    used = {match for text in taken for match in TAG.findall(text)}
    numbers = random.Random(seed).sample(range(1, 10 * len(named) + 10), len(named))
    tagged = []
    for row, number in zip(named, numbers, strict=True):
        kind = re.sub(r"[^A-Z]+", "_", kb.entities.text("type", row).upper()).strip("_") or "ENTITY"
        while (tag := f"[{kind}#{number}]") in used:
            number += 10 * len(named) + 10
        used.add(tag)
        own = tuple(form for form in forms[row] if shared[form] == 1 and _is_name(form))
        tagged.append(Tagged(row, tag, kind, kb.entity_name(row), own))
    return tagged


class Anonymiser:
    """Puts tags in place of names; the longest name that stands at a place counts."""

    def __init__(self, tagged: Sequence[Tagged]) -> None:
        import regex

        self._tag_of = {form: one.tag for one in tagged for form in one.forms}
        parts = [_part(form) for form in sorted(self._tag_of, key=lambda form: (-len(form), form))]
        self._names: regex.Pattern[str] | None = regex.compile("|".join(parts), regex.V1) if parts else None

    def text(self, text: str) -> str:
        if self._names is None:
            return text
        hidden: str = self._names.sub(lambda match: self._tag_of[match[0]], text)
        return hidden


def _part(form: str) -> str:
    import regex

    spaced = regex.compile(_SPACED, regex.V1)
    before = rf"(?<!{_SPACED})" if spaced.match(form[0]) else ""
    after = rf"(?!{_SPACED})" if spaced.match(form[-1]) else ""
    return f"{before}{regex.escape(form)}{after}"


def _forms(kb: KnowledgeBase, row: int) -> list[str]:
    return list(dict.fromkeys([kb.entity_name(row), *kb.entities.get("aliases", row)]))


def _is_name(text: str) -> bool:
    """ "Warsaw", "mRNA", "北京", "T4", but not "tides", "1867" or "A"."""
    letters = [character for character in text if character.isalpha()]
    if len(text) < 2 or not letters:
        return False
    caseless = all(not character.isupper() and not character.islower() for character in letters)
    return caseless or any(character.isupper() for character in letters)
