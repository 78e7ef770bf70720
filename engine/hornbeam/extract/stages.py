"""Two-stage extraction of many chunks, the model's batch kept full.

A chunk's second call is submitted as soon as its first returns: there is no barrier between the stages, and
the first call's key-value blocks are still in the cache. What a call cannot give, other calls are asked for
(`hornbeam.extract.ladder`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from hornbeam.errors import ModelError
from hornbeam.extract.forms import EntityForm, Form, Question, Read, RelationForm
from hornbeam.extract.known_facts import Encoder
from hornbeam.extract.ladder import Call, Ladder, Piece, with_types
from hornbeam.extract.prompts import ExtractionPrompt, ExtractionPrompts
from hornbeam.extract.reading import ReadEntities, ReadRelations, merge_entities, merge_facts
from hornbeam.extract.result import (
    ChunkExtraction,
    ChunkText,
    FoundAttribute,
    FoundEntity,
    FoundRelation,
    Reason,
    Rung,
    StageUsage,
)
from hornbeam.extract.room import ItemLimits
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.checked import GRAMMAR_REFUSED
from hornbeam.llm.conversations import Conversation, run_conversations
from hornbeam.llm.protocol import Completion, LanguageModel, Request
from hornbeam.prompts import Prompts, shipped_prompts
from hornbeam.records import ChunkState
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings

#: Part of the key of a stored result: raise it when the form of grammars or the reading of them changes.
GRAMMAR_VERSION = "4"

_Read = TypeVar("_Read", bound=Read)
_Value = TypeVar("_Value")
#: A part of a conversation.
_Asking: TypeAlias = Generator[list[Request], list[Completion], _Value]


@dataclass(slots=True)
class _Work:
    """What became of one chunk so far."""

    key: str
    prompt: ExtractionPrompt
    reasons: dict[Reason, None] = field(default_factory=dict)  # in the order in which they came
    rungs: Counter[Rung] = field(default_factory=Counter)
    usage: dict[str, StageUsage] = field(default_factory=dict)
    repeated: int = 0
    dropped: int = 0
    detail: str = ""

    def lose(self, reason: Reason, detail: str = "") -> None:
        self.reasons[reason] = None
        self.detail = self.detail or detail[:500]

    def count(self, reads: Iterable[ReadEntities | ReadRelations]) -> None:
        for read in reads:
            self.repeated += read.repeated
            self.dropped += read.dropped

    def climb(self, step: tuple[Rung, list[Call]] | None, otherwise: Reason, detail: str = "") -> list[Call]:
        """The calls of a step of the ladder, which is counted; where there is none, something is lost."""
        if step is None:
            self.lose(otherwise, detail)
            return []
        self.rungs[step[0]] += 1
        return step[1]

    def spend(self, stage: str, completion: Completion) -> None:
        usage = completion.usage
        spent = StageUsage(calls=1, prompt=usage.prompt, cached=usage.cached, output=usage.output)
        self.usage[stage] = self.usage.get(stage, StageUsage()) + spent


class Extractor:
    """Extracts chunks with one model and one schema.

    Args:
        model: one that is `CheckedModel` refuses grammars that cost more than they may; their calls are then
            made in parts.
        prompts: None: the shipped ones.
        encoder: where the settings ask for the nearest examples.

    Raises:
        UsageError: the file of examples cannot be used.
    """

    def __init__(
        self,
        model: LanguageModel,
        schema: GraphSchema,
        settings: ExtractSettings,
        prompts: Prompts | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        self.model = model
        self._schema = schema
        self._settings = settings
        self._limits = ItemLimits(schema, model.tokenizer, settings)
        self._ladder = Ladder(settings, model.max_model_len)
        self.prompts = ExtractionPrompts(prompts or shipped_prompts(), schema, model, settings, encoder)

    @property
    def versions(self) -> Mapping[str, str]:
        """The prompts' by language, "" for all others: part of the key of stored results."""
        return self.prompts.versions

    @property
    def window(self) -> int:
        """Requests that are on their way at once, at most."""
        return self._settings.window

    def check_room(self, max_chunk_tokens: int) -> None:
        """In another language than the first the prompt may be longer; the ladder then splits full chunks.

        Raises:
            ModelError: prompt, a full chunk and the answers do not fit the model's context.
        """
        # Stage two reads the entities that stage one wrote.
        fixed = self.prompts.of("").fixed_tokens
        needed = fixed + max_chunk_tokens + 2 * self._settings.max_output_tokens
        if needed > self.model.max_model_len:
            raise ModelError(
                f"the prompt ({fixed} tokens), a chunk ({max_chunk_tokens}) and two "
                f"answers (2 x {self._settings.max_output_tokens}) need {needed} tokens of context, and the "
                f"model has {self.model.max_model_len}; lower chunk.max_tokens or "
                "extract.max_output_tokens, or raise model.max_model_len"
            )

    def run(
        self,
        chunks: Iterable[ChunkText],
        on_progress: Callable[[int], None] = lambda in_flight: None,
    ) -> Iterator[tuple[str, ChunkExtraction]]:
        """Extract chunks lazily; yields `(key, result)` as chunks finish, in any order.

        At most `settings.window` calls are on their way at once. Every chunk that goes in comes out, also
        one whose calls fail.
        """
        source = iter(chunks)

        def following() -> Conversation[tuple[str, ChunkExtraction]] | None:
            chunk = next(source, None)
            return None if chunk is None else self.extract(*chunk)

        yield from run_conversations(self.model, following, self.window, on_progress)

    def extract(self, key: str, text: str, language: str = "") -> Conversation[tuple[str, ChunkExtraction]]:
        """The calls of one chunk."""
        work = _Work(key, self.prompts.of(text, language))
        whole = Piece(0, SpanLexicon(text, self._settings.max_name_words))
        entities = yield from self._entities(work, whole)
        relations, attributes = (yield from self._facts(work, whole, entities)) if entities else ((), ())
        lost_all = bool(work.reasons) and not entities and Reason.ENTITIES_CUT not in work.reasons
        state = ChunkState.FAILED if lost_all else ChunkState.DEGRADED if work.reasons else ChunkState.DONE
        return key, ChunkExtraction(
            entities=entities,
            relations=relations,
            attributes=attributes,
            state=state,
            reasons=tuple(work.reasons),
            detail=work.detail,
            repeated=work.repeated,
            dropped=work.dropped,
            rungs=dict(work.rungs),
            usage=work.usage,
        )

    def _entities(self, work: _Work, whole: Piece) -> _Asking[tuple[FoundEntity, ...]]:
        form = EntityForm(work.prompt, self._limits, self._settings)
        names_alone = with_types(self._schema, relation_types=(), attribute_types=())
        reads = yield from self._ask(work, form, self._ladder.first(whole, names_alone))
        work.count(reads)
        return merge_entities(reads, whole.lexicon) if reads else ()

    def _facts(
        self, work: _Work, whole: Piece, entities: tuple[FoundEntity, ...]
    ) -> _Asking[tuple[tuple[FoundRelation, ...], tuple[FoundAttribute, ...]]]:
        form = RelationForm(work.prompt, self._limits, self._settings, entities)
        reads = yield from self._ask(work, form, self._ladder.first(whole, self._schema))
        work.count(reads)
        return merge_facts(reads)

    def _ask(self, work: _Work, form: Form[_Read], first: Call) -> _Asking[list[_Read]]:
        """What a stage's calls said: one call, or what the ladder makes of it.

        The complete items of a list that was cut are kept beside those of the calls that are made for it.
        """
        reads: list[_Read] = []
        calls = [first]
        while asked := self._questions(form, calls):
            completions = yield [
                self._request(work.key, number, call, question)
                for number, (call, question) in enumerate(asked)
            ]
            calls = []
            for (call, _), completion in zip(asked, completions, strict=True):
                work.spend(form.name, completion)
                if completion.finish_reason == "error":
                    calls += self._after_error(work, form, call, completion)
                    continue
                read = form.read(call, completion)
                reads.append(read)
                if not read.complete:
                    step = self._ladder.after_cut(call, completion, types_first=form.types_first)
                    calls += work.climb(step, form.cut)
        return reads

    @staticmethod
    def _questions(form: Form[_Read], calls: Iterable[Call]) -> list[tuple[Call, Question]]:
        """The calls that have something to ask for."""
        return [(call, question) for call in calls if (question := form.question(call)) is not None]

    def _request(self, key: str, number: int, call: Call, question: Question) -> Request:
        return Request(
            f"{key}/{number}" if number else key,
            question.prompt,
            call.budget,
            grammar=question.grammar,
            temperature=self._settings.temperature,
            logprobs=True,
            json_answer=question.json_answer,
        )

    def _after_error(self, work: _Work, form: Form[_Read], call: Call, completion: Completion) -> list[Call]:
        if completion.error.startswith(GRAMMAR_REFUSED):
            step = self._ladder.after_too_large(call, types_first=form.types_first)
            return work.climb(step, Reason.GRAMMAR_TOO_LARGE, completion.error)
        if "exceeds the context" in completion.error:
            step = self._ladder.after_too_long(call)
            return work.climb(step, Reason.PROMPT_TOO_LONG, completion.error)
        if call.attempts < self._settings.retries:
            return [replace(call, attempts=call.attempts + 1)]
        work.lose(Reason.MODEL_ERROR, completion.error)
        return []
