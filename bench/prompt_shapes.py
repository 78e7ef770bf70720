"""Tokens that extraction takes, by the shape of the prompt: ours, and three that other projects use.

    hornbeam bench prompt-shapes [PATH] --limit 20 [--ask] [--costs] [--json]

ours             two calls under grammars; the second has what the first read in the prefix cache
whole schema     one call: rules, the whole schema as JSON, an example, free JSON (as Youtu-GraphRAG)
tuples, gleaning an instruction with worked examples in delimited tuples with descriptions, then one more call
                 with the whole conversation for what is missing (as Microsoft GraphRAG)
NER, then OpenIE one worked example each: names first, then triples between them (as HippoRAG)

The structures are those of the projects, the words are ours. Without --ask only the prompts are counted,
with the model's own tokenizer, and a second call's without what the first would have written: a lower bound.
With --ask the model answers, and all tokens are the engine's own counts; each call of the three others may
write as much as our two calls together. --costs: what 1,000 chunks of ours would cost on named GPUs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from gpu_costs import cost_rows

from hornbeam.corpus import Chunker, read_corpus
from hornbeam.errors import UsageError
from hornbeam.extract.examples import schema_examples
from hornbeam.extract.stages import Extractor
from hornbeam.llm.conversations import Conversation, run_conversations
from hornbeam.llm.opening import open_model
from hornbeam.llm.protocol import LanguageModel, Request, Usage
from hornbeam.llm.vllm_engine import VllmModel
from hornbeam.records import Document
from hornbeam.schema import GraphSchema, load_schema
from hornbeam.schema.describe import attribute_lines, entity_lines, relation_lines
from hornbeam.settings import Settings, load_settings

_DEMO = Path(__file__).parent.parent / "examples" / "corpus"

_WHOLE_SCHEMA = """\
You are an expert in building knowledge graphs. Read the text and extract every entity with its attributes \
and every relation between entities.
Rules:
1. Prefer the types of the schema; where none fits, a new type may be added under "new_schema_types".
2. Attributes are written as "name: value".
3. A triple is [head, relation, tail]; pronouns are replaced by the names that they stand for.
4. Every entity of a triple has a type under "entity_types".
5. Answer with one JSON object and nothing else.

Schema:
{schema}

Text:
{text}

Example of an answer:
{example}"""

_TUPLES = """\
-Goal-
From a text and a list of entity types, identify all entities of those types and all relations among them.

-Steps-
1. Identify all entities. For each give its name, its type (one of: {types}) and a comprehensive description \
of its attributes and activities, as ("entity"<|>NAME<|>TYPE<|>DESCRIPTION)
2. Among these identify all pairs that are clearly related. For each give source, target, an explanation why \
they are related and a strength from 1 to 10, as ("relationship"<|>SOURCE<|>TARGET<|>DESCRIPTION<|>STRENGTH)
3. Return one list of all entities and relationships, with ## between them.
4. When finished, write <|COMPLETE|>

-Examples-
{examples}

-Real data-
Entity types: {types}
Text: {text}
Output:"""
_GLEAN = "Many entities and relationships were missed. Add them below in the same format:"

_NAMES = """\
Extract the named entities of the paragraph. Answer with JSON: {{"named_entities": [...]}}.

Paragraph: {example}
{names}

Paragraph: {text}
"""
_TRIPLES = """\
Build a graph from the paragraph and its named entities: a JSON list of triples, each a relation of the \
graph. Each triple has at least one, better two, of the named entities. Replace pronouns by the names that \
they stand for.

Paragraph: {example}
{names}
{triples}

Paragraph: {text}
{found}
"""

#: A passage's calls: prompts are yielded, answers sent back.
_Calls: TypeAlias = Generator[str, str, None]


@dataclass(slots=True)
class Spent:
    calls: int = 0
    prompt: int = 0
    cached: int = 0
    output: int = 0

    def add(self, usage: Usage) -> None:
        self.calls += 1
        self.prompt += usage.prompt
        self.cached += usage.cached
        self.output += usage.output


class Shapes:
    """The other projects' calls, for one schema."""

    def __init__(self, schema: GraphSchema, model: LanguageModel) -> None:
        self._schema, self._model = schema, model
        self._examples = schema_examples(schema)
        self._types = ", ".join(entity.name for entity in schema.entity_types)

    def whole_schema(self, text: str) -> _Calls:
        schema = {
            "Nodes": entity_lines(self._schema),
            "Relations": relation_lines(self._schema),
            "Attributes": attribute_lines(self._schema),
        }
        shown = self._examples[0]
        example = {
            "attributes": {owner: [f"{name}: {value}"] for owner, name, value in shown.attributes},
            "triples": [list(triple) for triple in shown.relations],
            "entity_types": dict(shown.entities),
            "new_schema_types": {"nodes": [], "relations": [], "attributes": []},
        }
        yield self._chat(
            _WHOLE_SCHEMA,
            schema=json.dumps(schema, ensure_ascii=False),
            text=text,
            example=json.dumps(example, ensure_ascii=False),
        )

    def tuples(self, text: str) -> _Calls:
        examples = "\n\n".join(
            f"Entity types: {self._types}\nText: {one.text}\n"
            f"Output:\n{_as_tuples(one.entities, one.relations)}"
            for one in self._examples[:3]
        )
        prompt = self._chat(_TUPLES, types=self._types, examples=examples, text=text)
        answer = yield prompt
        # The whole conversation again, with one more turn.
        yield f"{prompt}{answer}\n{self._model.chat_prompt('', _GLEAN)}"

    def names_then_triples(self, text: str) -> _Calls:
        one = self._examples[0]
        names = json.dumps({"named_entities": [name for name, _ in one.entities]}, ensure_ascii=False)
        found = yield self._chat(_NAMES, example=one.text, names=names, text=text)
        triples = json.dumps({"triples": [list(triple) for triple in one.relations]}, ensure_ascii=False)
        yield self._chat(_TRIPLES, example=one.text, names=names, triples=triples, text=text, found=found)

    def _chat(self, template: str, *, text: str, **parts: str) -> str:
        parts["text"] = self._model.neutralise(text)
        return self._model.chat_prompt("", template.format(**parts))


def _as_tuples(entities: Sequence[tuple[str, str]], relations: Sequence[tuple[str, str, str]]) -> str:
    told = [
        f'("entity"<|>{name.upper()}<|>{kind.upper()}<|>{name} is a {kind} of the text)'
        for name, kind in entities
    ]
    told += [
        f'("relationship"<|>{head.upper()}<|>{tail.upper()}<|>{head} and {tail}: {relation}<|>8)'
        for head, relation, tail in relations
    ]
    return "##\n".join(told) + "\n<|COMPLETE|>"


def ways(schema: GraphSchema, model: LanguageModel) -> dict[str, Callable[[str], _Calls]]:
    shapes = Shapes(schema, model)
    return {
        "whole schema": shapes.whole_schema,
        "tuples, gleaning": shapes.tuples,
        "NER, then OpenIE": shapes.names_then_triples,
    }


def count_prompts(
    texts: Sequence[str], schema: GraphSchema, model: LanguageModel, settings: Settings
) -> dict[str, Spent]:
    """Prompt tokens alone, no call made: a lower bound."""
    count = model.tokenizer.count
    extractor = Extractor(model, schema, settings.extract)
    found = {"ours": Spent()}
    for text in texts:
        prompts = extractor.prompts.of(text)
        for prompt in (prompts.entities(text), prompts.relations(text, [])):
            found["ours"].add(Usage(count(prompt)))
    for name, way in ways(schema, model).items():
        found[name] = Spent()
        for text in texts:
            calls = way(text)
            try:
                prompt = next(calls)
                while True:
                    found[name].add(Usage(count(prompt)))
                    prompt = calls.send("")
            except StopIteration:
                continue
    return found


def ask(
    texts: Sequence[str], schema: GraphSchema, model: LanguageModel, settings: Settings
) -> dict[str, Spent]:
    """All tokens, as the engine counted them."""
    _forget(model)
    found = {"ours": Spent()}
    extractor = Extractor(model, schema, settings.extract)
    for _, result in extractor.run((str(number), text) for number, text in enumerate(texts)):
        for usage in result.usage.values():
            found["ours"].add(Usage(usage.prompt, usage.cached, usage.output))
            found["ours"].calls += usage.calls - 1
    for name, way in ways(schema, model).items():
        _forget(model)
        found[name] = spent = Spent()
        following = _one_after_the_other(
            [_conversation(number, way(text), settings, spent) for number, text in enumerate(texts)]
        )
        list(run_conversations(model, following, settings.extract.window))
    return found


def _one_after_the_other(conversations: list[Conversation[None]]) -> Callable[[], Conversation[None] | None]:
    waiting = iter(conversations)
    return lambda: next(waiting, None)


def _conversation(number: int, calls: _Calls, settings: Settings, spent: Spent) -> Conversation[None]:
    prompt, step = next(calls), 0
    while True:
        (completion,) = yield [Request(f"{number}/{step}", prompt, 2 * settings.extract.max_output_tokens)]
        spent.add(completion.usage)
        step += 1
        try:
            prompt = calls.send(completion.text)
        except StopIteration:
            return


def _forget(model: LanguageModel) -> None:
    """No shape finds the prompts of the one before in the cache."""
    if isinstance(model, VllmModel):
        model.reset_prefix_cache()


def rows(found: dict[str, Spent], passages: int) -> list[dict[str, object]]:
    """By passage; `read` is what no cache had, `times_ours` compares read and written tokens."""
    ours = found["ours"].prompt - found["ours"].cached + found["ours"].output
    table: list[dict[str, object]] = []
    for name, spent in found.items():
        worked = spent.prompt - spent.cached + spent.output
        table.append(
            {
                "shape": name,
                "calls": round(spent.calls / passages, 2),
                "prompt": round(spent.prompt / passages, 1),
                "read": round((spent.prompt - spent.cached) / passages, 1),
                "output": round(spent.output / passages, 1),
                "times_ours": round(worked / ours, 2),
            }
        )
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench prompt-shapes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", nargs="?", type=Path, metavar="PATH", help="default: the demo corpus")
    parser.add_argument("--limit", type=int, default=20, help="passages (default 20)")
    parser.add_argument("--schema", default="general", help="a seed schema or a file")
    parser.add_argument("--ask", action="store_true", help="let the model answer")
    parser.add_argument("--costs", action="store_true", help="1,000 chunks of ours on named GPUs, estimated")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    options = parser.parse_args(arguments)
    path = options.path or _DEMO
    if not path.exists():
        raise UsageError(f"{path} does not exist: name a PATH (the demo corpus is in the checkout alone)")
    settings, schema = load_settings(), load_schema(options.schema)
    model = open_model(settings)
    try:
        texts = _passages(path, options.limit, settings, model)
        found = (ask if options.ask else count_prompts)(texts, schema, model, settings)
    finally:
        model.close()
    table = rows(found, len(texts))
    ours = found["ours"]
    costs = cost_rows((ours.prompt - ours.cached + ours.output) / len(texts)) if options.costs else []
    if options.json:
        told = {"passages": len(texts), "asked": options.ask, "shapes": table, "costs": costs}
        print(json.dumps(told, indent=2))
        return
    for lines in (table, costs):
        for line in lines:
            print("  ".join(f"{key} {value}" for key, value in line.items()))


def _passages(path: Path, limit: int, settings: Settings, model: LanguageModel) -> list[str]:
    chunker = Chunker(model.tokenizer, settings.chunk.max_tokens, settings.chunk.overlap_tokens)
    texts = [
        chunk.text
        for document in read_corpus([path], settings.corpus)
        if isinstance(document, Document)
        for chunk in chunker.chunk(document)
    ]
    if not texts:
        raise UsageError(f"{path} holds no text")
    step = max(1, len(texts) // limit)
    return texts[::step][:limit]


if __name__ == "__main__":
    main()
