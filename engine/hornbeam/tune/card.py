"""What an adapter says of itself: `hornbeam.json` for the engine, `README.md` for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hornbeam import __version__
from hornbeam.llm.adapter import CARD, FORMAT, FactWeights
from hornbeam.tune.training import Progress, TrainingSettings


@dataclass(frozen=True, slots=True)
class TrainedOn:
    """A source of examples, as the card names it."""

    name: str
    texts: int
    examples: int
    left_out: int  # copies of what the model is to be measured on
    held_out: bool


@dataclass(frozen=True, slots=True)
class Card:
    """
    Args:
        base: name of the model.
        base_weights: `weights_fingerprint` of its directory.
        licence: of the adapter, as its maker names it; "" where they did not.
        scores: measures on what was held out, before and after.
    """

    base: str
    base_weights: str
    tasks: tuple[str, ...]
    sources: tuple[TrainedOn, ...]
    settings: TrainingSettings
    progress: Progress
    facts: FactWeights | None
    scores: Mapping[str, Any]
    licence: str

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "base": self.base,
            "base_weights": self.base_weights,
            "tasks": self.tasks,
            "judges": "guided" in self.tasks,
            "facts": self.facts.model_dump() if self.facts else None,
            "licence": self.licence,
            "made_with": f"hornbeam {__version__}",
            "data": [asdict(source) for source in self.sources],
            "training": asdict(self.settings),
            "progress": asdict(self.progress),
            "scores": self.scores,
        }

    def write(self, directory: Path) -> None:
        (directory / CARD).write_text(
            json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n", "utf-8"
        )
        (directory / "README.md").write_text(self._readme(), "utf-8")

    def _readme(self) -> str:
        progress = self.progress
        lines = [
            "---",
            f"base_model: {self.base}",
            "library_name: peft",
            *([f"license: {self.licence}"] if self.licence else []),
            "---",
            "",
            f"# {self.base} for extraction with Hornbeam",
            "",
            f"Low-rank weights (LoRA, rank {self.settings.rank}) for {self.base}, trained on Hornbeam's own "
            f"questions ({', '.join(self.tasks)}). Use: `hornbeam index … --adapter DIR`.",
            "",
            "## Data",
            "",
            *_table(
                ("set", "texts", "examples", "copies of test texts left out", "used for"),
                [
                    (
                        one.name,
                        one.texts,
                        one.examples,
                        one.left_out,
                        "early stop" if one.held_out else "training",
                    )
                    for one in self.sources
                ],
            ),
            "",
            f"Licence: {self.licence or 'not stated'}.",
            "",
            "## Training",
            "",
            f"{progress.step} steps, {progress.tokens:,} tokens ({progress.learnt_tokens:,} learnt), "
            f"{progress.seconds / 60:.0f} minutes; ended: {progress.ended}. The weights are those of step "
            f"{progress.best_step}.",
            "",
            *_table(("step", "training loss", "held-out loss"), progress.curve),
            "",
            "## Scores",
            "",
            *(
                _table(("measure", "value"), sorted(self.scores.items()))
                if self.scores
                else ["Not measured."]
            ),
            "",
            "## Settings",
            "",
            *_table(("setting", "value"), sorted(asdict(self.settings).items())),
            "",
        ]
        return "\n".join(lines)


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    return [
        f"| {' | '.join(heads)} |",
        f"|{'---|' * len(heads)}",
        *(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows),
    ]
