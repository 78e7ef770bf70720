"""The shape of a question, by which `auto` takes an engine. Cheap: no model, no index."""

from __future__ import annotations

import re
from typing import Literal

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
#: What hangs one thing on another: "the mother of the director of …", "Curie's brother", "… who wrote …".
_HOOK = re.compile(
    r"\bof\b|['’]s\b|\b(?:who|whose|whom|that|which|where|when)\b|\bby\b|\bin which\b|的|котор\w+|\bчье\w+",
    re.IGNORECASE,
)
_NESTED_FROM = 3


def shape_of(question: str) -> Shape:
    names = names_in(question)
    if _TOPIC.search(question) and len(names) < 2:
        return "topic"
    if len(names) >= 2 and _COMPARED.search(question):
        return "comparison"
    return "nested" if len(_HOOK.findall(question)) >= _NESTED_FROM else "simple"
