"""The `global` engine: what a whole corpus says, from the summaries of its communities.

Microsoft's GraphRAG and RAGU ask the model about every community, so that a question costs as many calls as
there are communities. Here the summaries nearest to the question are chosen by vector first, as many as the
calls can hold; each call (map) reads a handful of them and gives weighted points, and one more (reduce)
answers from the communities with the weightiest points. The number of calls has a bound of its own,
`answer.global_calls`, whatever the size of the index.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hornbeam.answer.events import Event, EvidenceFound
from hornbeam.answer.grammars import extract_rules, points_grammar, sentences_rules
from hornbeam.answer.inquiry import Inquiry
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.protocol import Completion, Request
from hornbeam.retrieve.engines import routes_of
from hornbeam.retrieve.evidence import Evidence, evidence_at
from hornbeam.retrieve.fusion import RouteScore
from hornbeam.retrieve.provenance import provenance_of
from hornbeam.retrieve.query import encode_query

#: Communities that are looked at for one that a call can hold: some have no summary worth reading.
_LOOKED_AT = 4
_POINTS_PER_CALL = 4
_POINT_WORDS = 32
_POINT = re.compile(r"([1-9]) (.+) \[(\d+)\]")
#: Tokens of a call beside the summaries: instructions, question, points.
_FRAME_TOKENS = 900


@dataclass(frozen=True, slots=True)
class Summary:
    """One community, as a map call reads it."""

    row: int
    text: str
    score: float  # cosine to the question


@dataclass(frozen=True, slots=True)
class Point:
    """What a map call says of one community. Its text makes the model look before it weighs; the answer is
    written from the summary itself, which documents stand behind."""

    weight: int  # 1 to 9
    text: str
    row: int  # of the community


def gather_summaries(inquiry: Inquiry) -> Generator[Event, None, list[Evidence]]:
    """Retrieval first, so that there is evidence at once; then map calls over the nearest summaries.

    Returns:
        the evidence to answer from, best first, within the token budget.
    """
    tokens = inquiry.answer.evidence_tokens
    found_first, event = inquiry.find(inquiry.question, routes_of("global"), tokens=tokens)
    yield event
    batches = list(_batches(inquiry))
    if not batches:  # no summaries: what there is must do
        if not found_first:
            found_first, event = inquiry.find(inquiry.question, routes_of("mix"), tokens=tokens)
            yield event
        return found_first
    requests = [_map_request(inquiry, batch) for batch in batches]
    weights: dict[int, int] = {}  # community row → of its best point
    for batch, completion in zip(batches, inquiry.complete("map", requests), strict=True):
        for point in _points(batch, completion):
            weights[point.row] = max(weights.get(point.row, 0), point.weight)
    chosen = _chosen(batches, weights)
    pieces, new = inquiry.admit(list(_fitting(inquiry, chosen, weights, tokens)))
    yield EvidenceFound(tuple(new), {})
    return pieces or found_first


def _batches(inquiry: Inquiry) -> Iterator[list[Summary]]:
    """The nearest summaries, in as many calls of so many tokens as the settings allow beside the answer and,
    in reject mode, the decision."""
    settings = inquiry.answer
    calls = settings.global_calls - (2 if settings.mode == "reject" else 1)
    room = min(settings.global_tokens, inquiry.model.max_model_len - _FRAME_TOKENS)
    batch: list[Summary] = []
    left = room
    for summary in _nearest(inquiry, calls * room):
        cost = inquiry.model.tokenizer.count(summary.text) + 4  # its label
        if cost > room:
            continue
        if cost > left:
            yield batch
            calls, batch, left = calls - 1, [], room
        if calls == 0:
            return
        batch.append(summary)
        left -= cost
    if batch:
        yield batch


def _nearest(inquiry: Inquiry, tokens: int) -> Iterator[Summary]:
    """Communities by falling cosine, each text once; no more than could fill `tokens`."""
    kb = inquiry.kb
    query = encode_query(kb.embedder, inquiry.question)
    vectors = kb.vectors["communities"]
    if query.blank or not len(vectors):
        return
    limit = min(len(vectors), max(_LOOKED_AT, tokens // 16))
    rows, cosines = vectors.search(query.vector, limit)
    seen: set[str] = set()
    for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True):
        text = " ".join(kb.community_text(row).split())
        if cosine > 0 and text and text not in seen:
            seen.add(text)
            yield Summary(row, text, min(1.0, cosine))


def _map_request(inquiry: Inquiry, batch: Sequence[Summary]) -> Request:
    lines = "\n".join(f"[{number}] {one.text}" for number, one in enumerate(batch, start=1))
    lexicons = {number: SpanLexicon(one.text, 10_000) for number, one in enumerate(batch, start=1)}
    quoted = inquiry.style == "extract" and any(lexicons.values())
    rules = extract_rules(lexicons) if quoted else sentences_rules(list(lexicons), 1, words=_POINT_WORDS)
    prompt = inquiry.chat("points", evidence=lines, question=inquiry.question)
    grammar = points_grammar(rules, _POINTS_PER_CALL)
    return inquiry.request("map", prompt, inquiry.answer.global_point_tokens, grammar=grammar)


def _points(batch: Sequence[Summary], completion: Completion) -> list[Point]:
    """Those that are whole; what a token limit cut is left out."""
    found = []
    for line in completion.text.splitlines():
        if (match := _POINT.fullmatch(line.strip())) and 1 <= int(match[3]) <= len(batch):
            found.append(Point(int(match[1]), match[2].strip(), batch[int(match[3]) - 1].row))
    return found


def _chosen(batches: Sequence[Sequence[Summary]], weights: Mapping[int, int]) -> list[Summary]:
    """Communities with points by their best weight, then by nearness; without any point the nearest."""
    summaries = [one for batch in batches for one in batch]
    if weights:
        summaries = [one for one in summaries if one.row in weights]
    return sorted(summaries, key=lambda one: (-weights.get(one.row, 0), -one.score, one.row))


def _fitting(
    inquiry: Inquiry, chosen: Sequence[Summary], weights: Mapping[int, int], tokens: int
) -> Iterator[Evidence]:
    """As many of the chosen as the budget holds, the first in any case."""
    kb = inquiry.kb
    for rank, one in enumerate(chosen, start=1):
        tokens -= inquiry.model.tokenizer.count(one.text)
        if tokens < 0 and rank > 1:
            return
        where = provenance_of(kb, "community", (one.row,))
        weight = weights.get(one.row)
        reason = "nearest summary" if weight is None else f"a point of weight {weight} of 9"
        routes = {"community": RouteScore(rank, one.score)}
        text = kb.community_text(one.row)
        yield evidence_at(kb, where, 0, "community", text, one.score, routes, reason)
