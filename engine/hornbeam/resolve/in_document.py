"""Names of one document that are one thing: everything that can be told without another document."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from hornbeam.resolve.evidence import SCORES, EvidenceKind, Link, LocalName
from hornbeam.resolve.forms import (
    acronyms_of,
    is_acronym_of,
    is_company_part,
    is_given_name,
    is_person_part,
    one_slip_apart,
    stem_key,
    without_title,
)
from hornbeam.resolve.kinds import NameKind, name_kind
from hornbeam.resolve.names import is_unspaced, name_words, ordinals_of, spelling_key
from hornbeam.resolve.statements import stated_links

#: Longer names that hold a shorter one; with more of them the shorter one tells nothing.
_MOST_WHOLES = 64
_LEAST_APPOSITIONS = 2


def document_links(text: str, names: Sequence[LocalName]) -> list[Link]:
    """Every link between names of one document, in no order of worth; near-linear in the names."""
    links = list(stated_links(text, names))
    links += _same_name(names)
    links += _appositions(names)
    groups: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        if name_kind(name.type) is not NameKind.QUANTITY:
            groups[name.type].append(number)
    for kind, members in groups.items():
        links += _by_form(names, members, name_kind(kind))
        if name_kind(kind) in (NameKind.PERSON, NameKind.ORGANISATION):
            links += _partial(names, members, name_kind(kind))
    return links


def _link(names: Sequence[LocalName], alias: int, target: int, kind: EvidenceKind) -> Link:
    """A link whose evidence is the first place of the alias."""
    start, end = names[alias].places[0]
    return Link(alias, target, kind, start, end, SCORES[kind])


def _weight(names: Sequence[LocalName], number: int) -> tuple[int, str, str]:
    """Names are linked to the one that is written most."""
    name = names[number]
    return (-len(name.places), name.canonical, name.type)


def _same_name(names: Sequence[LocalName]) -> Iterator[Link]:
    """One name under several types."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        by_name[name.canonical].append(number)
    for same in by_name.values():
        first, *others = sorted(same, key=lambda number: (-names[number].votes, names[number].type))
        for other in others:
            yield _link(names, other, first, EvidenceKind.TYPE)


def _appositions(names: Sequence[LocalName]) -> Iterator[Link]:
    """An epithet in characters that stands right before one person's name, twice at least and most often:
    豹子头林冲."""
    starts = {
        start: (number, end)
        for number, name in enumerate(names)
        if name_kind(name.type) is NameKind.PERSON and is_unspaced(name.canonical)
        for start, end in name.places
    }
    followed: dict[int, Counter[int]] = defaultdict(Counter)
    places: dict[tuple[int, int], tuple[int, int]] = {}
    for start, (number, end) in sorted(starts.items()):
        other, other_end = starts.get(end, (number, end))
        if other != number and names[other].type == names[number].type:
            followed[number][other] += 1
            places.setdefault((number, other), (start, other_end))
    for number, others in followed.items():
        other, times = min(others.items(), key=lambda item: (-item[1], item[0]))
        if times >= _LEAST_APPOSITIONS and 2 * times > others.total():
            start, end = places[number, other]
            score = SCORES[EvidenceKind.APPOSITION]
            yield Link(number, other, EvidenceKind.APPOSITION, start, end, score)


def _by_form(names: Sequence[LocalName], members: Sequence[int], kind: NameKind) -> Iterator[Link]:
    """Names of one type whose forms say that they are one: spelling, inflection, adjectives, acronyms."""
    yield from _equal(names, members, lambda name: spelling_key(name.canonical), EvidenceKind.SPELLING)
    yield from _equal(names, members, lambda name: stem_key(name.canonical), EvidenceKind.INFLECTION)
    yield from _slips(names, members)
    if kind is not NameKind.PERSON:
        yield from _acronyms(names, members)


def _acronyms(names: Sequence[LocalName], members: Sequence[int]) -> Iterator[Link]:
    """An acronym and the only long form of the document that it fits."""
    long_forms: dict[str, list[int]] = defaultdict(list)
    for number in members:
        for letters in acronyms_of(names[number].canonical):
            long_forms[letters].append(number)
    for number in members:
        wholes = [
            whole
            for whole in long_forms.get(spelling_key(names[number].canonical), ())
            if whole != number and is_acronym_of(names[number], names[whole])
        ]
        if len(wholes) == 1:
            yield _link(names, number, wholes[0], EvidenceKind.ACRONYM)


def _equal(
    names: Sequence[LocalName],
    members: Sequence[int],
    key_of: Callable[[LocalName], str | None],
    kind: EvidenceKind,
) -> Iterator[Link]:
    groups: dict[str, list[int]] = defaultdict(list)
    for number in members:
        if key := key_of(names[number]):
            groups[key].append(number)
    for same in groups.values():
        first, *others = sorted(same, key=lambda number: _weight(names, number))
        for other in others:
            yield _link(names, other, first, kind)


def _slips(names: Sequence[LocalName], members: Sequence[int]) -> Iterator[Link]:
    """Names one letter apart: two such names have a form in common that lacks one letter."""
    lacking: dict[str, list[int]] = defaultdict(list)
    for number in members:
        name = names[number].canonical
        if not is_unspaced(name):
            for variant in {name, *(name[:place] + name[place + 1 :] for place in range(1, len(name) - 2))}:
                lacking[variant].append(number)
    pairs = {pair for near in lacking.values() for pair in combinations(near, 2)}
    for pair in sorted(pairs):
        if one_slip_apart(names[pair[0]].canonical, names[pair[1]].canonical):
            target, alias = sorted(pair, key=lambda number: _weight(names, number))
            yield _link(names, alias, target, EvidenceKind.SLIP)


def _partial(names: Sequence[LocalName], members: Sequence[int], kind: NameKind) -> Iterator[Link]:
    """A part of a name stands for the whole, which was written before, where only one whole has it."""
    words = {number: without_title(_plain_words(names[number].canonical)) for number in members}
    holding: dict[str, list[int]] = defaultdict(list)
    for number in members:
        for word in set(words[number]):
            holding[word].append(number)

    def fits(short: int, whole: int) -> bool:
        first, second = names[short].canonical, names[whole].canonical
        if first == second or ordinals_of(first) != ordinals_of(second):
            return False
        if kind is NameKind.ORGANISATION:
            return is_company_part(words[short], words[whole])
        if is_unspaced(first) or is_unspaced(second):
            return is_given_name(first, second)
        if words[short] == words[whole]:
            return len(first) < len(second)  # with a title, or another one
        return is_person_part(words[short], words[whole])

    for number in members:
        telling = [word for word in words[number] if len(word) > 1] or words[number]  # not initials
        candidates = min((holding[word] for word in telling), key=len, default=[])
        if len(candidates) > _MOST_WHOLES:
            continue
        wholes = [whole for whole in candidates if fits(number, whole)]
        if not wholes:
            continue
        longest = max(wholes, key=lambda whole: (len(words[whole]), names[whole].canonical))
        # One word is a name of many until somebody of it was introduced.
        introduced = (
            len(words[number]) > 1
            or min(names[whole].places[0] for whole in wholes) <= names[number].places[0]
        )
        if introduced and all(whole == longest or fits(whole, longest) for whole in wholes):
            yield _link(names, number, longest, EvidenceKind.PARTIAL)


def _plain_words(canonical: str) -> tuple[str, ...]:
    """Words as `spelling_key` writes them."""
    return tuple(spelling_key(word) for word in name_words(canonical))
