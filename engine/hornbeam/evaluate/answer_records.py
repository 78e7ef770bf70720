"""Replies as lines of a file: one JSON object a question and engine, as soon as it is answered.

A run that was killed goes on from its file: what stands there is not asked again. Each line says by what it
was made ("run"), so that answers of other settings, another version or another model are not mixed in.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from hornbeam.answer.events import Final
from hornbeam.errors import UsageError
from hornbeam.evaluate.asking import Ask, Reply

#: engine, question's identifier, its text, asked without its evidence
Key = tuple[str, str, str, bool]


class Records:
    """The predictions of a run, written and read again.

    Args:
        path: none: nothing is written.
        resume: go on from what the file holds; else it is written anew.

    Raises:
        UsageError: a file that cannot be read or written, or a line that is no prediction.
    """

    def __init__(self, path: Path | None, *, resume: bool) -> None:
        self._path = path
        self._known: dict[Key, dict[str, Any]] = {}
        self._out: IO[str] | None = None
        if path is None:
            return
        try:
            if resume and path.exists():
                self._known, whole = _read(path)
                with path.open("r+b") as file:
                    file.truncate(whole)  # of a last line that was cut, nothing stays
            self._out = path.open("a" if resume else "w", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--predictions: {path} cannot be written: {error.strerror}") from error

    def __enter__(self) -> Records:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._out is not None:
            self._out.close()

    def known(self, engine: str, ask: Ask, run: str) -> Reply | None:
        """What the file holds of an ask; None: it has still to be asked.

        Raises:
            UsageError: it holds an answer that something else gave.
        """
        line = self._known.get(_key(engine, ask))
        if line is None:
            return None
        if line.get("run") != run:
            raise UsageError(
                f"--resume: {self._path} was made by another version, model or settings (engine {engine}): "
                "give the same as then, or write to another file"
            )
        return _reply(ask, line)

    def write(self, engine: str, reply: Reply, run: str) -> None:
        if self._out is None:
            return
        self._out.write(json.dumps(_line(engine, reply, run), ensure_ascii=False) + "\n")
        self._out.flush()


def asked_in_turn(
    records: Records,
    engine: str,
    run: str,
    asks: list[Ask],
    ask: Callable[[list[Ask], Callable[[Reply], None]], list[Reply]],
    advance: Callable[[], Any],
) -> list[Reply]:
    """The replies in the asks' order: those on record, and those that `ask` gets for the others."""
    known = [records.known(engine, one, run) for one in asks]
    for reply in known:
        if reply is not None:
            advance()

    def on_reply(reply: Reply) -> None:
        records.write(engine, reply, run)
        advance()

    new = iter(ask([one for one, reply in zip(asks, known, strict=True) if reply is None], on_reply))
    return [next(new) if reply is None else reply for reply in known]


def _key(engine: str, ask: Ask) -> Key:
    # Sets are known in which two questions share an identifier.
    return engine, ask.question.question_id, ask.question.text, ask.removed


def _read(path: Path) -> tuple[dict[Key, dict[str, Any]], int]:
    """The lines by key, and the bytes of those that are whole."""
    known: dict[Key, dict[str, Any]] = {}
    whole = 0
    for number, raw in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if not raw.endswith(b"\n"):
            break
        try:
            line = json.loads(raw)
            known[line["engine"], line["id"], line["question"], line["evidence_removed"]] = line
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"--resume: {path}, line {number}: no prediction of `evaluate qa`") from error
        whole += len(raw)
    return known, whole


def _line(engine: str, reply: Reply, run: str) -> dict[str, Any]:
    ask, final = reply.ask, reply.final
    return {
        "id": ask.question.question_id,
        "engine": engine,
        "question": ask.question.text,
        "evidence_removed": ask.removed,
        "answers": list(ask.question.answers),
        "answer": reply.answer,
        "rejected": final.rejected,
        "answerable": final.answerable,
        "signals": final.signals,
        "cut": final.cut,
        "measures": reply.measures,
        "counts": reply.counts,
        "evidence": [
            {"kind": piece.kind, "document_id": piece.document_id, "title": piece.title, "score": piece.score}
            for piece in reply.evidence
        ],
        "tokens": final.tokens,
        "milliseconds": final.milliseconds,
        "chosen": final.engine,
        "run": run,
    }


def _reply(ask: Ask, line: dict[str, Any]) -> Reply:
    """As it was, but for the texts of evidence and citations, which no measure needs again."""
    final = Final(
        line["answer"],
        line["rejected"],
        line["answerable"],
        (),
        tokens=line["tokens"],
        milliseconds=line["milliseconds"],
        cut=line["cut"],
        engine=line["chosen"],
        signals=line["signals"],
    )
    return Reply(ask, line["answer"], final, (), line["measures"], line["counts"])
