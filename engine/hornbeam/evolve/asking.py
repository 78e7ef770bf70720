"""Questions about chunks, put to the model with its batch kept full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hornbeam.corpus import detect_language
from hornbeam.errors import ModelError, UsageError
from hornbeam.evolve.prompts import ProposalPrompt
from hornbeam.evolve.suggestions import ChunkSuggestions, Thing, read_entity_types, read_fact_types
from hornbeam.extract.result import ChunkExtraction
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.grammar.type_proposals import entity_type_grammar, fact_type_grammar
from hornbeam.llm.batch import run_batches
from hornbeam.llm.protocol import Completion, LanguageModel, Request, Usage
from hornbeam.prompts import Prompts, load_prompts, shipped_prompts
from hornbeam.schema.evolution import type_names
from hornbeam.schema.model import GraphSchema, fold
from hornbeam.settings import EvolveSettings, Settings

#: Part of the key of a stored answer: raise it when the form of grammars or the reading of them changes.
GRAMMAR_VERSION = "1"
#: Entities of a chunk of which relations and attributes are asked, and their characters together: they stand
#: in the prompt.
_THINGS, _THINGS_CHARACTERS = 16, 600
_REQUESTS_AT_ONCE = 128


@dataclass(frozen=True, slots=True)
class Question:
    """What types a chunk holds that the schema lacks: of its things, or, with `things`, of their facts."""

    key: str
    text: str
    things: tuple[Thing, ...] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    key: str
    found: ChunkSuggestions | None  # None: the model failed
    usage: Usage
    error: str = ""


class Asker:
    """Asks one model about one schema.

    Args:
        schema: None: nothing is known yet.
        any_words: names may be of any letters, not only of the chunk's words.
        prompts: None: the shipped ones. A chunk is asked about in its language where there are prompts in it.
    """

    def __init__(
        self,
        model: LanguageModel,
        schema: GraphSchema | None,
        settings: EvolveSettings,
        *,
        any_words: bool,
        prompts: Prompts | None = None,
    ) -> None:
        self._model = model
        self._settings = settings
        self._any_words = any_words
        self._all_prompts = prompts or shipped_prompts()
        self._prompts = {
            language: ProposalPrompt(schema, model, self._all_prompts, language)
            for language in self._all_prompts.languages
        }
        self._taken = {fold(name) for name in type_names(schema, "entity")} if schema else set()

    @property
    def version(self) -> str:
        """Of all that an answer depends on besides the chunk, its things and the model."""
        limits = self._settings
        prompts = ",".join(prompt.version for prompt in self._prompts.values())
        return (
            f"{GRAMMAR_VERSION}:{prompts}:{self._any_words}:{limits.types_per_chunk}:"
            f"{limits.max_name_words}:{limits.max_output_tokens}"
        )

    def check_room(self, max_chunk_tokens: int) -> None:
        """
        Raises:
            ModelError: prompt, a full chunk and the answer do not fit the model's context.
        """
        fixed = max(prompt.fixed_tokens for prompt in self._prompts.values())
        needed = fixed + 2 * max_chunk_tokens + self._settings.max_output_tokens
        if needed > self._model.max_model_len:
            raise ModelError(
                f"asking for types needs {needed} tokens of context (prompt {fixed}, "
                f"chunk and things 2 x {max_chunk_tokens}, answer {self._settings.max_output_tokens}), and "
                f"the model has {self._model.max_model_len}; lower chunk.max_tokens or "
                "evolve.max_output_tokens, or raise model.max_model_len"
            )

    def ask(self, questions: Iterable[Question]) -> Iterator[list[Answer]]:
        """Answers as they finish, those of one poll together; `questions` is consumed lazily.

        A question that can have no answer (no word, no two things) is answered with nothing, without a call.
        """
        waiting: dict[str, tuple[Question, SpanLexicon]] = {}
        without_call: list[Answer] = []

        def requests() -> Iterator[Request]:
            for question in questions:
                lexicon = SpanLexicon(question.text, self._settings.max_name_words)
                request = self._request(question, lexicon)
                if request is None:
                    without_call.append(Answer(question.key, ChunkSuggestions(), Usage()))
                else:
                    waiting[question.key] = (question, lexicon)
                    yield request

        for completions in run_batches(self._model, requests(), _REQUESTS_AT_ONCE):
            answers = [
                self._answer(completion, *waiting.pop(completion.request_id)) for completion in completions
            ]
            yield without_call + answers
            without_call.clear()
        if without_call:
            yield without_call

    def _request(self, question: Question, lexicon: SpanLexicon) -> Request | None:
        limits = self._settings
        asked_in = self._prompts[self._all_prompts.language_of(detect_language(question.text))]
        if question.things is None:
            grammar = entity_type_grammar(
                lexicon, max_items=limits.types_per_chunk, taken=self._taken, any_words=self._any_words
            )
            prompt = asked_in.entity_types(question.text)
        else:
            names = [thing.name for thing in question.things]
            grammar = fact_type_grammar(
                names, lexicon, max_items=limits.types_per_chunk, any_words=self._any_words
            )
            prompt = asked_in.fact_types(question.text, names)
        if grammar is None:
            return None
        return Request(question.key, prompt, limits.max_output_tokens, grammar=grammar, logprobs=True)

    def _answer(self, completion: Completion, question: Question, lexicon: SpanLexicon) -> Answer:
        if completion.finish_reason == "error":
            return Answer(question.key, None, completion.usage, completion.error[:500])
        if question.things is None:
            found = read_entity_types(completion, lexicon)
        else:
            found = read_fact_types(completion, question.things, lexicon)
        return Answer(question.key, found, completion.usage)


def things_of(extraction: ChunkExtraction) -> tuple[Thing, ...]:
    """The entities of which facts are asked: in reading order, each name once, as many as fit the prompt."""
    things: dict[str, Thing] = {}
    for entity in extraction.entities:
        if entity.spans:
            things.setdefault(entity.name, Thing(entity.name, entity.type, entity.spans[0]))
    return as_many_as_fit(list(things.values()))


def as_many_as_fit(things: Sequence[Thing]) -> tuple[Thing, ...]:
    kept: list[Thing] = []
    left = _THINGS_CHARACTERS
    for thing in sorted(things, key=lambda each: each.span)[:_THINGS]:
        left -= len(thing.name)
        if left < 0:
            break
        kept.append(thing)
    return tuple(kept)


def asker_of(settings: Settings, schema: GraphSchema | None, model: LanguageModel) -> Asker:
    """
    Raises:
        UsageError: the settings are of the tier without a model, or a prompt of the user's cannot be used.
    """
    if settings.extract.tier == "fast":
        raise UsageError("only a model can say which types a schema lacks, and extract.tier = fast uses none")
    words = settings.evolve.name_words
    any_words = words == "any" or (words == "auto" and settings.model.path is not None)
    prompts = load_prompts(settings.prompts, embedded=settings.model.path is None)
    return Asker(model, schema, settings.evolve, any_words=any_words, prompts=prompts)
