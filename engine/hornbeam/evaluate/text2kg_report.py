"""`hornbeam evaluate text2kg`: the run, its JSON document, its table."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

from hornbeam.errors import UsageError
from hornbeam.evaluate.cleanliness import FAULTS, Cleanliness
from hornbeam.evaluate.fact_sets import FactSet, GoldSentence, Split, limited, read_fact_sets
from hornbeam.evaluate.text2kg import Answer, ValueForms, faithfulness, is_right, scores
from hornbeam.evaluate.text2kg_methods import (
    Found,
    chunk_key,
    guided_facts,
    staged_facts,
    staged_facts_with_known,
)
from hornbeam.evaluate.watched_model import WatchedModel
from hornbeam.extract.known_facts import Encoder, Fact
from hornbeam.extract.result import StageUsage
from hornbeam.llm.protocol import LanguageModel
from hornbeam.progress import Progress
from hornbeam.settings import ExtractSettings

if TYPE_CHECKING:
    from rich.console import Console

Method = Literal["guided", "staged", "staged-known"]
_WAYS = {"guided": guided_facts, "staged": staged_facts, "staged-known": staged_facts_with_known}
_SEED = 42


def run(
    folder: Path,
    model: LanguageModel,
    encoder: Encoder,
    settings: ExtractSettings,
    *,
    ontologies: Sequence[int] | None,
    split: Split,
    method: Method,
    limit: int | None,
    predictions: Path | None,
) -> dict[str, Any]:
    """
    Args:
        limit: sentences of each ontology, spread evenly over the file; None: all.
        predictions: one JSON line a sentence: all that was found, with scores, and what is known.

    Raises:
        UsageError: the folder is of another form, or `predictions` cannot be written.
    """
    sets = [limited(one, limit) for one in read_fact_sets(folder, ontologies, split)]
    found: dict[str, list[Found]] = {}
    watched = WatchedModel(model)
    cleanliness = Cleanliness()
    seconds = 0.0
    total = sum(len(one.asked) for one in sets)
    ask = _WAYS[method]
    with (
        _open(predictions) as out,
        Progress() as progress,
        progress.stage("evaluate", total, "sentences") as stage,
    ):
        for one in sets:
            started = time.perf_counter()
            lines = _Lines(one, out)

            def tell(number: int, row: Found, lines: _Lines = lines) -> None:
                stage.advance()
                lines.add(number, row)

            rows = found[one.name] = ask(one, watched, encoder, settings, tell)
            seconds += time.perf_counter() - started
            for number, (sentence, row) in enumerate(zip(one.asked, rows, strict=True)):
                said = watched.take(chunk_key(one, number))
                where = f"{one.name}, {sentence.sentence_id}"
                cleanliness.add(where, sentence.text, said, row.result, one.schema)
    kept = {name: [row.kept for row in rows] for name, rows in found.items()}
    return {
        "split": split,
        "method": method,
        "ontologies": len(sets),
        "sentences": total,
        "model": model.identity.name,
        **measures(sets, kept),
        "cleanliness": cleanliness.to_json(),
        **costs(kept, watched.spent, seconds),
    }


def _open(file: Path | None) -> TextIO:
    """Before anything is asked: what cannot be written is said at once, and a run that is cut off has left
    what it had."""
    try:
        return open(file or os.devnull, "w", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--predictions: {file} cannot be written: {error.strerror}") from error


def measures(sets: Sequence[FactSet], kept: Mapping[str, Sequence[Sequence[Fact]]]) -> dict[str, Any]:
    """Scores and faithfulness of the facts that were found, by set and sentence."""
    plain = [answer for one in sets for answer in _answers(one, kept[one.name], None)]
    written = [answer for one in sets for answer in _answers(one, kept[one.name], ValueForms.of(one.known))]
    return {
        "as_written": scores(plain, seed=_SEED),
        "values_as_known": scores(written, seed=_SEED),
        "by_ontology": {
            one.name: scores([answer for answer in written if answer.ontology == one.name], seed=_SEED)
            for one in sets
        },
        "faithfulness": faithfulness(plain, {one.name: one.schema for one in sets}),
    }


def costs(kept: Mapping[str, Sequence[Sequence[Fact]]], spent: StageUsage, seconds: float) -> dict[str, Any]:
    """Tokens and time, and what a fact cost of them."""
    facts = sum(len(set(some)) for rows in kept.values() for some in rows)
    return {
        "facts": facts,
        "tokens": spent.model_dump(),
        "output_tokens_per_fact": round(spent.output / facts, 1) if facts else None,
        "seconds": round(seconds, 1),
        "output_tokens_per_second": round(spent.output / seconds, 1) if seconds else None,
    }


def _answers(one: FactSet, kept: Sequence[Sequence[Fact]], forms: ValueForms | None) -> Iterator[Answer]:
    for sentence, found in zip(one.asked, kept, strict=True):
        facts = found if forms is None else [forms.write(fact) for fact in found]
        yield Answer(one.name, sentence.text, sentence.triples, tuple(dict.fromkeys(facts)))


class _Lines:
    """The lines of a set's sentences, written in their order, each as soon as those before it are there: a
    run that is cut off has left what it had."""

    def __init__(self, one: FactSet, out: TextIO) -> None:
        self._one = one
        self._out = out
        self._forms = ValueForms.of(one.known)
        self._waiting: dict[int, Found] = {}
        self._next = 0

    def add(self, number: int, row: Found) -> None:
        self._waiting[number] = row
        while (following := self._waiting.pop(self._next, None)) is not None:
            line = _line(self._one, self._one.asked[self._next], following, self._forms)
            self._out.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._out.flush()
            self._next += 1


def _line(one: FactSet, sentence: GoldSentence, row: Found, forms: ValueForms) -> dict[str, Any]:
    return {
        "id": sentence.sentence_id,
        "ontology": one.name,
        "text": sentence.text,
        "gold": sentence.triples,
        "predicted": row.kept,
        "given": [
            {
                "fact": given.fact,
                "confidence": given.confidence,
                "right": is_right(forms.write(given.fact), sentence.triples),
                "figures": given.figures,
                **given.parts,
            }
            for given in row.given
        ],
    }


def render(report: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("triples", "precision", "recall", "F1", "95 %"):
        table.add_column(column, justify="left" if column == "triples" else "right", no_wrap=True)
    for name, key in (("as the text writes them", "as_written"), ("values as known", "values_as_known")):
        for label, part in (("", "all"), (", official filter", "filtered")):
            row = report[key][part]
            low, high = row["f1_interval"]
            table.add_row(
                name + label,
                *(f"{row[measure]:.3f}" for measure in ("precision", "recall", "f1")),
                f"{low:.3f}–{high:.3f}",
            )
    console.print(table)
    console.print(
        f"{report['sentences']} sentences of {report['ontologies']} ontologies, {report['facts']} facts, "
        f"{report['output_tokens_per_fact']} tokens a fact, "
        f"{report['output_tokens_per_second']} tokens a second"
    )
    clean = report["cleanliness"]
    console.print(", ".join(f"{fault.replace('_', ' ')} {clean[fault]}" for fault in FAULTS))
    for name, value in report["faithfulness"].items():
        console.print(f"{name.replace('_', ' '):26} {value:.3f}")
