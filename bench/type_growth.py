"""How a schema grows where the types are known: which texts a new type touches, what is proposed.

    hornbeam bench type-growth DIR [--limit 500] [--proposals N] [--json]

DIR is OSKGC, CoNLL04 or Re-DocRED: texts with things of known types.

Touching: every type in turn is the new one, and a text is rightly touched when it holds a thing of the type.
By the likeness of texts alone, for fixed bounds and for the bound that falls with the texts in which the type
was seen (`evolve.touch_share`): recall (mean over types), share of texts touched, precision.

Proposals, with the model in use: of N texts each, every type in turn is hidden from the schema, and the model
is asked what the schema lacks in texts that hold a thing of it. Counted are the things that it names: of the
hidden type, of a known one, of none; whether the name that it gives is that of the hidden type (cosine from
`evolve.duplicate_similarity` on); and both by confidence.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from hornbeam.errors import UsageError
from hornbeam.evolve.asking import Question, asker_of
from hornbeam.evolve.gathering import type_text
from hornbeam.evolve.suggestions import Suggestion
from hornbeam.evolve.touching import fallen_bound
from hornbeam.index.embedder import TextEmbedder
from hornbeam.llm.opening import open_model
from hornbeam.llm.protocol import LanguageModel
from hornbeam.opening import open_embedder
from hornbeam.schema.model import EntityType, GraphSchema
from hornbeam.schema.type_names import spoken
from hornbeam.settings import EvolveSettings, Settings, load_settings

_BOUNDS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
_SEEN = (3, 10)
_DRAWS = 5
#: Texts with a type, and without it, from which on it is measured.
_FEWEST = 8
_SEED = 7
#: What the broad types of the news sets are called in the seed schemas.
_PERSON = EntityType(name="person", description="a human being, by name")
_ORGANIZATION = EntityType(name="organization", description="a company, school, institute, club or agency")
_PLACE = EntityType(name="place", description="a town, country, region, river or building")
_BROAD = {
    "Peop": _PERSON, "PER": _PERSON, "Org": _ORGANIZATION, "ORG": _ORGANIZATION, "Loc": _PLACE, "LOC": _PLACE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TypedText:
    text: str
    things: tuple[tuple[str, str], ...]  # surface, type

    def types(self) -> set[str]:
        return {kind for _, kind in self.things}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench type-growth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--limit", type=int, default=500, help="texts, drawn evenly (default 500)")
    parser.add_argument("--proposals", type=int, default=0, metavar="N", help="texts of a hidden type")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    options = parser.parse_args(arguments)
    texts = list(typed_texts(options.folder))
    random.Random(_SEED).shuffle(texts)
    settings = load_settings()
    embedder = open_embedder(settings)
    report: dict[str, Any] = {"touching": measure_touching(texts[: options.limit], embedder, settings.evolve)}
    if options.proposals:
        model = open_model(settings)
        try:
            report["proposals"] = measure_proposals(texts, options.proposals, settings, model, embedder)
        finally:
            model.close()
    print(json.dumps(report, indent=2))


def typed_texts(folder: Path) -> Iterator[TypedText]:
    """
    Raises:
        UsageError: the folder is of no known form.
    """
    if (folder / "data" / "test").is_dir():
        yield from _oskgc(folder)
    elif (folder / "dev_revised.json").is_file():
        yield from _docred(folder)
    elif (folder / "train.txt").is_file():
        yield from _conll(folder)
    else:
        raise UsageError(f"{folder} is no set of a known form (OSKGC, CoNLL04, Re-DocRED)")


def _oskgc(folder: Path) -> Iterator[TypedText]:
    for file in sorted((folder / "data" / "test").glob("*.xml")):
        for entry in etree.parse(file).getroot().iter("entry"):
            pairs = zip(entry.iterfind("triples/triple"), entry.iterfind("schemas/schema"), strict=True)
            things = {
                (triple.findtext(end, "").replace("_", " ").strip('"'), kinds.findtext(end, ""))
                for triple, kinds in pairs
                for end in ("sub", "obj")
            }
            yield TypedText(entry.findtext("text", ""), tuple(sorted(things)))


def _docred(folder: Path) -> Iterator[TypedText]:
    for document in json.loads((folder / "dev_revised.json").read_text("utf-8")):
        things = {
            (str(mention["name"]), _BROAD[mention["type"]].name)
            for mentions in document["vertexSet"]
            for mention in mentions
            if mention["type"] in _BROAD
        }
        text = " ".join(word for words in document["sents"] for word in words)
        yield TypedText(text, tuple(sorted(things)))


def _conll(folder: Path) -> Iterator[TypedText]:
    for block in (folder / "train.txt").read_text("utf-8").split("#doc ")[1:]:
        rows = [line.split("\t") for line in block.strip().splitlines()[1:]]
        things: list[tuple[str, str]] = []
        for row in rows:
            mark, _, kind = row[2].partition("-")
            if kind not in _BROAD:
                continue
            if mark == "B":
                things.append((row[1], _BROAD[kind].name))
            else:
                things[-1] = (f"{things[-1][0]} {row[1]}", things[-1][1])
        yield TypedText(" ".join(row[1] for row in rows), tuple(things))


def _measured_types(texts: Sequence[TypedText]) -> list[EntityType]:
    """The most frequent first."""
    counts = Counter(kind for text in texts for kind in text.types())
    broad = {each.name: each for each in _BROAD.values()}
    return [
        broad.get(name, EntityType(name=name))
        for name, count in counts.most_common()
        if name and count >= _FEWEST and len(texts) - count >= _FEWEST
    ]


def measure_touching(
    texts: Sequence[TypedText], embedder: TextEmbedder, settings: EvolveSettings
) -> dict[str, Any]:
    types = _measured_types(texts)
    if not types:
        raise UsageError("no type stands in some of the texts and not in others")
    vectors = embedder.encode([text.text for text in texts])
    likeness = vectors @ embedder.encode([type_text(each.name, each.description) for each in types]).T
    holds = np.array([[each.name in text.types() for each in types] for text in texts])
    rng = np.random.default_rng(_SEED)
    falling = {}
    for seen in _SEEN:
        rows = []
        for place in range(len(types)):
            with_type = np.flatnonzero(holds[:, place])
            if len(with_type) < seen + _FEWEST // 2:
                continue
            for _ in range(_DRAWS):
                known = rng.choice(with_type, seen, replace=False)
                bound = fallen_bound(settings.touch_similarity, likeness[known, place], settings.touch_share)
                others = np.delete(np.arange(len(texts)), known)
                rows.append(_figures(likeness[others, place] >= bound, holds[others, place]))
        falling[str(seen)] = _means(rows)
    return {
        "texts": len(texts),
        "types": len(types),
        "texts_with_a_type": round(float(holds.mean()), 3),
        "fixed": {
            str(bound): _means(
                [_figures(likeness[:, place] >= bound, holds[:, place]) for place in range(len(types))]
            )
            for bound in _BOUNDS
        },
        "falling_by_texts_seen": falling,
    }


def _figures(touched: NDArray[np.bool_], right: NDArray[np.bool_]) -> tuple[float, float, float]:
    hits = float((touched & right).sum())
    return hits / float(right.sum()), float(touched.mean()), hits / max(1.0, float(touched.sum()))


def _means(rows: Sequence[tuple[float, float, float]]) -> dict[str, float] | None:
    if not rows:
        return None
    means = np.mean(rows, axis=0)
    return dict(zip(("recall", "touched", "precision"), (round(float(m), 3) for m in means), strict=True))


def measure_proposals(
    texts: Sequence[TypedText],
    count: int,
    settings: Settings,
    model: LanguageModel,
    embedder: TextEmbedder,
    most_types: int = 6,
) -> dict[str, Any]:
    types = _measured_types(texts)
    rows: list[tuple[float, str, bool]] = []  # confidence, what the thing is, whether the name is right
    names: dict[str, list[str]] = {}
    asked = answered_with_none = 0
    for hidden in types[:most_types]:
        schema = GraphSchema(name="without", entity_types=tuple(each for each in types if each is not hidden))
        chosen = [text for text in texts if hidden.name in text.types()][:count]
        asker = asker_of(settings, schema, model)
        questions = [Question(str(number), text.text) for number, text in enumerate(chosen)]
        said: Counter[str] = Counter()
        for answers in asker.ask(questions):
            for answer in answers:
                asked += 1
                found = answer.found.suggestions if answer.found else ()
                answered_with_none += not found
                for suggestion in found:
                    said[suggestion.name] += 1
                    kind = _kind_of(suggestion, chosen[int(answer.key)], hidden.name)
                    rows.append(
                        (suggestion.confidence, kind, _says(suggestion.name, hidden, embedder, settings))
                    )
        names[hidden.name] = [f"{name} ({number})" for name, number in said.most_common(10)]
    return {
        "asked": asked,
        "answered_with_none": answered_with_none,
        "suggestions": len(rows),
        "things": dict(Counter(kind for _, kind, _ in rows)),
        "named_right": sum(right for *_, right in rows),
        "by_confidence": [_bin(rows, low, low + 0.2) for low in (0.0, 0.2, 0.4, 0.6, 0.8)],
        "names": names,
    }


def _kind_of(suggestion: Suggestion, text: TypedText, hidden: str) -> str:
    """What a named thing is known to be."""
    start, end = suggestion.places[0]
    surface = " ".join(text.text[start:end].split()).casefold()
    kinds = {kind for known, kind in text.things if known.casefold() in (surface, f"the {surface}")}
    return "hidden" if hidden in kinds else "known" if kinds else "none"


def _says(name: str, hidden: EntityType, embedder: TextEmbedder, settings: Settings) -> bool:
    texts = [spoken(name), spoken(hidden.name), type_text(hidden.name, hidden.description)]
    vectors = embedder.encode(texts)
    return float((vectors[1:] @ vectors[0]).max()) >= settings.evolve.duplicate_similarity


def _bin(rows: Sequence[tuple[float, str, bool]], low: float, high: float) -> dict[str, Any]:
    inside = [row for row in rows if low <= row[0] < high or (row[0] == 1.0 == high)]
    return {
        "confidence": f"{low:.1f}–{high:.1f}",
        "suggestions": len(inside),
        "of_the_hidden_type": sum(kind == "hidden" for _, kind, _ in inside),
        "named_right": sum(right for *_, right in inside),
    }


if __name__ == "__main__":
    main()
