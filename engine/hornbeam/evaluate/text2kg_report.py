"""`hornbeam evaluate text2kg`: the run, its JSON document, its table."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hornbeam.errors import UsageError
from hornbeam.evaluate.fact_sets import FactSet, GoldSentence, Split, read_fact_sets
from hornbeam.evaluate.text2kg import Answer, ValueForms, faithfulness, is_right, scores
from hornbeam.extract.guided import GuidedExtractor, GuidedFact, strongest
from hornbeam.extract.known_facts import Encoder, Fact
from hornbeam.extract.result import ChunkExtraction, StageUsage
from hornbeam.extract.stages import Extractor
from hornbeam.llm.conversations import Conversation, run_conversations
from hornbeam.llm.protocol import Completion, LanguageModel, Request
from hornbeam.progress import Progress, Stage
from hornbeam.settings import ExtractSettings

if TYPE_CHECKING:
    from rich.console import Console

Method = Literal["guided", "staged"]
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
    sets = [_limited(one, limit) for one in read_fact_sets(folder, ontologies, split)]
    found: dict[str, list[_Found]] = {}
    usage = StageUsage()
    seconds = 0.0
    total = sum(len(one.asked) for one in sets)
    with Progress() as progress, progress.stage("evaluate", total, "sentences") as stage:
        for one in sets:
            asker = _guided if method == "guided" else _staged
            started = time.perf_counter()
            rows, spent = asker(one, model, encoder, settings, stage)
            seconds += time.perf_counter() - started
            usage += spent
            found[one.name] = rows
    if predictions is not None:
        _write(predictions, sets, found)
    plain = [answer for one in sets for answer in _answers(one, found[one.name], None)]
    written = [answer for one in sets for answer in _answers(one, found[one.name], ValueForms.of(one.known))]
    facts = sum(len(answer.found) for answer in plain)
    return {
        "split": split,
        "method": method,
        "ontologies": len(sets),
        "sentences": total,
        "model": model.identity.name,
        "as_written": scores(plain, seed=_SEED),
        "values_as_known": scores(written, seed=_SEED),
        "by_ontology": {
            one.name: scores([answer for answer in written if answer.ontology == one.name], seed=_SEED)
            for one in sets
        },
        "faithfulness": faithfulness(plain, {one.name: one.schema for one in sets}),
        "unreadable": sum(row.unreadable for rows in found.values() for row in rows),
        "facts": facts,
        "tokens": usage.model_dump(),
        "output_tokens_per_fact": round(usage.output / facts, 1) if facts else None,
        "seconds": round(seconds, 1),
        "output_tokens_per_second": round(usage.output / seconds, 1) if seconds else None,
    }


class _Found:
    """What was found in one sentence: all that was given, and what is kept of it."""

    def __init__(
        self, kept: Sequence[Fact], given: Sequence[GuidedFact] = (), *, unreadable: bool = False
    ) -> None:
        self.kept = tuple(kept)
        self.given = tuple(given)
        self.unreadable = unreadable


def _guided(
    one: FactSet, model: LanguageModel, encoder: Encoder, settings: ExtractSettings, stage: Stage
) -> tuple[list[_Found], StageUsage]:
    extractor = GuidedExtractor(model, one.schema, settings, one.known, encoder)
    counted = _Counted(model)
    found: dict[int, _Found] = {}

    def ask(number: int, sentence: GoldSentence) -> Conversation[tuple[int, list[GuidedFact]]]:
        return number, (yield from extractor.facts(f"{number}", sentence.text))

    waiting = iter(enumerate(one.asked))

    def following() -> Conversation[tuple[int, list[GuidedFact]]] | None:
        pair = next(waiting, None)
        return None if pair is None else ask(*pair)

    for number, given in run_conversations(counted, following, settings.window):
        ranked = sorted(given, key=lambda fact: -fact.confidence)
        kept = strongest(ranked, settings.guided_threshold)
        found[number] = _Found([(f.head, f.predicate, f.tail) for f in kept], given)
        stage.advance()
    return [found[number] for number in range(len(one.asked))], counted.spent


def _staged(
    one: FactSet, model: LanguageModel, encoder: Encoder, settings: ExtractSettings, stage: Stage
) -> tuple[list[_Found], StageUsage]:
    extractor = Extractor(model, one.schema, settings)
    texts = [(str(number), sentence.text) for number, sentence in enumerate(one.asked)]
    found: dict[str, _Found] = {}
    usage = StageUsage()
    for key, result in extractor.run(texts):
        found[key] = _Found(_facts(result), unreadable=result.state == "failed")
        for spent in result.usage.values():
            usage += spent
        stage.advance()
    return [found[key] for key, _ in texts], usage


def _facts(result: ChunkExtraction) -> list[Fact]:
    names = [entity.name for entity in result.entities]
    relations = [(names[fact.head], fact.type, names[fact.tail]) for fact in result.relations]
    return relations + [(names[fact.entity], fact.type, fact.value) for fact in result.attributes]


class _Counted:
    """A model that adds up what its completions cost."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.spent = StageUsage()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def submit(self, request: Request) -> None:
        self._model.submit(request)

    def poll(self) -> list[Completion]:
        completions = self._model.poll()
        for completion in completions:
            usage = completion.usage
            self.spent += StageUsage(calls=1, prompt=usage.prompt, cached=usage.cached, output=usage.output)
        return completions


def _answers(one: FactSet, found: Sequence[_Found], forms: ValueForms | None) -> Iterator[Answer]:
    for sentence, row in zip(one.asked, found, strict=True):
        facts = row.kept if forms is None else tuple(forms.write(fact) for fact in row.kept)
        yield Answer(one.name, sentence.text, sentence.triples, tuple(dict.fromkeys(facts)))


def _limited(one: FactSet, limit: int | None) -> FactSet:
    if limit is None or limit >= len(one.asked):
        return one
    chosen = [one.asked[len(one.asked) * number // limit] for number in range(limit)]
    return FactSet(one.name, one.schema, one.known, tuple(chosen))


def _write(file: Path, sets: Sequence[FactSet], found: dict[str, list[_Found]]) -> None:
    try:
        with file.open("w", encoding="utf-8") as out:
            for one in sets:
                forms = ValueForms.of(one.known)
                for sentence, row in zip(one.asked, found[one.name], strict=True):
                    out.write(json.dumps(_line(one, sentence, row, forms), ensure_ascii=False) + "\n")
    except OSError as error:
        raise UsageError(f"--predictions: {file} cannot be written: {error.strerror}") from error


def _line(one: FactSet, sentence: GoldSentence, row: _Found, forms: ValueForms) -> dict[str, Any]:
    others = [fact.figures for fact in row.given]
    return {
        "id": sentence.sentence_id,
        "ontology": one.name,
        "text": sentence.text,
        "gold": sentence.triples,
        "predicted": row.kept,
        "given": [
            {
                "fact": (fact.head, fact.predicate, fact.tail),
                "confidence": fact.confidence,
                "right": is_right(forms.write((fact.head, fact.predicate, fact.tail)), sentence.triples),
                "figures": fact.figures.values(others),
                **asdict(fact.figures),
            }
            for fact in row.given
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
        f"{report['unreadable']} unreadable answers, {report['output_tokens_per_fact']} tokens a fact, "
        f"{report['output_tokens_per_second']} tokens a second"
    )
    for name, value in report["faithfulness"].items():
        console.print(f"{name.replace('_', ' '):26} {value:.3f}")
