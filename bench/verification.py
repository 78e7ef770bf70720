"""Does P(yes) tell right relations from wrong ones? AUROC over sentences whose relations are known.

    hornbeam bench verification FILE [--limit 60] [--seed 7] [--json]

FILE is in the column format of CoNLL04 (index, word, BIO type, relations, tails). A wrong relation takes the
place of each right one in the same sentence: another tail or another head of an allowed type, or another type
that the pair could have; never one that is stated. The confidence of extraction plays no part: every fact is
written down from the file and asked about with the prompt that a build would use.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from ast import literal_eval
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hornbeam.errors import UsageError
from hornbeam.extract.result import ChunkExtraction, ChunkVerification, FoundEntity, FoundRelation
from hornbeam.extract.stages import Extractor
from hornbeam.extract.verification import STAGE, Verifier
from hornbeam.llm.conversations import Conversation, run_conversations
from hornbeam.llm.opening import open_model
from hornbeam.schema.model import EntityType, GraphSchema, RelationType
from hornbeam.settings import load_settings

SCHEMA = GraphSchema(
    name="conll04",
    entity_types=tuple(EntityType(name=name) for name in ("person", "organization", "location", "other")),
    relation_types=(
        RelationType(name="kills", domain=("person",), range=("person",)),
        RelationType(name="lives_in", domain=("person",), range=("location",)),
        RelationType(name="located_in", domain=("location",), range=("location",)),
        RelationType(name="based_in", domain=("organization",), range=("location",)),
        RelationType(name="works_for", domain=("person",), range=("organization",)),
    ),
)
_TYPES = {"Peop": "person", "Org": "organization", "Loc": "location", "Other": "other"}
_RELATIONS = {
    "Kill": "kills", "Live_In": "lives_in", "Located_In": "located_in", "OrgBased_In": "based_in",
    "Work_For": "works_for",
}  # fmt: skip


class Sentence(NamedTuple):
    text: str
    entities: tuple[FoundEntity, ...]
    right: tuple[tuple[int, str, int], ...]
    wrong: tuple[tuple[int, str, int], ...]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench verification",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--limit", type=int, default=60, help="sentences")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if not options.file.is_file():
        raise UsageError(f"{options.file} is no file")
    chance = random.Random(options.seed)
    sentences = [s for s in read_sentences(options.file, chance) if s.right and s.wrong]
    chance.shuffle(sentences)
    report = measure(sentences[: options.limit])
    print(
        json.dumps(report, indent=2) if options.json else "\n".join(f"{k:24} {v}" for k, v in report.items())
    )
    return 0


def measure(sentences: list[Sentence]) -> dict[str, object]:
    settings = load_settings()
    model = open_model(settings)
    verifier = Verifier(Extractor(model, SCHEMA, settings.extract), SCHEMA, settings.extract)
    todo = iter(enumerate(sentences))

    def following() -> Conversation[tuple[str, ChunkVerification]] | None:
        pair = next(todo, None)
        if pair is None:
            return None
        number, sentence = pair
        facts = [*sentence.right, *sentence.wrong]
        relations = tuple(FoundRelation(head=h, type=r, tail=t, confidence=1.0) for h, r, t in facts)
        return verifier.verify(
            str(number), sentence.text, ChunkExtraction(entities=sentence.entities, relations=relations)
        )

    right: list[float] = []
    wrong: list[float] = []
    unanswered = prompt = cached = 0
    by_type: dict[str, tuple[list[float], list[float]]] = {}
    for key, found in run_conversations(model, following, settings.extract.window):
        sentence = sentences[int(key)]
        prompt += found.usage[STAGE].prompt
        cached += found.usage[STAGE].cached
        for place, answer in enumerate(found.relations):
            if answer is None:
                unanswered += 1
                continue
            is_right = place < len(sentence.right)
            fact = (sentence.right + sentence.wrong)[place]
            (right if is_right else wrong).append(answer)
            by_type.setdefault(fact[1], ([], []))[0 if is_right else 1].append(answer)
    name = model.identity.name
    model.close()
    return {
        "model": name,
        "sentences": len(sentences),
        "right": len(right),
        "wrong": len(wrong),
        "unanswered": unanswered,
        "auroc": round(auroc(right, wrong), 3),
        "auroc_by_type": {t: round(auroc(*pair), 3) for t, pair in sorted(by_type.items()) if all(pair)},
        "median_p_yes": {"right": statistics.median(right), "wrong": statistics.median(wrong)},
        "kept_at_half": {
            "right": round(sum(p >= 0.5 for p in right) / len(right), 3),
            "wrong": round(sum(p >= 0.5 for p in wrong) / len(wrong), 3),
        },
        "cached_share": round(cached / prompt, 3) if prompt else 0.0,
    }


def auroc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Chance that a right one has the higher score, ties counted half."""
    wins = sum((a > b) + 0.5 * (a == b) for a in right for b in wrong)
    return wins / (len(right) * len(wrong))


def read_sentences(file: Path, chance: random.Random) -> Iterator[Sentence]:
    rows: list[list[str]] = []
    for line in [*file.read_text("utf-8").splitlines(), "#doc"]:
        if not line.startswith("#"):
            rows.append(line.split("\t"))
        elif rows:
            yield _sentence(rows, chance)
            rows = []


def _sentence(rows: list[list[str]], chance: random.Random) -> Sentence:
    words = [row[1] for row in rows]
    starts = [sum(len(word) + 1 for word in words[:place]) for place in range(len(words))]
    text = " ".join(words)
    entities: list[FoundEntity] = []
    of_last_word: dict[int, int] = {}  # word → entity
    for place, row in enumerate(rows):
        if not row[2].startswith("B-"):
            continue
        last = place
        while last + 1 < len(rows) and rows[last + 1][2].startswith("I-"):
            last += 1
        span = (starts[place], starts[last] + len(words[last]))
        of_last_word[last] = len(entities)
        entities.append(
            FoundEntity(
                name=text[slice(*span)], type=_TYPES[row[2].removeprefix("B-")], confidence=1, spans=(span,)
            )
        )
    right = []
    for place, row in enumerate(rows):
        for relation, tail in zip(literal_eval(row[3]), literal_eval(row[4]), strict=True):
            head_index, tail_index = of_last_word.get(place), of_last_word.get(tail)
            if relation != "N" and head_index is not None and tail_index is not None:
                right.append((head_index, _RELATIONS[relation], tail_index))
    possible = [
        (h, relation.name, t)
        for h, head in enumerate(entities)
        for t, tail in enumerate(entities)
        for relation in SCHEMA.relation_types
        if head.name != tail.name
        and SCHEMA.allows(relation.name, head.type, tail.type)
        and (h, relation.name, t) not in right
        and (t, relation.name, h) not in right
    ]
    wrong = chance.sample(possible, min(len(right), len(possible)))
    return Sentence(text, tuple(entities), tuple(right), tuple(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
