"""What the grammars are worth: four ways to extract, same passages, same model, one table.

    hornbeam bench extraction-baselines [PATH] --limit 40 [--schema general] [--only WAY,WAY] [--json]

free text     the schema and an example in the prompt, JSON asked for, whatever comes is parsed
JSON schema   the same prompt, an answer of that form enforced: types from a list, names any string
grounded      Hornbeam's own two calls: names are spans of the text, typed endpoints (attributes left out)
no model      the fast tier: terms that share a sentence

The first two may write as many tokens as the third's two calls together. A fact is a head with its type, a
relation, a tail with its type. It is out of schema when a type is unknown or the relation does not go between
its types, ungrounded when a name does not stand in the text (white space aside), usable when neither, and
counted once a passage. The rates are of all facts written; unreadable are answers from which no JSON can be
read, those that the token limit cut included.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hornbeam.corpus import Chunker, read_corpus
from hornbeam.errors import UsageError
from hornbeam.extract.cooccurrence import SCHEMA, CooccurrenceExtractor
from hornbeam.extract.prompts import schema_examples
from hornbeam.extract.result import ChunkExtraction
from hornbeam.extract.stages import Extractor
from hornbeam.grammar.ebnf import alternatives, literal
from hornbeam.llm.batch import run_requests
from hornbeam.llm.opening import open_model
from hornbeam.llm.protocol import LanguageModel, Request
from hornbeam.llm.vllm_engine import VllmModel
from hornbeam.records import ChunkState, Document
from hornbeam.schema import GraphSchema, load_schema
from hornbeam.schema.describe import entity_lines, relation_lines
from hornbeam.settings import Settings, load_settings

WAYS = ("free text", "JSON schema", "grounded", "no model")
_DEMO = Path(__file__).parent.parent / "examples" / "corpus"
_INSTRUCTIONS = """\
You turn a text into a knowledge graph. List the facts that the text states, each as [head, head type, \
relation, tail, tail type]. Names are copied from the text exactly as written. Answer with one JSON object \
and nothing else.

Entity types:
{entity_types}

Relation types (head, tail):
{relation_types}

{examples}"""


@dataclass(frozen=True, slots=True)
class Fact:
    head: str
    head_type: str
    relation: str
    tail: str
    tail_type: str


@dataclass(slots=True)
class Score:
    """Of one way to extract, over all passages."""

    passages: int = 0
    calls: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    unreadable: int = 0
    facts: int = 0
    out_of_schema: int = 0
    ungrounded: int = 0
    usable: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, facts: Sequence[Fact] | None, text: str, schema: GraphSchema) -> None:
        """A passage's facts; None: its answer could not be read."""
        self.passages += 1
        self.unreadable += facts is None
        stands = " ".join(text.split())
        usable = set()
        for fact in facts or ():
            allowed = conforms(fact, schema)
            grounded = all(
                name.strip() and " ".join(name.split()) in stands for name in (fact.head, fact.tail)
            )
            self.facts += 1
            self.out_of_schema += not allowed
            self.ungrounded += not grounded
            if allowed and grounded:
                usable.add(fact)
        self.usable += len(usable)

    def row(self) -> dict[str, object]:
        return asdict(self) | {
            "seconds": round(self.seconds, 2),
            "tokens_per_second": round(self.output_tokens / self.seconds, 1) if self.seconds else 0.0,
            "tokens_per_usable_fact": round(self.output_tokens / self.usable, 1) if self.usable else None,
        }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench extraction-baselines",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", nargs="?", type=Path, metavar="PATH", help="default: the demo corpus")
    parser.add_argument("--limit", type=int, default=40, help="passages (default 40)")
    parser.add_argument("--schema", default="general", help="a seed schema or a file")
    parser.add_argument("--only", metavar="WAY,WAY", help=f"of {', '.join(WAYS)} (default: all)")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    options = parser.parse_args(arguments)
    ways = [way.strip() for way in options.only.split(",")] if options.only else WAYS
    if unknown := [way for way in ways if way not in WAYS]:
        parser.error(f"--only: '{unknown[0]}' is not one of {', '.join(WAYS)}")
    path = options.path or _DEMO
    if not path.exists():
        raise UsageError(f"{path} does not exist: name a PATH (the demo corpus is in the checkout alone)")
    settings, schema = load_settings(), load_schema(options.schema)
    model = open_model(settings)
    try:
        texts = _passages(path, options.limit, settings, model)
        scores = {}
        shown = sys.stderr if options.json else sys.stdout
        print(table_head(), file=shown, flush=True)
        for name, score in compare(texts, settings, schema, model, ways):
            scores[name] = score
            print(table_row(name, score), file=shown, flush=True)  # now: the next takes minutes
    finally:
        model.close()
    if options.json:
        print(json.dumps({name: score.row() for name, score in scores.items()}, indent=2))


def compare(
    texts: Sequence[str],
    settings: Settings,
    schema: GraphSchema,
    model: LanguageModel,
    ways: Sequence[str],
) -> Iterator[tuple[str, Score]]:
    """Those of `WAYS`, one after another; the engine starts before the first is timed."""
    list(run_requests(model, [Request("warm up", model.chat_prompt("", "Hello"), 1)], 1))
    for way in ways:
        match way:
            case "free text":
                yield way, _one_call(texts, settings, schema, model, grammar=None)
            case "JSON schema":
                yield way, _one_call(texts, settings, schema, model, grammar=json_grammar(schema))
            case "grounded":
                yield way, _grounded(texts, settings, schema, model)
            case _:
                yield way, _cooccurring(texts, settings)


def forget_prompts(model: LanguageModel) -> None:
    """Empty the prefix cache, so that no way finds the prompts of the one before in it. A server's cannot be
    emptied."""
    if isinstance(model, VllmModel):
        model.reset_prefix_cache()


def _one_call(
    texts: Sequence[str], settings: Settings, schema: GraphSchema, model: LanguageModel, grammar: str | None
) -> Score:
    system = prompt(schema, settings.extract.examples)
    budget = 2 * settings.extract.max_output_tokens
    requests = [
        Request(
            str(number),
            model.chat_prompt(system, f"Text: {model.neutralise(text)}"),
            budget,
            grammar=grammar,
            temperature=settings.extract.temperature,
        )
        for number, text in enumerate(texts)
    ]
    score = Score()
    forget_prompts(model)
    started = time.perf_counter()
    for completion in run_requests(model, requests, settings.extract.window):
        score.calls += 1
        score.output_tokens += completion.usage.output
        if completion.error:
            score.failures.append(completion.error)
        score.add(read_facts(completion.text), texts[int(completion.request_id)], schema)
    score.seconds = time.perf_counter() - started
    return score


def _grounded(texts: Sequence[str], settings: Settings, schema: GraphSchema, model: LanguageModel) -> Score:
    limits = settings.extract.model_copy(update={"attributes_per_entity": 0})
    forget_prompts(model)
    return _extracted(Extractor(model, schema, limits).run, texts, schema)


def _cooccurring(texts: Sequence[str], settings: Settings) -> Score:
    schema = load_schema(SCHEMA)
    return _extracted(CooccurrenceExtractor(schema, settings.extract).run, texts, schema)


def _extracted(
    run: Callable[[Iterable[tuple[str, str]]], Iterable[tuple[str, ChunkExtraction]]],
    texts: Sequence[str],
    schema: GraphSchema,
) -> Score:
    score = Score()
    started = time.perf_counter()
    for key, result in run((str(number), text) for number, text in enumerate(texts)):
        for usage in result.usage.values():
            score.calls += usage.calls
            score.output_tokens += usage.output
        failed = result.state is ChunkState.FAILED
        if failed:
            score.failures.append(result.detail)
        score.add(None if failed else facts_of(result), texts[int(key)], schema)
    score.seconds = time.perf_counter() - started
    return score


def facts_of(result: ChunkExtraction) -> list[Fact]:
    ends = [(entity.name, entity.type) for entity in result.entities]
    return [Fact(*ends[r.head], r.type, *ends[r.tail]) for r in result.relations]


def read_facts(answer: str) -> list[Fact] | None:
    """The facts of the first JSON object in an answer; what is no fact in it is passed over. None where there
    is no such object."""
    rows = json_facts(answer)
    if rows is None:
        return None
    return [
        Fact(*row)
        for row in rows
        if isinstance(row, list) and len(row) == 5 and all(isinstance(part, str) for part in row)
    ]


def json_facts(answer: str) -> list[object] | None:
    """What the first JSON object in an answer lists under "facts"; None where there is no such object."""
    start = answer.find("{")
    if start < 0:
        return None
    try:
        found, _ = json.JSONDecoder().raw_decode(answer[start:])
    except ValueError:
        return None
    rows = found.get("facts") if isinstance(found, dict) else None
    return rows if isinstance(rows, list) else None


def conforms(fact: Fact, schema: GraphSchema) -> bool:
    """Whether the schema has the types, and the relation between them."""
    types = {entity.name for entity in schema.entity_types}
    relations = {relation.name for relation in schema.relation_types}
    return (
        {fact.head_type, fact.tail_type} <= types
        and fact.relation in relations
        and schema.allows(fact.relation, fact.head_type, fact.tail_type)
    )


def prompt(schema: GraphSchema, examples: int) -> str:
    """What the two baselines are told: the schema, and the worked examples in their form."""
    shown = []
    for example in schema_examples(schema)[:examples]:
        types = dict(example.entities)
        facts = [[h, types[h], relation, t, types[t]] for h, relation, t in example.relations]
        answer = json.dumps({"facts": facts}, ensure_ascii=False, separators=(",", ":"))
        shown.append(f"Text: {example.text}\n{answer}")
    return _INSTRUCTIONS.format(
        entity_types="\n".join(entity_lines(schema)),
        relation_types="\n".join(relation_lines(schema)),
        examples="\n\n".join(shown),
    )


def json_grammar(schema: GraphSchema) -> str:
    """What a JSON schema says: five strings a fact, types and relations from lists, names of any words.

    Words are bounded: strings without bounds let a small model run to the token limit inside one name.
    """
    types = alternatives(literal(f'"{entity.name}"') for entity in schema.entity_types)
    relations = alternatives(literal(f'"{relation.name}"') for relation in schema.relation_types)
    return "\n".join(
        (
            r'root ::= "{\"facts\":[" (fact ("," fact)*)? "]}"',
            'fact ::= "[" name "," type "," relation "," name "," type "]"',
            r'name ::= "\"" word (" " word){0,9} "\""',
            r'word ::= [^"\\ \x00-\x1f]{1,24}',
            f"type ::= {types}",
            f"relation ::= {relations}",
        )
    )


def table_head() -> str:
    heads = (
        "unreadable", "facts", "out of schema", "ungrounded", "usable", "tokens", "tokens / usable",
        "seconds", "tokens / s",
    )  # fmt: skip
    return f"{'':12}" + "".join(f"{head:>17}" for head in heads)


def table_row(name: str, score: Score) -> str:
    row, facts = score.row(), max(1, score.facts)
    cells = (
        f"{score.unreadable} of {score.passages}",
        score.facts,
        f"{score.out_of_schema} ({score.out_of_schema / facts:.0%})",
        f"{score.ungrounded} ({score.ungrounded / facts:.0%})",
        score.usable,
        score.output_tokens,
        row["tokens_per_usable_fact"] or "-",
        row["seconds"],
        row["tokens_per_second"],
    )
    return f"{name:12}" + "".join(f"{cell!s:>17}" for cell in cells)


def _passages(path: Path, limit: int, settings: Settings, model: LanguageModel) -> list[str]:
    chunker = Chunker(model.tokenizer, settings.chunk.max_tokens, settings.chunk.overlap_tokens)
    texts: list[str] = []
    for item in read_corpus([path], settings.corpus):
        if isinstance(item, Document):
            texts += [chunk.text for chunk in chunker.chunk(item)]
        if len(texts) >= limit:
            break
    if not texts:
        raise UsageError(f"{path} holds no text")
    return texts[:limit]


if __name__ == "__main__":
    main()
