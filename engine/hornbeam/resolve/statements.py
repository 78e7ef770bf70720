"""Aliases that a text states.

"X, also known as Y", "X (Y)", "X, formerly Y", "宋江，表字公明", "X, он же Y"
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import regex

from hornbeam.resolve.evidence import SCORES, EvidenceKind, Link, LocalName
from hornbeam.resolve.forms import is_acronym_of, of_other_script

#: Characters between two names that a statement may take, and names after the first that are looked at.
_LONGEST_GAP = 90
_NAMES_AHEAD = 3

_OPENING = r"[\s,;:(（\[–—,，、-]*"
_QUOTE = r"[\s\"'“”‘’«»„「『《`]*"
_ADVERB = (
    r"(?:also|better|best|commonly|formerly|previously|originally|widely|popularly|sometimes|often|officially|"
    r"once|now|later|usually|generally|professionally|simply|locally|historically|either|more|then|initially)"
)
_BE = (
    r"(?:(?:who|which|that|and|but|he|she|it|they)\s+)*"
    r"(?:(?:is|was|are|were|be|been|has\s+been|had\s+been)\s+)?"
)
_ENGLISH = "|".join((
    rf"{_BE}(?:{_ADVERB}\s+)*(?:known|referred\s+to|billed|credited|abbreviated|shortened|styled|stylized|"
    rf"spelled|spelt|translated|transliterated|romanized)\s+(?:{_ADVERB}\s+)?(?:as|to|in\s+\w+\s+as)"
    r"(?:\s+(?:his|her|its|their)\s+(?:\w+\s+)?name)?(?:\s+the)?",
    rf"{_BE}(?:{_ADVERB}\s+)+(?:called|named|titled|nicknamed|dubbed|renamed|spelled|spelt|written)",
    r"(?:who|which|and|it|he|she)?\s*(?:is|was|were)\s+(?:then\s+|later\s+)?(?:renamed|nicknamed|dubbed)"
    r"(?:\s+(?:to|as))?(?:\s+the)?",
    r"(?:who|which)\s+(?:changed|shortened)\s+(?:his|her|its|their)\s+name\s+to",
    r"a\s*\.?\s*k\s*\.?\s*a\s*\.?",
    r"(?:alias|née|né|nee|formerly|previously|originally|nicknamed|dubbed|abbreviated|a\s+pseudonym\s+"
    r"(?:of|for)|(?:the\s+)?(?:pseudonym|pen\s+name|stage\s+name|nickname|real\s+name|birth\s+name|full\s+name)"
    r"(?:\s+(?:is|was|of))?|short\s+for|in\s+short|or\s+simply|or\s+just|i\s*\.\s*e\s*\.)\s*:?",
    # A language before the name in it: "(French: Le Ventre de Paris)"
    r"(?:\p{Lu}\p{Ll}+\s+)?(?:Arabic|Chinese|Czech|Danish|Dutch|English|Finnish|French|German|Greek|Hebrew|"
    r"Hindi|Hungarian|Irish|Italian|Japanese|Korean|Latin|Malay|Norwegian|Persian|Pinyin|pinyin|Polish|"
    r"Portuguese|Romanian|Russian|Serbian|Spanish|Swedish|Thai|Turkish|Ukrainian|Vietnamese|Welsh)\s*:",
))  # fmt: skip
_PSEUDONYM = (
    r"[^.!?。！？]{0,60}?\b(?:under\s+the\s+(?:name|pseudonym|alias|stage\s+name|pen\s+name)|"
    r"(?:his|her|its|whose)\s+(?:birth|real|full|stage|pen|original|former|official)\s+name(?:\s+is|\s+was)?|"
    r"under\s+(?:his|her)\s+(?:pseudonym|alias|stage\s+name|pen\s+name))"
)
_EUROPEAN = r"(?:dit|dite|genannt|eigentlich|conocid[oa]\s+como|detto|detta|connu\s+sous\s+le\s+nom\s+de)"
_RUSSIAN = (
    r"(?:он\s+же|она\s+же|они\s+же|(?:более\s+|также\s+|больше\s+)*известн\w+\s+(?:также\s+)?как|по\s+прозвищу|"
    r"прозванн\w+|под\s+псевдонимом|псевдоним|настоящее\s+имя|настоящая\s+фамилия|урожд[её]нн\w+|"
    r"в\s+девичестве|ранее|прежде|бывш\w+|сокращ[её]нно|сокр\.|далее|или\s+просто|именуем\w+|называем\w+|"
    r"прежнее\s+название)\s*[–—:-]?"
)
_CHINESE = (
    r"(?:表?字|又?号|又名|又称|又叫|亦称|亦名|也称|也叫|别名|别号|别称|原名|本名|小名|乳名|绰号|外号|诨名|浑名|"
    r"混名|人称|江湖上?人?称|人唤|人都唤|唤做|唤作|叫做|叫作|称为|称作|简称|全称|化名|笔名|艺名|谥号?|庙号|法号|"
    r"法名|道号|俗称|改名|更名)(?:为|叫做?|做|作|曰|是)?[：:]?"
)


@cache
def _stated() -> regex.Pattern[str]:
    said = "|".join((_ENGLISH, _PSEUDONYM, _EUROPEAN, _RUSSIAN, _CHINESE))
    # "in India known as X" says it of what stands before India.
    return regex.compile(rf"(?!\s*known\b){_OPENING}(?:{said}){_QUOTE}", regex.V1 | regex.IGNORECASE)


@cache
def _brackets() -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    label = r"(?:\p{L}+(?:\s\p{L}+)?\s*[:：]\s*)?"  # the language of what follows
    before = regex.compile(rf"\s*[(（\[]{_QUOTE}{label}")
    return before, regex.compile(r"[\s\"'“”‘’«»」』》]*[)）\],;，；]")


def stated_links(text: str, names: Sequence[LocalName]) -> Iterator[Link]:
    """Links between names of one type where the text between two mentions states an alias.

    The evidence is the text from the first name to the end of the second.
    """
    mentions = sorted((start, end, number) for number, name in enumerate(names) for start, end in name.places)
    opening, closing = _brackets()
    stated = _stated()
    for place, (start, end, number) in enumerate(mentions):
        seen = 0
        for next_start, next_end, other in mentions[place + 1 :]:
            if next_start < end:
                continue  # inside this one
            if next_start - end > _LONGEST_GAP or seen >= _NAMES_AHEAD:
                break
            seen += 1
            if names[number].type != names[other].type or number == other:
                continue
            gap = text[end:next_start]
            score = SCORES[EvidenceKind.STATED]
            if stated.fullmatch(gap):
                yield Link(other, number, EvidenceKind.STATED, start, next_end, score)
            elif opening.fullmatch(gap) and closing.match(text, next_end):
                first, second = names[number], names[other]
                if is_acronym_of(second, first) or of_other_script(first, second):
                    yield Link(other, number, EvidenceKind.STATED, start, next_end, score)
                elif is_acronym_of(first, second):
                    yield Link(number, other, EvidenceKind.STATED, start, next_end, score)
