"""A question to a stream of events: evidence first, then the answer as it is written, with its citations."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from hornbeam.answer.events import AnswerText, Cited, Event, EvidenceFound, Final
from hornbeam.answer.prompts import (
    ANSWERABLE_GRAMMAR,
    answerable_prompt,
    extract_grammar,
    extract_prompt,
    sentences_grammar,
    sentences_prompt,
)
from hornbeam.errors import ModelError
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.protocol import Completion, LanguageModel, Request, Usage
from hornbeam.retrieve.evidence import Evidence, pack_evidence
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.model_reranker import reranked_by_model
from hornbeam.retrieve.search import ROUTES, search
from hornbeam.settings import AnswerSettings, RetrieveSettings

Engine = Literal["mix", "naive"]
Style = Literal["extract", "sentences"]

#: naive: the chunks alone, dense and lexical. mix: every route.
ROUTES_OF_ENGINE: dict[Engine, frozenset[str]] = {
    "mix": frozenset(ROUTES),
    "naive": frozenset({"chunk_dense", "chunk_bm25"}),
}
NO_EVIDENCE = "The index holds no evidence for this question."
NOT_ANSWERED = "The evidence found does not answer this question."

#: Facts and summaries that the extract style shows beside the source text.
_GRAPH_PIECES = 4
#: " [12]"
_MARK_TOKENS = 8
#: A passage may be as long as its clause.
_ANY_LENGTH = 10_000
_MARK = re.compile(r"\[(\d+)\]")


def answer_question(
    kb: KnowledgeBase,
    model: LanguageModel,
    question: str,
    *,
    retrieve: RetrieveSettings,
    answer: AnswerSettings,
    engine: Engine = "mix",
    style: Style = "sentences",
) -> Iterator[Event]:
    """Retrieve, decide (in reject mode) and answer. Closing the iterator stops the model.

    Raises:
        ModelError: the model could not answer.
    """
    started = time.perf_counter()
    kb = reranked_by_model(kb, model, retrieve)
    result = search(kb, question, retrieve, routes=ROUTES_OF_ENGINE[engine])
    evidence = pack_evidence(
        kb, result, token_budget=answer.evidence_tokens, count_tokens=model.tokenizer.count
    )
    spent = dict(result.milliseconds)
    yield EvidenceFound(tuple(evidence), spent)
    usage = Usage()
    if not evidence:
        yield _final(NO_EVIDENCE, True, None if answer.mode == "open" else 0.0, (), usage, spent, started)
        return
    probability = None
    if answer.mode == "reject":
        before = time.perf_counter()
        probability, usage = _answerable(model, question, evidence)
        spent["decide"] = _milliseconds(before)
        if probability < answer.answerable_threshold:
            yield _final(NOT_ANSWERED, True, probability, (), usage, spent, started)
            return
    before = time.perf_counter()
    writer = _extractor(model, question, evidence) if style == "extract" else None
    request = writer.request() if writer else _sentences_request(model, question, evidence, answer)
    by_label = {piece.label: piece for piece in evidence}
    text, read, cut = "", 0, False
    cited: dict[int, Evidence] = {}
    for part in model.stream(request):
        if isinstance(part, Completion):
            if part.finish_reason == "error":
                raise ModelError(f"the model could not answer: {part.error}")
            usage += part.usage
            cut = part.finish_reason == "length"
            break
        if not text:
            spent["first_token"] = _milliseconds(started)
        text += part
        yield AnswerText(part)
        for match in _MARK.finditer(text, read):
            claim, read = text[read : match.start()].strip(), match.end()
            label = int(match[1])
            piece = by_label.get(label)
            if piece is None:  # a server that knows no grammars wrote it
                continue
            if label not in cited:
                cited[label] = writer.narrowed(piece, claim) if writer else piece
                yield Cited(cited[label])
    spent["answer"] = _milliseconds(before)
    final = _final(text, False, probability, tuple(cited.values()), usage, spent, started)
    yield replace(final, cut=cut)


class _Extractor:
    """The extract style: which pieces it shows, its grammar, and where in a piece an answer stands."""

    def __init__(self, model: LanguageModel, question: str, evidence: Sequence[Evidence]) -> None:
        # Source text first; of the graph's own words only the best few.
        graph = [piece for piece in evidence if piece.kind != "chunk"][:_GRAPH_PIECES]
        shown = [piece for piece in evidence if piece.kind == "chunk" or piece in graph]
        self._lexicons = {piece.label: SpanLexicon(piece.text, _ANY_LENGTH) for piece in shown}
        self._count_tokens = model.tokenizer.count
        self._prompt = extract_prompt(model, question, shown)

    def request(self) -> Request:
        # Room for the longest passage that the grammar allows: a cut one would lack its citation.
        longest = max(self._count_tokens(lexicon.text) for lexicon in self._lexicons.values())
        grammar = extract_grammar(self._lexicons)
        return Request("answer", self._prompt, longest + _MARK_TOKENS, grammar=grammar)

    def narrowed(self, piece: Evidence, claim: str) -> Evidence:
        """The piece cut to the claim's own characters, where its text is the document's."""
        places = self._lexicons[piece.label].occurrences(claim)
        if not places or piece.start is None or piece.text != piece.quote:
            return piece
        start, end = places[0]
        return replace(piece, start=piece.start + start, end=piece.start + end, quote=piece.text[start:end])


def _extractor(model: LanguageModel, question: str, evidence: Sequence[Evidence]) -> _Extractor | None:
    """None when no piece holds a word to quote."""
    if not any(SpanLexicon(piece.text, _ANY_LENGTH) for piece in evidence):
        return None
    return _Extractor(model, question, evidence)


def _sentences_request(
    model: LanguageModel, question: str, evidence: Sequence[Evidence], settings: AnswerSettings
) -> Request:
    grammar = sentences_grammar([piece.label for piece in evidence], settings.max_sentences)
    return Request(
        "answer", sentences_prompt(model, question, evidence), settings.max_tokens, grammar=grammar
    )


def _answerable(model: LanguageModel, question: str, evidence: Sequence[Evidence]) -> tuple[float, Usage]:
    """P(yes) of the model's yes or no, from the probabilities that the grammar left."""
    prompt = answerable_prompt(model, question, evidence)
    model.submit(Request("answerable", prompt, 4, grammar=ANSWERABLE_GRAMMAR, logprobs=True))
    (completion,) = model.poll()
    if completion.finish_reason == "error":
        raise ModelError(f"the model could not decide: {completion.error}")
    said = math.exp(sum(token.logprob for token in completion.tokens))
    return (said if completion.text == "yes" else 1.0 - said), completion.usage


def _final(
    text: str,
    rejected: bool,
    probability: float | None,
    citations: tuple[Evidence, ...],
    usage: Usage,
    spent: dict[str, float],
    started: float,
) -> Final:
    tokens = {"prompt": usage.prompt, "cached": usage.cached, "output": usage.output}
    return Final(text, rejected, probability, citations, tokens, spent | {"total": _milliseconds(started)})


def _milliseconds(since: float) -> float:
    return round((time.perf_counter() - since) * 1000, 1)
