"""A question to a stream of events: evidence first, then the answer as it is written, with its citations."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from typing import Literal

from hornbeam.answer.events import AnswerText, Cited, Event, EvidenceFound, Final
from hornbeam.answer.prompts import ANSWERABLE_GRAMMAR, answer_grammar, answer_prompt, answerable_prompt
from hornbeam.errors import ModelError
from hornbeam.llm.protocol import Completion, LanguageModel, Request, Usage
from hornbeam.retrieve.evidence import Evidence, pack_evidence
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.search import ROUTES, search
from hornbeam.settings import AnswerSettings, RetrieveSettings

Engine = Literal["mix", "naive"]

#: naive: the chunks alone, dense and lexical. mix: every route.
ROUTES_OF_ENGINE: dict[Engine, frozenset[str]] = {
    "mix": frozenset(ROUTES),
    "naive": frozenset({"chunk_dense", "chunk_bm25"}),
}
NO_EVIDENCE = "The index holds no evidence for this question."
NOT_ANSWERED = "The evidence found does not answer this question."

_MARK = re.compile(r"\[(\d+)\]")


def answer_question(
    kb: KnowledgeBase,
    model: LanguageModel,
    question: str,
    *,
    retrieve: RetrieveSettings,
    answer: AnswerSettings,
    engine: Engine = "mix",
) -> Iterator[Event]:
    """Retrieve, decide (in reject mode) and answer. Closing the iterator stops the model.

    Raises:
        ModelError: the model could not answer.
    """
    started = time.perf_counter()
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
    text = ""
    cited: dict[int, Evidence] = {}
    by_label = {piece.label: piece for piece in evidence}
    request = Request(
        "answer",
        answer_prompt(model, question, evidence),
        answer.max_tokens,
        grammar=answer_grammar(list(by_label), answer.max_sentences),
    )
    read = 0
    for part in model.stream(request):
        if isinstance(part, Completion):
            if part.finish_reason == "error":
                raise ModelError(f"the model could not answer: {part.error}")
            usage += part.usage
            break
        if not text:
            spent["first_token"] = _milliseconds(started)
        text += part
        yield AnswerText(part)
        for match in _MARK.finditer(text, read):
            read = match.end()
            piece = by_label[int(match[1])]
            if piece.label not in cited:
                cited[piece.label] = piece
                yield Cited(piece)
    spent["answer"] = _milliseconds(before)
    yield _final(text, False, probability, tuple(cited.values()), usage, spent, started)


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
