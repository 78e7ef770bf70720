"""Answers of servers that know no grammars, brought into the form that our grammars have.

Our grammars write JSON without white space and go on where the prompt ends, `{"entities":[`. Other servers
lay JSON out as they like, write the opening themselves, and may say more before and after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hornbeam.llm.protocol import Completion, TokenScore

_WHITE = " \t\r\n"


def in_grammars_form(completion: Completion, opening: str, *, whole: bool) -> Completion:
    """The completion as the grammar would have written it: compact, without the opening, nothing behind the
    document's end. The tokens are cut alike, so that they still lie on the text.

    Args:
        whole: the server wrote the opening, too; where it wrote another one, the text is left as it is.
    """
    pieces: Sequence[TokenScore] = completion.tokens or (TokenScore(completion.text, 0.0),)
    if "".join(piece.text for piece in pieces) != completion.text:
        pieces = (TokenScore(completion.text, 0.0),)  # tokens that do not add up to the text say nothing
    reading = _Compact(opening, whole=whole)
    kept = [TokenScore(reading.take(piece.text), piece.logprob) for piece in pieces]
    if whole and reading.missing:
        return completion
    return replace(
        completion,
        text="".join(token.text for token in kept),
        tokens=tuple(token for token in kept if token.text) if completion.tokens else (),
        finish_reason="stop" if reading.closed else completion.finish_reason,
    )


class _Compact:
    """Takes a document's characters one after the other and leaves out what a grammar would not write."""

    def __init__(self, opening: str, *, whole: bool) -> None:
        self.missing = opening if whole else ""  # of the opening
        self._depth = 0 if whole else opening.count("{") + opening.count("[")
        self._begun = not whole
        self._in_string = self._escaped = False

    @property
    def closed(self) -> bool:
        return self._begun and not self._depth and not self.missing

    def take(self, text: str) -> str:
        return "".join(character for character in text if self._keeps(character))

    def _keeps(self, character: str) -> bool:
        if self._begun and not self._depth:
            return False  # behind the end
        if self._in_string:
            self._in_string = self._escaped or character != '"'
            self._escaped = character == "\\" and not self._escaped
        elif character in _WHITE or (not self._begun and character != "{"):
            return False
        else:
            self._begun = True
            self._in_string = character == '"'
            self._depth += (character in "{[") - (character in "}]")
        if not self.missing:
            return True
        if self.missing[0] != character:
            self._depth, self.missing = 0, self.missing + " "  # another document: read no more of it
            return False
        self.missing = self.missing[1:]
        return False
