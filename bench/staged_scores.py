"""Fit the probability that a fact of two-stage extraction is right, and see how well it holds.

    python bench/staged_scores.py DIR [--limit 20] [--facts FILE]

DIR is Text2KGBench's folder. The model in use extracts, in two calls and with the four nearest known
sentences as examples, sentences of ontologies that have no published answers here (the fit) and of those
that are reported on. Printed are bias and weights of a logistic model, and for both halves the area under
the ROC curve and how often facts of a given probability are right, before and after. With --facts what was
found is kept, and read again where the file is there: no model is asked then.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from known_examples import write_examples
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from staged_figures import figures_of

from hornbeam.evaluate.fact_sets import FactSet, limited, read_fact_sets
from hornbeam.evaluate.text2kg import ValueForms, is_right
from hornbeam.extract.stages import Extractor
from hornbeam.llm.opening import open_model
from hornbeam.llm.protocol import LanguageModel
from hornbeam.opening import open_embedder
from hornbeam.settings import Settings, load_settings

_BINS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0001)
_SPLITS = ("held-out", "test")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--limit", type=int, default=20, help="sentences of each ontology")
    parser.add_argument("--facts", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    if options.facts is not None and options.facts.is_file():
        found = json.loads(options.facts.read_text("utf-8"))
    else:
        found = _extract(options.folder, options.limit)
        if options.facts is not None:
            options.facts.write_text(json.dumps(found, ensure_ascii=False), "utf-8")
    _report(found)


def _extract(folder: Path, limit: int) -> dict[str, list[dict[str, Any]]]:
    settings = load_settings()
    model, encoder = open_model(settings), open_embedder(settings)
    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for split in _SPLITS:
            found[split] = []
            for one in read_fact_sets(folder, None, split):  # type: ignore[arg-type]
                file = write_examples(one, Path(scratch) / "examples.jsonl")
                found[split] += _facts(limited(one, limit), model, encoder, settings, file)
                print(f"{split} {one.name}: {len(found[split])} facts", flush=True)
    return found


def _facts(
    one: FactSet, model: LanguageModel, encoder: Any, settings: Settings, examples: Path
) -> list[dict[str, Any]]:
    limits = settings.extract.model_copy(
        update={"examples": 4, "example_file": str(examples), "example_choice": "nearest"}
    )
    extractor = Extractor(model, one.schema, limits, encoder=encoder)
    forms = ValueForms.of(one.known)
    rows = []
    asked = [(str(number), sentence.text) for number, sentence in enumerate(one.asked)]
    for key, result in extractor.run(asked):
        gold = one.asked[int(key)].triples
        names = [entity.name for entity in result.entities]
        said = [(names[r.head], r.type, names[r.tail]) for r in result.relations]
        said += [(names[a.entity], a.type, a.value) for a in result.attributes]
        for fact, figures in zip(said, figures_of(result), strict=True):
            rows.append({"fact": fact, "figures": figures, "right": is_right(forms.write(fact), gold)})
    return rows


def _report(found: dict[str, list[dict[str, Any]]]) -> None:
    figures, right = _table(found["held-out"])
    scale = figures.std(axis=0) + 1e-9
    model = LogisticRegression().fit(figures / scale, right)
    weights, bias = model.coef_[0] / scale, float(model.intercept_[0])
    print(f"_BIAS = {bias:.3f}\n_WEIGHTS = ({', '.join(f'{weight:.3f}' for weight in weights)})")
    for split in _SPLITS:
        figures, right = _table(found[split])
        raw = np.exp(figures[:, :2].sum(axis=1))
        fitted = 1 / (1 + np.exp(-(figures @ weights + bias)))
        print(f"\n{split}: {len(right)} facts, {right.mean():.3f} right")
        for name, score in (("raw", raw), ("fitted", fitted)):
            gaps = _reliability(name, score, right)
            brier = float(((score - right) ** 2).mean())
            auroc = roc_auc_score(right, score)
            print(f"   {name}: AUROC {auroc:.3f}, Brier {brier:.3f}, mean gap {gaps:.3f}")


def _table(rows: Sequence[dict[str, Any]]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    return np.array([row["figures"] for row in rows]), np.array([row["right"] for row in rows])


def _reliability(name: str, score: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Prints the table; the expected calibration error."""
    print(f"   {name:9} facts  mean P  right")
    gap = 0.0
    for low, high in pairwise(_BINS):
        inside = (score >= low) & (score < high)
        if inside.any():
            mean, share = score[inside].mean(), right[inside].mean()
            gap += abs(mean - share) * inside.sum() / len(score)
            print(f"   {low:.2f}–{high:.2f} {inside.sum():6} {mean:7.3f} {share:6.3f}")
    return gap


if __name__ == "__main__":
    main()
