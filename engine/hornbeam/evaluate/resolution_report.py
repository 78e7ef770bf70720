"""`hornbeam evaluate resolution`: the run, its JSON document, its table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hornbeam.errors import UsageError
from hornbeam.evaluate.alias_files import KnownDocument, known_documents
from hornbeam.evaluate.resolution import Outcome, run_resolution, scores
from hornbeam.opening import open_embedder
from hornbeam.progress import Progress
from hornbeam.resolve.evidence import EvidenceKind
from hornbeam.settings import ResolveSettings, Settings

if TYPE_CHECKING:
    from rich.console import Console

Half = Literal["all", "even", "odd"]
_SEED = 42
_MEASURES = ("precision", "recall", "f1")


def run(
    path: Path, settings: Settings, *, half: Half, ablation: bool, predictions: Path | None
) -> dict[str, Any]:
    """One row for each setting, the setting asked for first.

    Args:
        half: every document, or every second one: to tune on one half and look at the other.
        ablation: also nothing but canonical names, and each kind of evidence left out.

    Raises:
        UsageError: the file is in no known form, holds no document, or `predictions` cannot be written.
    """
    documents = _half(known_documents(path), half)
    if not documents:
        raise UsageError(f"{path}: no document")
    embedder = open_embedder(settings)
    rows = []
    with Progress() as progress, progress.stage("evaluate", None, "settings") as stage:
        for number, (name, setting) in enumerate(_settings(settings.resolve, ablation)):
            outcome = run_resolution(documents, setting, embedder)
            rows.append(_row(name, outcome))
            if number == 0 and predictions is not None:
                _write(predictions, documents, outcome)
            stage.advance()
    return {
        "documents": len(documents),
        "mentions": sum(len(document.mentions) for document in documents),
        "half": half,
        "rows": rows,
    }


def _half(documents: list[KnownDocument], half: Half) -> list[KnownDocument]:
    return documents if half == "all" else documents[0 if half == "even" else 1 :: 2]


def _settings(settings: ResolveSettings, ablation: bool) -> Iterator[tuple[str, ResolveSettings]]:
    yield "as set", settings
    if ablation:
        kinds = [kind.value for kind in EvidenceKind]
        yield "canonical names only", settings.model_copy(update={"without": " ".join(kinds)})
        for kind in kinds:
            without = f"{settings.without} {kind}".strip()
            yield f"without {kind}", settings.model_copy(update={"without": without})
        yield "homonyms off", settings.model_copy(update={"homonyms": "off"})


def _row(name: str, outcome: Outcome) -> dict[str, Any]:
    return {
        "setting": name,
        "mentions": scores(outcome.by_mention, seed=_SEED),
        "names": scores(outcome.by_name, seed=_SEED),
        "merges": outcome.merges,
        "homonyms": outcome.homonyms,
        "entities": outcome.entities,
    }


def _write(file: Path, documents: list[KnownDocument], outcome: Outcome) -> None:
    """One line a mention: where it is, which entity it was found to be, which one it is."""
    try:
        with file.open("w", encoding="utf-8") as out:
            for document, entities in zip(documents, outcome.clusters, strict=True):
                for mention, entity in zip(document.mentions, entities, strict=True):
                    line = {
                        "id": f"{document.name}: {mention.start}-{mention.end}",
                        "document": document.name,
                        "name": mention.name,
                        "type": mention.type,
                        "predicted": entity,
                        "known": mention.entity,
                    }
                    out.write(json.dumps(line, ensure_ascii=False) + "\n")
    except OSError as error:
        raise UsageError(f"--predictions: {file} cannot be written: {error.strerror}") from error


def render(report: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("setting", no_wrap=True)
    for level in ("mentions", "names"):
        for measure in _MEASURES:
            table.add_column(f"{level}: {measure}", justify="right")
    table.add_column("merges", justify="right")
    for row in report["rows"]:
        values = (
            f"{row[level][measure]:.3f} ± "
            f"{(row[level][f'{measure}_interval'][1] - row[level][f'{measure}_interval'][0]) / 2:.3f}"
            for level in ("mentions", "names")
            for measure in _MEASURES
        )
        table.add_row(row["setting"], *values, str(sum(row["merges"].values())))
    console.print(table)
