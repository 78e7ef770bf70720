"""How much of a set's gold guided extraction could find with the best of models.

    python bench/guided_ceiling.py DIR --limit 25

Counts gold facts whose head, whose tail, and whose both ends are among the spans of their sentence, whose
type is asked for, and that are among the pairs that the grammar offers; lines and pairs of a sentence. No
model is run.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hornbeam.commands.options import quiet_libraries
from hornbeam.evaluate.fact_sets import FactSet, limited, read_fact_sets
from hornbeam.evaluate.text2kg import ValueForms, is_right
from hornbeam.extract.guided import GuidedExtractor
from hornbeam.extract.known_facts import Encoder
from hornbeam.llm.opening import open_model
from hornbeam.llm.protocol import LanguageModel
from hornbeam.opening import open_embedder
from hornbeam.settings import Settings, load_settings


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ontologies", default=None, help="numbers between commas")
    parser.add_argument("--limit", type=int, default=None, help="sentences of each ontology")
    options = parser.parse_args(arguments)
    quiet_libraries()
    numbers = [int(number) for number in options.ontologies.split(",")] if options.ontologies else None
    settings = load_settings(None, {})
    model, encoder = open_model(settings), open_embedder(settings)
    total: Counter[str] = Counter()
    for one in read_fact_sets(options.folder, numbers, "test"):
        counted = ceiling(limited(one, options.limit), model, encoder, settings)
        total += counted
        print(json.dumps({"set": one.name, **shares(counted)}))
    print(json.dumps({"set": "all", **shares(total)}))


def ceiling(one: FactSet, model: LanguageModel, encoder: Encoder, settings: Settings) -> Counter[str]:
    extractor = GuidedExtractor(model, one.schema, settings.extract, one.known, encoder)
    forms = ValueForms.of(one.known)
    counted: Counter[str] = Counter()
    for gold in one.asked:
        questions = extractor.questions(gold.text)
        slots = [slot for question in questions for slot in question.slots]
        spans = {span.text for sentence in extractor.known.read([gold.text]) for span in sentence.spans}
        offered = [
            forms.write((head, slot.relation, tail))
            for slot in slots
            for tail, heads in slot.heads_of.items()
            for head in heads
        ]
        asked = {slot.relation for slot in slots}
        counted["sentences"] += 1
        counted["lines"] += len(slots)
        counted["pairs"] += len(offered)
        for head, name, tail in gold.triples:
            fact = [(head, name, tail)]
            written = [forms.write((span, name, span)) for span in spans]
            head_found = any(is_right((owner, name, tail), fact) for owner, _, _ in written)
            tail_found = any(is_right((head, name, value), fact) for _, _, value in written)
            counted["gold"] += 1
            counted["head among the spans"] += head_found
            counted["tail among the spans"] += tail_found
            counted["both among the spans"] += head_found and tail_found
            counted["type asked for"] += name in asked
            counted["offered"] += any(is_right(pair, fact) for pair in offered)
    return counted


def shares(counted: Counter[str]) -> dict[str, float]:
    """Of the gold facts; lines and pairs of a sentence."""
    per = {"lines": counted["sentences"], "pairs": counted["sentences"]}
    return {
        name: round(count / max(1, per.get(name, counted["gold"])), 3)
        for name, count in counted.items()
        if name not in ("sentences", "gold")
    } | {"sentences": counted["sentences"], "gold": counted["gold"]}


if __name__ == "__main__":
    main()
