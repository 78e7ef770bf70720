"""Where a name stands in a text."""

from __future__ import annotations

import regex


def places_of(name: str, text: str) -> list[tuple[int, int]]:
    """Spans of a name as whole words, in any case and spacing."""
    words = r"\s+".join(regex.escape(word) for word in name.split())
    left = r"(?<!\w)" if name[0].isalnum() and name[0].isascii() else ""
    right = r"(?!\w)" if name[-1].isalnum() and name[-1].isascii() else ""
    return [match.span() for match in regex.finditer(left + words + right, text, regex.IGNORECASE)]
