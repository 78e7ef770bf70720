"""The evidence for an answer: what was found, packed into a token budget, with exact citations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from hornbeam.index.tokens import normalise
from hornbeam.retrieve.fusion import Fused, RouteScore
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.provenance import Provenance, chunk_provenance, provenance_of, quote
from hornbeam.retrieve.query import Kind
from hornbeam.retrieve.routes import question_weights
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
#: Of the graph, best first, so many are weighed: each is read, counted and looked up in its text.
GRAPH_CANDIDATES = 48


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
    reason: str = ""  # why it was kept


@dataclass(frozen=True, slots=True)
class _Piece:
    item: Fused
    text: str
    provenance: Provenance | None
    reason: str


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

    Of pieces that read the same only the first goes in, and no fact that is a sentence of a text that does.
    """
    chunks = of_kind(result.ranking, "chunk")
    weights = question_weights(kb, result.query)
    left = token_budget
    texts: list[_Piece] = []
    facts: list[_Piece] = []

    def add_text(piece: _Piece) -> None:
        nonlocal left, facts
        texts.append(piece)
        said = [fact for fact in facts if _says(piece, fact)]
        facts = [fact for fact in facts if fact not in said]
        left += sum(count_tokens(fact.text) for fact in said) - count_tokens(piece.text)

    def add_chunk(item: Fused, reason: str) -> bool:
        text = text_of(kb, item)
        if count_tokens(text) <= left:
            add_text(_Piece(item, text, chunk_provenance(kb, item.rows[0]), reason))
            return True
        run = nearest_run(text, weights, left, count_tokens) if left >= MIN_CUT_TOKENS else None
        if run is not None:
            cut = text[run[0] : run[1]]
            where = chunk_provenance(kb, item.rows[0], *run)
            add_text(_Piece(item, cut, where, f"{reason}, cut to the sentences nearest to the question"))
        return False

    if chunks:
        add_chunk(chunks[0], "best chunk")
    facts = _graph_pieces(kb, result, min(left, int(token_budget * GRAPH_SHARE)), count_tokens, texts)
    left -= sum(count_tokens(piece.text) for piece in facts)
    packed = {_plain(text_of(kb, item)) for item in chunks[:1]}
    for rank, item in enumerate(chunks[1:], start=2):
        text = _plain(text_of(kb, item))
        if text in packed:
            continue
        packed.add(text)
        if not add_chunk(item, f"chunk {rank} by fused score"):
            break
    pieces = sorted([*texts, *facts], key=lambda piece: -piece.item.score)
    return [_evidence(kb, label, piece) for label, piece in enumerate(pieces, start=1)]


def _graph_pieces(
    kb: KnowledgeBase,
    result: SearchResult,
    budget: int,
    count_tokens: Callable[[str], int],
    texts: Sequence[_Piece],
) -> list[_Piece]:
    """Facts, paths and summaries of the highest value per token within the budget and each kind's share, but
    for those that `texts`, which are packed, say as they stand."""
    valued = []
    read: set[str] = set()
    packed_chunks = {text.item.rows[0] for text in texts}
    graph = (item for item in result.ranking if item.kind in ("triple", "attribute", "path", "community"))
    for place, item in enumerate(islice(graph, GRAPH_CANDIDATES)):
        if (plain := _plain(text_of(kb, item))) not in read:
            read.add(plain)
            text, where = text_of(kb, item), provenance_of(kb, item.kind, item.rows)
            cost = max(1, count_tokens(text))
            repeated = where is not None and where.chunk in packed_chunks
            value = item.score * (REPEATED_VALUE if repeated else 1.0) / cost
            reason = f"{value:.4f} a token" + (", half of it as its chunk is packed" if repeated else "")
            piece = _Piece(item, text, where, reason)
            if not any(_says(packed, piece) for packed in texts):
                valued.append((value, -place, cost, piece))
    chosen: list[tuple[int, _Piece]] = []  # with what they cost
    for _, _, cost, piece in sorted(valued, key=lambda entry: entry[:2], reverse=True):
        kind = piece.item.kind
        relations = set(piece.item.rows) if kind in ("triple", "path") else set()
        stated = {row for _, kept in chosen if kept.item.kind in ("triple", "path") for row in kept.item.rows}
        if relations and relations <= stated:
            continue
        # A path says what its triples say: they make room for it.
        kept = [
            one for one in chosen if one[1].item.kind != "triple" or not set(one[1].item.rows) <= relations
        ]
        of_kind_spent = sum(spent for spent, one in kept if one.item.kind == kind)
        fits = sum(spent for spent, _ in kept) + cost <= budget
        if fits and of_kind_spent + cost <= budget * KIND_SHARE / GRAPH_SHARE:
            chosen = [*kept, (cost, piece)]
    return [piece for _, piece in chosen]


def _says(text: _Piece, fact: _Piece) -> bool:
    """Whether a fact is a sentence (perhaps its beginning) that stands in a text."""
    return fact.item.kind == "triple" and _plain(fact.text.removesuffix("…")) in _plain(text.text)


def _plain(text: str) -> str:
    return normalise(" ".join(text.split()))


def _evidence(kb: KnowledgeBase, label: int, piece: _Piece) -> Evidence:
    item = piece.item
    return evidence_at(
        kb, piece.provenance, label, item.kind, piece.text, item.score, item.routes, piece.reason
    )


def evidence_at(
    kb: KnowledgeBase,
    where: Provenance | None,
    label: int,
    kind: Kind,
    text: str,
    score: float,
    routes: dict[str, RouteScore],
    reason: str,
) -> Evidence:
    """A piece with the document that it stands in, if one does."""
    return Evidence(
        label=label,
        kind=kind,
        text=text,
        document_id=where.document_id if where else None,
        source=where.source if where else None,
        title=where.title if where else None,
        start=where.start if where else None,
        end=where.end if where else None,
        chunk_id=where.chunk_id if where else None,
        quote=quote(kb, where) if where else None,
        score=score,
        routes=routes,
        reason=reason,
    )
