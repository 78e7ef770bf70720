"""The evidence for an answer: what was found, packed into a token budget, with exact citations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hornbeam.retrieve.fusion import Fused, RouteScore
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.provenance import Provenance, chunk_provenance, provenance_of, quote
from hornbeam.retrieve.query import Kind
from hornbeam.retrieve.search import SearchResult, of_kind, text_of
from hornbeam.retrieve.sentences import nearest_run

#: Share of the budget that facts, paths and summaries may take. An answer must be true to the source text.
GRAPH_SHARE = 0.35
#: Share that one kind of them may take.
KIND_SHARE = 0.2
#: A part of a chunk shorter than this (in tokens) is not worth a citation.
MIN_CUT_TOKENS = 24
#: A fact from a chunk that is packed already repeats it.
REPEATED_VALUE = 0.5


@dataclass(frozen=True, slots=True)
class Evidence:
    """One numbered piece. `quote` is document.text[start:end]; a chunk's `text` is its quote."""

    label: int  # from 1, by falling score
    kind: Kind
    text: str
    document_id: str | None  # None, as all that follow up to `quote`: no text states it (an imported graph)
    source: str | None
    title: str | None
    start: int | None  # characters within the document's text
    end: int | None
    chunk_id: str | None
    quote: str | None
    score: float  # fused
    routes: dict[str, RouteScore]


@dataclass(frozen=True, slots=True)
class _Piece:
    item: Fused
    text: str
    provenance: Provenance | None


def pack_evidence(
    kb: KnowledgeBase,
    result: SearchResult,
    *,
    token_budget: int,
    count_tokens: Callable[[str], int],
) -> list[Evidence]:
    """Fill `token_budget` with what helps most per token; the sum of `count_tokens(text)` stays within it.

    1. The best chunk goes in first, if need be cut to the sentences nearest to the question.
    2. Facts, paths and community summaries by fused score per token, within their share: they are short, so
       by that measure alone they would push out all text.
    3. Further chunks by fused rank; the first that does not fit is cut to what is left.
    """
    chunks = of_kind(result.ranking, "chunk")
    weights = {token: kb.lexical["chunks"].idf(token) for token in set(result.query.tokens)}
    left = token_budget
    pieces: list[_Piece] = []

    def add_chunk(item: Fused) -> bool:
        nonlocal left
        text = text_of(kb, item)
        if (cost := count_tokens(text)) <= left:
            pieces.append(_Piece(item, text, chunk_provenance(kb, item.rows[0])))
            left -= cost
            return True
        run = nearest_run(text, weights, left, count_tokens) if left >= MIN_CUT_TOKENS else None
        if run is not None:
            cut = text[run[0] : run[1]]
            pieces.append(_Piece(item, cut, chunk_provenance(kb, item.rows[0], *run)))
            left -= count_tokens(cut)
        return False

    if chunks:
        add_chunk(chunks[0])
    packed_chunks = {item.rows[0] for item in chunks[:1]}
    facts = _graph_pieces(kb, result, min(left, int(token_budget * GRAPH_SHARE)), count_tokens, packed_chunks)
    pieces.extend(facts)
    left -= sum(count_tokens(piece.text) for piece in facts)
    for item in chunks[1:]:
        if not add_chunk(item):
            break
    pieces.sort(key=lambda piece: -piece.item.score)
    return [_evidence(kb, label, piece) for label, piece in enumerate(pieces, start=1)]


def _graph_pieces(
    kb: KnowledgeBase,
    result: SearchResult,
    budget: int,
    count_tokens: Callable[[str], int],
    packed_chunks: set[int],
) -> list[_Piece]:
    """Facts, paths and summaries of the highest value per token within the budget and each kind's share."""
    valued = []
    for place, item in enumerate(result.ranking):
        if item.kind in ("triple", "path", "community"):
            piece = _Piece(item, text_of(kb, item), provenance_of(kb, item.kind, item.rows))
            cost = max(1, count_tokens(piece.text))
            repeated = piece.provenance is not None and piece.provenance.chunk in packed_chunks
            value = item.score * (REPEATED_VALUE if repeated else 1.0)
            valued.append((value / cost, -place, cost, piece))
    by_kind: dict[Kind, int] = {}
    total = 0
    chosen = []
    stated: set[int] = set()  # relations
    for _, _, cost, piece in sorted(valued, key=lambda entry: entry[:2], reverse=True):
        kind = piece.item.kind
        relations = set(piece.item.rows) if kind in ("triple", "path") else set()
        spent = by_kind.get(kind, 0)
        fits = total + cost <= budget and spent + cost <= budget * KIND_SHARE / GRAPH_SHARE
        if fits and not (relations and relations <= stated):
            by_kind[kind], total = spent + cost, total + cost
            stated |= relations
            chosen.append(piece)
    walked = {row for piece in chosen if piece.item.kind == "path" for row in piece.item.rows}
    return [piece for piece in chosen if piece.item.kind != "triple" or piece.item.rows[0] not in walked]


def _evidence(kb: KnowledgeBase, label: int, piece: _Piece) -> Evidence:
    item, where = piece.item, piece.provenance
    return Evidence(
        label=label,
        kind=item.kind,
        text=piece.text,
        document_id=where.document_id if where else None,
        source=where.source if where else None,
        title=where.title if where else None,
        start=where.start if where else None,
        end=where.end if where else None,
        chunk_id=where.chunk_id if where else None,
        quote=quote(kb, where) if where else None,
        score=item.score,
        routes=item.routes,
    )
