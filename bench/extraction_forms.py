"""Forms of an answer compared: names or indices as ends, JSON or lines, two calls or one.

    hornbeam bench extraction-forms DIR [--sentences 60] [--only FORM,FORM] [--output FILE] [--json]

DIR is Text2KGBench's folder. The same sentences, spread over its ontologies, are asked about in every form
by the model in use, with the same four nearest known sentences as examples. F1 is the benchmark's, values in
the form of the known facts, one mean over all sentences; tokens are those of the output. Stage one is the
same whatever the ends of stage two, and asked once for JSON and once for lines. `one call` is guided
extraction: the types of the facts are proposed by the known sentences, a line each. A form is told of as soon
as it ends; with --output its figures and every sentence's F1 are kept then, and after each sentence before.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hornbeam.errors import UsageError
from hornbeam.evaluate.fact_sets import FactSet, GoldSentence, limited, read_fact_sets
from hornbeam.evaluate.known_examples import write_examples
from hornbeam.evaluate.text2kg import Answer, ValueForms, is_right, sentence_scores
from hornbeam.extract.examples import Example, ExampleStore, read_examples
from hornbeam.extract.guided import GuidedExtractor
from hornbeam.extract.guided_facts import strongest
from hornbeam.extract.known_facts import Fact
from hornbeam.extract.reading import read_entities, read_relations
from hornbeam.extract.result import FoundEntity
from hornbeam.extract.room import ItemLimits
from hornbeam.grammar.entities import entity_grammar
from hornbeam.grammar.relations import NamedEntity, relation_grammar
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.batch import run_requests
from hornbeam.llm.conversations import run_conversations
from hornbeam.llm.opening import open_model
from hornbeam.llm.protocol import Completion, LanguageModel, Request
from hornbeam.opening import open_embedder
from hornbeam.prompts import shipped_prompts
from hornbeam.schema.describe import attribute_lines, entity_lines, relation_lines
from hornbeam.settings import ExtractSettings, load_settings

_EXAMPLES = 4
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
#: The fragments of a JSON list in a grammar, as lines.
_FRAGMENTS = {
    "[": "", ",[": "\n", "]": "", '"]': "", '","': " | ", ',"': " | ", '"': "", "]}": "\n\n",
    '],"attributes":[': "\n\n",
}  # fmt: skip


@dataclass(slots=True)
class Score:
    f1: dict[int, float] = field(default_factory=dict)  # by number of the sentence
    facts: int = 0
    right: int = 0
    calls: int = 0
    output: int = 0
    seconds: float = 0.0

    def add(self, number: int, ontology: str, sentence: GoldSentence, facts: Sequence[Fact]) -> None:
        written = tuple(dict.fromkeys(facts))
        answer = Answer(ontology, sentence.text, sentence.triples, written)
        self.f1[number] = sentence_scores(answer, official_filter=False)[2]
        self.facts += len(written)
        self.right += sum(is_right(fact, sentence.triples) for fact in written)

    def row(self) -> dict[str, Any]:
        return {
            "sentences": len(self.f1),
            "f1": round(sum(self.f1.values()) / max(1, len(self.f1)), 3),
            "f1_interval": _interval(list(self.f1.values())),
            "facts": self.facts,
            "right": self.right,
            "calls": self.calls,
            "output_tokens": self.output,
            "tokens_per_fact": round(self.output / max(1, self.facts), 1),
            "tokens_per_right_fact": round(self.output / max(1, self.right), 1),
            "seconds": round(self.seconds, 1),
        }


@dataclass(frozen=True, slots=True)
class Form:
    """Two calls in one form of output and of ends."""

    lines: bool
    index: bool

    @property
    def name(self) -> str:
        ends = "index" if self.index else "names"
        return f"two calls, {'lines' if self.lines else 'JSON'}, {ends}"

    def grammar(self, written: str) -> str:
        """Of JSON lists, or of lines that say the same."""
        return _LITERAL.sub(_as_line, written) if self.lines else written

    def answer(self, completion: Completion) -> Completion:
        """As the readers of JSON lists take it."""
        if not self.lines:
            return completion
        parts = completion.text.split("\n\n")
        lists = [
            ",".join(json.dumps(line.split(" | "), ensure_ascii=False) for line in part.split("\n") if line)
            for part in parts[: 2 if len(parts) > 2 else 1]
        ]
        compact = [one.replace('", "', '","') for one in lists]
        return replace(completion, text='],"attributes":['.join(compact) + "]}", tokens=())

    def rows(self, rows: Sequence[Sequence[str]]) -> str:
        if self.lines:
            return "\n".join(" | ".join(row) for row in rows)
        return ",".join(json.dumps(list(row), ensure_ascii=False, separators=(",", ":")) for row in rows)

    def numbered(self, entities: Sequence[tuple[str, str]]) -> list[tuple[str, ...]]:
        """With their indices where these are the ends of facts."""
        return [(str(n), *one) if self.index else one for n, one in enumerate(entities)]

    def opening(self, kind: str) -> str:
        return f"{kind.capitalize()}:\n" if self.lines else f'{{"{kind}":['

    def closing(self) -> str:
        return "\n\n" if self.lines else "]}\n"

    def between(self) -> str:
        return "\n\n" if self.lines else '],"attributes":['

    def example(self, example: Example) -> str:
        """As it is shown in the second call."""
        place = {name: str(n) if self.index else name for n, (name, _) in enumerate(example.entities)}
        relations = [(place[h], name, place[t]) for h, name, t in example.relations]
        attributes = [(place[h], name, value) for h, name, value in example.attributes]
        return (
            f"Text: {example.text}\n{self.opening('entities')}{self.rows(self.numbered(example.entities))}"
            f"{self.closing()}{self.opening('relations')}{self.rows(relations)}{self.between()}"
            f"{self.rows(attributes)}{self.closing()}"
        ).strip()


def _as_line(match: re.Match[str]) -> str:
    written: str = json.loads(match.group())
    if written in _FRAGMENTS:
        return json.dumps(_FRAGMENTS[written], ensure_ascii=False)
    if written.startswith('"') and written.endswith('",'):
        return json.dumps(f"{written[1:-2]} | ", ensure_ascii=False)
    if written.startswith('"') and written.endswith('","'):
        return json.dumps(f"{written[1:-3]} | ", ensure_ascii=False)
    if written.endswith('"'):  # a span closes its string itself
        return json.dumps(written.removeprefix('"')[:-1], ensure_ascii=False)
    return match.group()


FORMS = tuple(Form(lines, index) for lines in (False, True) for index in (False, True))
ONE_CALL = "one call, lines, names"
NAMES = (*(form.name for form in FORMS), ONE_CALL)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench extraction-forms",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--sentences", type=int, default=60)
    parser.add_argument("--only", metavar="FORM,FORM", help=f"numbers: {_numbered()}")
    parser.add_argument("--output", type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    names = _chosen(options.only)
    settings = load_settings()
    sets = read_fact_sets(options.folder, None, "test")
    some = [limited(one, max(1, options.sentences // len(sets))) for one in sets]
    model, encoder = open_model(settings), open_embedder(settings)
    finished: dict[str, Score] = {}

    def keep(name: str, score: Score) -> None:
        finished[name] = score
        if options.output is not None:
            kept = {
                known: {**one.row(), "by_sentence": [one.f1[number] for number in sorted(one.f1)]}
                for known, one in finished.items()
            }
            options.output.write_text(json.dumps(kept, indent=2) + "\n", "utf-8")

    try:
        for name, score in compare(some, model, encoder, settings.extract, names, keep):
            line = f"{name:28} " + "  ".join(f"{key} {value}" for key, value in score.row().items())
            print(line, file=sys.stderr if options.json else sys.stdout, flush=True)
    finally:
        model.close()
    if options.json:
        print(json.dumps({name: score.row() for name, score in finished.items()}, indent=2))


def _numbered() -> str:
    return "; ".join(f"{number} {name}" for number, name in enumerate(NAMES, start=1))


def _chosen(written: str | None) -> list[str]:
    if written is None:
        return list(NAMES)
    try:
        return [NAMES[int(number) - 1] for number in written.split(",") if int(number) > 0]
    except (ValueError, IndexError):
        raise UsageError(f"--only {written}: numbers of forms between commas, of {_numbered()}") from None


def compare(
    sets: Sequence[FactSet],
    model: LanguageModel,
    encoder: Any,
    limits: ExtractSettings,
    names: Sequence[str] = NAMES,
    keep: Callable[[str, Score], None] = lambda name, score: None,
) -> Iterator[tuple[str, Score]]:
    """Each form as it ends. The sentences of all sets are in flight together.

    Args:
        keep: told of what a form has so far, after each sentence.
    """
    staged = _Staged(sets, model, encoder, limits) if set(names) - {ONE_CALL} else None
    forms = {form.name: form for form in FORMS}
    asked = [(one, sentence) for one in sets for sentence in one.asked]
    write = {one.name: ValueForms.of(one.known).write for one in sets}
    for name in names:
        score = Score()
        started = time.perf_counter()
        if staged is not None and name in forms:
            found = staged.extract(forms[name], score)
        else:
            found = _guided(sets, model, encoder, limits.model_copy(update={"examples": _EXAMPLES}), score)
        for number, facts in found:
            score.seconds = time.perf_counter() - started
            one, sentence = asked[number]
            score.add(number, one.name, sentence, [write[one.name](fact) for fact in facts])
            keep(name, score)
        yield name, score


def _interval(f1: Sequence[float]) -> list[float]:
    """95 %, sentences drawn again a thousand times."""
    if not f1:
        return []
    values, rng = np.array(f1), np.random.default_rng(42)
    means = values[rng.integers(len(values), size=(1000, len(values)))].mean(axis=1)
    return [round(float(bound), 3) for bound in np.quantile(means, [0.025, 0.975])]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A sentence with what its calls are made of."""

    one: FactSet
    text: str
    room: ItemLimits
    lexicon: SpanLexicon
    examples: Sequence[Example]


class _Staged:
    """Two calls for every sentence; the first is shared by the ends of the second."""

    def __init__(
        self, sets: Sequence[FactSet], model: LanguageModel, encoder: Any, limits: ExtractSettings
    ) -> None:
        self._model = model
        self._limits = limits
        self._asked: list[_Asked] = []
        for one in sets:
            with tempfile.TemporaryDirectory() as scratch:
                examples = read_examples(write_examples(one, Path(scratch) / "examples.jsonl"), one.schema)
            store = ExampleStore(examples, encoder)
            room = ItemLimits(one.schema, model.tokenizer, limits)
            for text in (sentence.text for sentence in one.asked):
                shown = store.ranked(text)[:_EXAMPLES][::-1]
                self._asked.append(_Asked(one, text, room, SpanLexicon(text, limits.max_name_words), shown))
        self._entities: dict[bool, tuple[list[tuple[FoundEntity, ...]], int]] = {}

    def extract(self, form: Form, score: Score) -> Iterator[tuple[int, list[Fact]]]:
        """Sentences by number with their facts, as their second calls end."""
        if form.lines not in self._entities:
            self._entities[form.lines] = self._first(Form(form.lines, False))
        entities, spent = self._entities[form.lines]
        score.output += spent
        score.calls += len(entities)
        ends = [
            [NamedEntity(str(n) if form.index else one.name, one.type) for n, one in enumerate(found)]
            for found in entities
        ]
        requests = []
        for number, (asked, named) in enumerate(zip(self._asked, ends, strict=True)):
            most_relations, most_attributes = asked.room.facts(named)
            grammar = relation_grammar(
                named, asked.lexicon, asked.one.schema, relations_per_head=self._limits.relations_per_head,
                attributes_per_entity=self._limits.attributes_per_entity, max_relations=most_relations,
                max_attributes=most_attributes,
            ) if named else None  # fmt: skip
            if grammar is None:
                yield number, []
                continue
            rows = form.rows(form.numbered([(entity.name, entity.type) for entity in entities[number]]))
            prompt = f"{self._prompt(form, asked)}{rows}{form.closing()}{form.opening('relations')}"
            requests.append(self._request(number, prompt, form.grammar(grammar)))
        for completion in run_requests(self._model, requests, self._limits.window):
            number = int(completion.request_id)
            _spend(score, completion)
            asked, found = self._asked[number], entities[number]
            named = [
                entity.model_copy(update={"name": end.name})
                for entity, end in zip(found, ends[number], strict=True)
            ]
            read = read_relations(form.answer(completion), named, asked.lexicon, asked.one.schema)
            facts = [(found[fact.head].name, fact.type, found[fact.tail].name) for fact in read.relations]
            yield number, facts + [(found[a.entity].name, a.type, a.value) for a in read.attributes]

    def _first(self, form: Form) -> tuple[list[tuple[FoundEntity, ...]], int]:
        requests = []
        for number, asked in enumerate(self._asked):
            most = asked.room.entities(asked.lexicon)
            grammar = entity_grammar(asked.lexicon, asked.one.schema, self._limits.entities_per_clause, most)
            if grammar is not None:
                requests.append(self._request(number, self._prompt(form, asked), form.grammar(grammar)))
        found: list[tuple[FoundEntity, ...]] = [()] * len(self._asked)
        output = 0
        for completion in run_requests(self._model, requests, self._limits.window):
            number = int(completion.request_id)
            output += completion.usage.output
            answer, asked = form.answer(completion), self._asked[number]
            found[number] = read_entities(answer, asked.lexicon, asked.one.schema).entities
        return found, output

    def _prompt(self, form: Form, asked: _Asked) -> str:
        schema = asked.one.schema
        system = shipped_prompts().text("extraction", "en").instruct(
            entity_types="\n".join(entity_lines(schema)),
            relation_types="\n".join(relation_lines(schema)) or "none",
            attribute_types="\n".join(attribute_lines(schema)) or "none",
            examples="\n\n".join(form.example(example) for example in asked.examples),
        )  # fmt: skip
        text = self._model.neutralise(asked.text)
        return self._model.chat_prompt(system, f"Text: {text}") + form.opening("entities")

    def _request(self, number: int, prompt: str, grammar: str) -> Request:
        return Request(str(number), prompt, self._limits.max_output_tokens, grammar=grammar, logprobs=True)


def _guided(
    sets: Sequence[FactSet], model: LanguageModel, encoder: Any, limits: ExtractSettings, score: Score
) -> Iterator[tuple[int, list[Fact]]]:
    extractors = [GuidedExtractor(model, one.schema, limits, one.known, encoder) for one in sets]
    texts = [
        (extractor, sentence.text)
        for extractor, one in zip(extractors, sets, strict=True)
        for sentence in one.asked
    ]
    waiting = iter(enumerate(texts))

    def ask(number: int, extractor: GuidedExtractor, text: str) -> Any:
        conversation = extractor.facts(str(number), text)
        try:
            requests = next(conversation)
            while True:
                completions = yield requests
                for completion in completions:
                    _spend(score, completion)
                requests = conversation.send(completions)
        except StopIteration as end:
            return number, end.value

    def following() -> Any:
        pair = next(waiting, None)
        return None if pair is None else ask(pair[0], *pair[1])

    for number, given in run_conversations(model, following, limits.window):
        kept = strongest(sorted(given, key=lambda fact: -fact.confidence), limits.guided_threshold)
        yield number, [(fact.head, fact.predicate, fact.tail) for fact in kept]


def _spend(score: Score, completion: Completion) -> None:
    if completion.error:
        raise RuntimeError(completion.error)
    score.calls += 1
    score.output += completion.usage.output


if __name__ == "__main__":
    main()
