"""How an answer is written: the model's text as it comes, and the evidence that each claim rests on.

Three styles. `extract`: a passage of the evidence, word for word, by grammar: what a compact model can do
without making things up. `short`: a few words of the model's own. `sentences`: whole sentences. In all of
them the grammar ends a claim with the label of a piece that was shown, so a citation cannot be invented; a
server that knows no grammar may write any, and those that point nowhere are not passed on as citations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from hornbeam.answer.events import AnswerText, Cited
from hornbeam.answer.grammars import extract_rules, sentences_rules
from hornbeam.answer.inquiry import Inquiry, Style, numbered
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.protocol import Completion
from hornbeam.retrieve.evidence import Evidence

#: Facts and summaries that the extract style shows beside the source text.
_GRAPH_PIECES = 4
#: " [12]"
_MARK_TOKENS = 8
#: A passage may be as long as its clause.
_ANY_LENGTH = 10_000
_SHORT_TOKENS = 48
_MARK = re.compile(r"\[(\d+)\]")
#: Blanks that a mark leaves before the end of a clause.
_BEFORE_END = re.compile(r"\s+(?=[.,;:!?](?:\s|$)|[。，、；：！？])")


def without_marks(text: str) -> str:
    """An answer without the numbers of its evidence, single spaces: "Warsaw [2]." → "Warsaw."."""
    return " ".join(_BEFORE_END.sub("", _MARK.sub(" ", text)).split())


class AnswerForm:
    """What the model sees of the evidence, and what it may write.

    Args:
        evidence: best first; at least one piece.
        question: None: the inquiry's.

    Attributes:
        style: "sentences" in place of "extract" where no piece holds a word to quote.
        rules: EBNF, whose rule `answer` is the answer.
    """

    def __init__(self, inquiry: Inquiry, evidence: Sequence[Evidence], question: str | None = None) -> None:
        self.style: Style = inquiry.style
        self._inquiry = inquiry
        self._question = inquiry.question if question is None else question
        self._lexicons = {piece.label: SpanLexicon(piece.text, _ANY_LENGTH) for piece in evidence}
        if self.style == "extract" and not any(self._lexicons.values()):
            self.style = "sentences"
        self.shown = list(evidence)
        if self.style == "extract":
            # Source text first; of the graph's own words only the best few.
            graph = [piece for piece in evidence if piece.kind != "chunk"][:_GRAPH_PIECES]
            # The best last, next to the question: what a small model reads last it uses most.
            self.shown = [piece for piece in evidence if piece.kind == "chunk" or piece in graph][::-1]
        self._by_label = {piece.label: piece for piece in self.shown}
        labels = [piece.label for piece in self.shown]
        if self.style == "extract":
            self._lexicons = {label: self._lexicons[label] for label in labels}
            count = inquiry.model.tokenizer.count
            # Room for the longest passage that the grammar allows: a cut one would lack its citation.
            longest = max(count(lexicon.text) for lexicon in self._lexicons.values())
            self.rules, self.max_tokens = extract_rules(self._lexicons), longest + _MARK_TOKENS
        elif self.style == "short":
            self.rules, self.max_tokens = sentences_rules(labels, 1, words=8), _SHORT_TOKENS
        else:
            settings = inquiry.answer
            self.rules, self.max_tokens = sentences_rules(labels, settings.max_sentences), settings.max_tokens

    @property
    def evidence(self) -> str:
        """The pieces as the model reads them."""
        return numbered(self.shown)

    @property
    def prompt(self) -> str:
        return self._inquiry.chat(self.style, evidence=self.evidence, question=self._question)

    @property
    def grammar(self) -> str:
        return f"root ::= answer\n{self.rules}"

    def cited(self, label: int, claim: str) -> Evidence | None:
        """The piece with a label, cut to the claim's own characters where it was quoted from the document."""
        piece = self._by_label.get(label)
        if piece is None or self.style != "extract":
            return piece
        places = self._lexicons[label].occurrences(claim)
        if not places or piece.start is None or piece.text != piece.quote:
            return piece
        start, end = places[0]
        return replace(piece, start=piece.start + start, end=piece.start + end, quote=piece.text[start:end])


class AnswerReader:
    """Reads an answer as it comes.

    Attributes:
        text: so far.
        citations: each once, in the order of the answer.
        cut: the token limit ended it.
    """

    def __init__(self, form: AnswerForm) -> None:
        self._form = form
        self._read = 0
        self._cited: dict[int, Evidence] = {}
        self.text = ""
        self.cut = False

    @property
    def text_without_marks(self) -> str:
        return without_marks(self.text)

    @property
    def citations(self) -> tuple[Evidence, ...]:
        return tuple(self._cited.values())

    def take(self, part: str) -> Iterator[AnswerText | Cited]:
        self.text += part
        yield AnswerText(part)
        for match in _MARK.finditer(self.text, self._read):
            claim, self._read = self.text[self._read : match.start()].strip(), match.end()
            label = int(match[1])
            piece = self._form.cited(label, claim)
            if piece is not None and label not in self._cited:
                self._cited[label] = piece
                yield Cited(piece)


def write_answer(inquiry: Inquiry, form: AnswerForm, reader: AnswerReader) -> Iterator[AnswerText | Cited]:
    """Stream one answer into `reader`.

    Raises:
        ModelError: the model failed.
    """
    request = inquiry.request("answer", form.prompt, form.max_tokens, grammar=form.grammar)
    with inquiry.meter.timed("answer"):
        for part in inquiry.model.stream(request):
            if isinstance(part, Completion):
                inquiry.check("answer", part)
                inquiry.meter.called("answer", part.usage)
                reader.cut = part.finish_reason == "length"
                return
            inquiry.meter.first_token()
            yield from reader.take(part)
