"""What grammars are worth where the right facts are known: four ways to extract, same sentences, same model.

    hornbeam bench text2kg-baselines DIR --limit 10 [--ontologies N,N] [--only WAY,WAY] [--json]

free text     the relation types and the nearest known sentences in the prompt, whatever comes is parsed
JSON schema   the same prompt, an answer of that form enforced: relations from a list, ends of any words
staged        Hornbeam's two calls: names are spans of the text, typed endpoints; no known sentences
guided        Hornbeam's one call: the same known sentences as the first two

DIR and the measures are those of `hornbeam evaluate text2kg`. A call may write `extract.max_output_tokens`
tokens, and each way starts with an empty prefix cache. Unreadable are answers without a JSON
object of facts, those that the token limit cut included.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from extraction_baselines import forget_prompts, json_facts

from hornbeam.evaluate.fact_sets import FactSet, limited, read_fact_sets
from hornbeam.evaluate.text2kg_methods import Found, Tell, guided_facts, staged_facts
from hornbeam.evaluate.text2kg_report import costs, measures
from hornbeam.evaluate.watched_model import WatchedModel
from hornbeam.extract.known_facts import Encoder, Fact, KnownFacts
from hornbeam.extract.result import ChunkExtraction
from hornbeam.grammar.ebnf import alternatives, literal
from hornbeam.llm.batch import run_requests
from hornbeam.llm.opening import open_model
from hornbeam.llm.protocol import LanguageModel, Request
from hornbeam.opening import open_embedder
from hornbeam.progress import Progress
from hornbeam.schema.describe import attribute_lines, relation_lines
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings, load_settings

_INSTRUCTIONS = """\
You turn a text into a knowledge graph. List the facts that the text states, each as [head, relation, tail]. \
Names are copied from the text exactly as written. Answer with one JSON object and nothing else.

Relation types (head, tail):
{relations}

{examples}"""

#: Facts of a set's sentences, one `Found` each.
Ask = Callable[[FactSet, LanguageModel, Encoder, ExtractSettings, Tell], list[Found]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench text2kg-baselines",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--limit", type=int, default=10, help="sentences of each ontology (default 10)")
    parser.add_argument("--ontologies", metavar="N,N", help="their numbers (default: all)")
    parser.add_argument("--only", metavar="WAY,WAY", help=f"of {', '.join(_WAYS)} (default: all)")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    options = parser.parse_args(arguments)
    try:
        numbers = [int(number) for number in options.ontologies.split(",")] if options.ontologies else None
    except ValueError:
        parser.error(f"--ontologies: '{options.ontologies}' is not numbers between commas")
    ways = [way.strip() for way in options.only.split(",")] if options.only else list(_WAYS)
    if unknown := [way for way in ways if way not in _WAYS]:
        parser.error(f"--only: '{unknown[0]}' is not one of {', '.join(_WAYS)}")
    sets = [limited(one, options.limit) for one in read_fact_sets(options.folder, numbers, "test")]
    settings = load_settings()
    model = open_model(settings)
    try:
        report = compare(sets, model, open_embedder(settings), settings.extract, ways)
    finally:
        model.close()
    print(json.dumps(report, indent=2) if options.json else as_table(report))


def compare(
    sets: Sequence[FactSet],
    model: LanguageModel,
    encoder: Encoder,
    settings: ExtractSettings,
    ways: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """The ways, one after another; the engine starts before the first is timed."""
    list(run_requests(model, [Request("warm up", model.chat_prompt("", "Hello"), 1)], 1))
    return {way: _measured(sets, model, encoder, _WAYS[way], settings) for way in ways}


def _measured(
    sets: Sequence[FactSet], model: LanguageModel, encoder: Encoder, ask: Ask, settings: ExtractSettings
) -> dict[str, Any]:
    watched = WatchedModel(model)
    found: dict[str, list[Found]] = {}
    forget_prompts(model)
    started = time.perf_counter()
    total = sum(len(one.asked) for one in sets)
    with Progress() as progress, progress.stage("extract", total, "sentences") as stage:
        for one in sets:
            found[one.name] = ask(one, watched, encoder, settings, lambda number, row: stage.advance())
    seconds = time.perf_counter() - started
    kept = {name: [row.kept for row in rows] for name, rows in found.items()}
    return {
        "sentences": total,
        "unreadable": sum(row.result.state == "failed" for rows in found.values() for row in rows),
        **measures(sets, kept),
        **costs(kept, watched.spent, seconds),
    }


def _free_text(
    one: FactSet, model: LanguageModel, encoder: Encoder, settings: ExtractSettings, tell: Tell
) -> list[Found]:
    return _one_call(one, model, encoder, settings, tell, grammar=None)


def _json_schema(
    one: FactSet, model: LanguageModel, encoder: Encoder, settings: ExtractSettings, tell: Tell
) -> list[Found]:
    return _one_call(one, model, encoder, settings, tell, grammar=json_grammar(one.schema))


def _one_call(
    one: FactSet,
    model: LanguageModel,
    encoder: Encoder,
    settings: ExtractSettings,
    tell: Tell,
    *,
    grammar: str | None,
) -> list[Found]:
    known = KnownFacts(one.known, one.schema, encoder, settings.max_name_words)
    room = model.max_model_len - settings.max_output_tokens
    requests = [
        Request(
            str(number),
            prompt,
            settings.max_output_tokens,
            grammar=grammar,
            temperature=settings.temperature,
        )
        for number, sentence in enumerate(one.asked)
        if (prompt := _prompt(one.schema, known, sentence.text, settings.examples, model, room))
    ]
    unread = Found(ChunkExtraction(state="failed"), ())
    found = [unread] * len(one.asked)
    for completion in run_requests(model, requests, settings.window):
        facts, number = read_facts(completion.text), int(completion.request_id)
        if facts is not None:
            found[number] = Found(ChunkExtraction(), tuple(facts))
        tell(number, found[number])
    return found


def _prompt(
    schema: GraphSchema, known: KnownFacts, text: str, count: int, model: LanguageModel, room: int
) -> str | None:
    """With as many of the nearest examples as the context has room for; None: not even without."""
    (sentence,) = known.read([text])
    shown: list[str] = []
    for index in known.nearest(sentence):
        if len(shown) == count:
            break
        example, facts = known.example(index)
        if facts:
            shown.insert(0, f"Text: {model.neutralise(example)}\n{as_answer(facts)}")
    while True:
        system = _INSTRUCTIONS.format(
            relations="\n".join((*relation_lines(schema), *attribute_lines(schema))),
            examples="\n\n".join(shown),
        )
        prompt = model.chat_prompt(system, f"Text: {model.neutralise(text)}")
        if model.tokenizer.count(prompt) <= room:
            return prompt
        if not shown:
            return None
        del shown[0]


def as_answer(facts: Sequence[Fact]) -> str:
    return json.dumps({"facts": facts}, ensure_ascii=False, separators=(",", ":"))


def read_facts(answer: str) -> list[Fact] | None:
    """The triples of the first JSON object in an answer, each once; None where there is no such object."""
    rows = json_facts(answer)
    if rows is None:
        return None
    facts = [
        (str(row[0]), str(row[1]), str(row[2]))
        for row in rows
        if isinstance(row, list) and len(row) == 3 and all(isinstance(part, str) for part in row)
    ]
    return list(dict.fromkeys(facts))


def json_grammar(schema: GraphSchema) -> str:
    """Three strings a fact, the relation from a list, ends of any words, as bounded as those of
    `extraction_baselines.json_grammar`."""
    names = [each.name for each in (*schema.relation_types, *schema.attribute_types)]
    relations = alternatives(literal(json.dumps(name, ensure_ascii=False)) for name in names)
    return "\n".join(
        (
            r'root ::= "{\"facts\":[" (fact ("," fact)*)? "]}"',
            'fact ::= "[" end "," relation "," end "]"',
            r'end ::= "\"" word (" " word){0,9} "\""',
            r'word ::= [^"\\ \x00-\x1f]{1,24}',
            f"relation ::= {relations}",
        )
    )


_WAYS: dict[str, Ask] = {
    "free text": _free_text,
    "JSON schema": _json_schema,
    "staged": staged_facts,
    "guided": guided_facts,
}


def as_table(report: dict[str, dict[str, Any]]) -> str:
    heads = (
        "P", "R", "F1", "filtered F1", "unreadable", "facts", "subject / relation / object hallucinated",
        "tokens a fact", "tokens / s",
    )  # fmt: skip
    rows = [("", *heads)]
    for name, one in report.items():
        scores, faith = one["values_as_known"], one["faithfulness"]
        invented = [faith[f"{part}_hallucination"] for part in ("subject", "relation", "object")]
        rows.append(
            (
                name,
                *(f"{scores['all'][measure]:.3f}" for measure in ("precision", "recall", "f1")),
                f"{scores['filtered']['f1']:.3f}",
                f"{one['unreadable']} of {one['sentences']}",
                str(one["facts"]),
                " / ".join(f"{share:.3f}" for share in invented),
                str(one["output_tokens_per_fact"] or "-"),
                str(one["output_tokens_per_second"]),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if not place else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


if __name__ == "__main__":
    main()
