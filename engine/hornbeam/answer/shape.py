"""The shape of a question, by which `auto` takes an engine. Cheap: no model, no index."""

from __future__ import annotations

from typing import Literal

import regex as re

from hornbeam.answer.names import names_in

Shape = Literal["topic", "comparison", "nested", "simple"]

#: A question about everything that the documents say.
_TOPIC = re.compile(
    r"\b(?:summar(?:y|ies|i[sz]e)|overview|themes?|topics?|trends?|in general|overall|throughout|across)\b"
    r"|\b(?:main|key|major|common|recurring|important)\s+\w*\s*"
    r"(?:ideas?|points?|events?|issues?|findings?|challenges?|aspects?|characters?|people|places|factors?)\b"
    r"|总结|概述|主题|总体|主要(?:内容|人物|事件|观点)|главн\w+ тем|обзор|в целом",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"\b(?:or|both|same|than|older|younger|earlier|later|first|longer|larger|bigger|more|between|share|common)\b"
    r"|还是|都|相同|или|оба|обе|раньше|позже",
    re.IGNORECASE,
)
#: What hangs one thing on another: "the mother of the director of", "Curie's brother", "the man who wrote".
_HOOK = re.compile(
    r"\bof\b|['’]s\b|(?<=\w )(?:who|whose|whom|that|which|where|when)\b|\bby\b|的|котор\w+",
    re.IGNORECASE,
)
#: How a question begins; a question word there hangs nothing on anything.
_OPENING = re.compile(
    r"^\s*(?:in|on|at|for|from|by|to|with|under|of|about)?\s*(?:what|which|who|whose|whom|where|when|how)\b",
    re.IGNORECASE,
)
#: "When was the director of Big Stone Gap born?": asked of a thing that is itself only described.
_OF_DESCRIBED = re.compile(r"\bthe (?:\w+ )?\w+ of .*\b\p{Lu}.* \p{Ll}+\s*\?*$")
_NESTED_FROM = 2


def shape_of(question: str) -> Shape:
    # "Joe Gallivan and John Loone" are two to compare.
    names = [part for name in names_in(question) for part in re.split(r" (?:and|&) ", name)]
    if _TOPIC.search(question) and len(names) < 2:
        return "topic"
    if len(names) >= 2 and _COMPARED.search(question):
        return "comparison"
    hooks = _HOOK.findall(_OPENING.sub("", question))
    return "nested" if len(hooks) >= _NESTED_FROM or _OF_DESCRIBED.search(question) else "simple"
