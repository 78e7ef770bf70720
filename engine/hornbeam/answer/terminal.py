"""An answer on a terminal, and as one JSON document."""

from __future__ import annotations

import sys
from typing import Any

from hornbeam.answer.events import AnswerText, Cited, Event, EvidenceFound, Final, evidence_json
from hornbeam.retrieve.evidence import Evidence

_QUOTE_CHARACTERS = 200


class AnswerPrinter:
    """Prints events as they come and keeps what the final document needs."""

    def __init__(self, *, stream: bool, silent: bool = False) -> None:
        self._stream = stream
        self._silent = silent
        self.evidence: tuple[Evidence, ...] = ()
        self.final: Final | None = None

    def take(self, event: Event) -> None:
        match event:
            case EvidenceFound(evidence):
                self.evidence = evidence
                if self._stream:
                    kinds = [piece.kind for piece in evidence]
                    counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
                    print(f"evidence: {counted or 'none'}", file=sys.stderr, flush=True)
            case AnswerText(text):
                if self._stream:
                    print(text, end="", flush=True)
            case Cited():
                pass  # listed at the end, where they do not break the sentence
            case Final():
                self.final = event
                if not self._silent:
                    self._print_final(event)

    def _print_final(self, final: Final) -> None:
        print("" if self._stream and not final.rejected else final.answer, flush=True)
        if final.cut:
            print("  (cut at the token limit, answer.max_tokens)")
        for piece in final.citations:
            print(f"  [{piece.label}] {_place(piece)}")
            if quote := piece.quote or piece.text:
                print(f"      “{' '.join(quote.split())[:_QUOTE_CHARACTERS]}”")


def _place(piece: Evidence) -> str:
    if piece.source is None:
        return f"{piece.kind} of the graph"
    return f"{piece.source}:{piece.start}-{piece.end} ({piece.kind})"


def answer_json(
    question: str, mode: str, engine: str, version: str, printer: AnswerPrinter
) -> dict[str, Any]:
    """Raises ValueError when the events ended without a Final."""
    final = printer.final
    if final is None:
        raise ValueError("the answer ended without its final event")
    return {
        "question": question,
        "answer": final.answer,
        "mode": mode,
        "engine": engine,
        "rejected": final.rejected,
        "answerable": final.answerable,
        "cut": final.cut,
        "citations": [evidence_json(piece) for piece in final.citations],
        "evidence": [evidence_json(piece) for piece in printer.evidence],
        "tokens": final.tokens,
        "milliseconds": final.milliseconds,
        "version": version,
    }
