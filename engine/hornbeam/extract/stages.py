"""Two-stage extraction of many chunks, the model's batch kept full.

A chunk's second call is submitted as soon as its first returns: there is no barrier between the stages, and
the first call's key-value blocks are still in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from hornbeam.errors import ModelError
from hornbeam.extract.prompts import ExtractionPrompt
from hornbeam.extract.reading import read_entities, read_relations
from hornbeam.extract.result import ChunkExtraction, FoundEntity, Reason, StageUsage
from hornbeam.extract.room import ItemLimits
from hornbeam.grammar.entities import entity_grammar
from hornbeam.grammar.relations import NamedEntity, relation_grammar
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.protocol import Completion, LanguageModel, Request
from hornbeam.records import ChunkState
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings

#: Part of the key of a stored result: raise it when the form of grammars or the reading of them changes.
GRAMMAR_VERSION = "3"
ENTITIES, RELATIONS = "entities", "relations"


@dataclass(slots=True)
class _Job:
    """One chunk on its way through the two calls."""

    key: str
    text: str
    lexicon: SpanLexicon
    stage: str = ENTITIES
    attempts: int = 0
    entities: tuple[FoundEntity, ...] = ()
    reasons: list[Reason] = field(default_factory=list)
    repeated: int = 0
    usage: dict[str, StageUsage] = field(default_factory=dict)


class Extractor:
    """Extracts chunks with one model, one schema and one prompt."""

    def __init__(self, model: LanguageModel, schema: GraphSchema, settings: ExtractSettings) -> None:
        self._model = model
        self._schema = schema
        self._settings = settings
        self._limits = ItemLimits(schema, model.tokenizer, settings)
        self.prompt = ExtractionPrompt(schema, model, settings.examples)

    def check_room(self, max_chunk_tokens: int) -> None:
        """
        Raises:
            ModelError: prompt, a full chunk and the answers do not fit the model's context.
        """
        # Stage two reads the entities that stage one wrote.
        needed = self.prompt.fixed_tokens + max_chunk_tokens + 2 * self._settings.max_output_tokens
        if needed > self._model.max_model_len:
            raise ModelError(
                f"the prompt ({self.prompt.fixed_tokens} tokens), a chunk ({max_chunk_tokens}) and two "
                f"answers (2 x {self._settings.max_output_tokens}) need {needed} tokens of context, and the "
                f"model has {self._model.max_model_len}; lower chunk.max_tokens or "
                "extract.max_output_tokens, or raise model.max_model_len"
            )

    def run(
        self,
        chunks: Iterable[tuple[str, str]],
        on_progress: Callable[[int], None] = lambda in_flight: None,
    ) -> Iterator[tuple[str, ChunkExtraction]]:
        """Extract `(key, text)` pairs lazily; yields `(key, result)` as chunks finish, in any order.

        At most `settings.window` chunks are on their way at once. A failed call is tried again, then becomes
        a FAILED result: every chunk that goes in comes out.
        """
        jobs: dict[str, _Job] = {}
        source = iter(chunks)
        exhausted = False
        while jobs or not exhausted:
            while not exhausted and len(jobs) < self._settings.window:
                pair = next(source, None)
                if pair is None:
                    exhausted = True
                    break
                job = _Job(pair[0], pair[1], SpanLexicon(pair[1], self._settings.max_name_words))
                if not self._submit(job):
                    yield job.key, ChunkExtraction()
                    continue
                jobs[job.key] = job
            on_progress(len(jobs))
            if not jobs:
                continue
            for completion in self._model.poll():
                job = jobs[completion.request_id]
                result = self._advance(job, completion)
                if result is not None:
                    del jobs[job.key]
                    yield job.key, result

    def _submit(self, job: _Job) -> bool:
        """Submit the job's call; False when there is nothing to ask."""
        limits = self._settings
        if job.stage == ENTITIES:
            grammar = entity_grammar(
                job.lexicon,
                self._schema,
                max_per_clause=limits.entities_per_clause,
                max_entities=self._limits.entities(job.lexicon),
            )
            prompt = self.prompt.entities(job.text)
        else:
            named = [NamedEntity(entity.name, entity.type) for entity in job.entities]
            max_relations, max_attributes = self._limits.facts(named)
            grammar = relation_grammar(
                named,
                job.lexicon,
                self._schema,
                relations_per_head=limits.relations_per_head,
                attributes_per_entity=limits.attributes_per_entity,
                max_relations=max_relations,
                max_attributes=max_attributes,
            )
            prompt = self.prompt.relations(job.text, named)
        if grammar is None:
            return False
        job.attempts += 1
        self._model.submit(
            Request(
                job.key,
                prompt,
                limits.max_output_tokens,
                grammar=grammar,
                temperature=limits.temperature,
                logprobs=True,
            )
        )
        return True

    def _advance(self, job: _Job, completion: Completion) -> ChunkExtraction | None:
        """Take a completion in; None while the job goes on."""
        usage = completion.usage
        spent = StageUsage(calls=1, prompt=usage.prompt, cached=usage.cached, output=usage.output)
        job.usage[job.stage] = job.usage.get(job.stage, StageUsage()) + spent
        if completion.finish_reason == "error":
            if job.attempts <= self._settings.retries and self._submit(job):
                return None
            return self._failed(job, completion.error)
        if job.stage == ENTITIES:
            read = read_entities(completion, job.lexicon, self._schema)
            job.entities, job.repeated = read.entities, read.repeated
            if not read.complete:
                job.reasons.append(Reason.ENTITIES_CUT)
            job.stage, job.attempts = RELATIONS, 0
            if job.entities and self._submit(job):
                return None
            return self._result(job)
        facts = read_relations(completion, job.entities, job.lexicon, self._schema)
        job.repeated += facts.repeated
        if not facts.complete:
            job.reasons.append(Reason.RELATIONS_CUT)
        return self._result(job).model_copy(
            update={"relations": facts.relations, "attributes": facts.attributes}
        )

    def _result(self, job: _Job) -> ChunkExtraction:
        return ChunkExtraction(
            entities=job.entities,
            state=ChunkState.DEGRADED if job.reasons else ChunkState.DONE,
            reasons=tuple(job.reasons),
            repeated=job.repeated,
            usage=job.usage,
        )

    def _failed(self, job: _Job, error: str) -> ChunkExtraction:
        reason = Reason.PROMPT_TOO_LONG if "exceeds the context" in error else Reason.MODEL_ERROR
        result = self._result(job)
        # What stage one found is kept: the chunk lost its relations, not its entities.
        state = ChunkState.DEGRADED if job.entities else ChunkState.FAILED
        return result.model_copy(
            update={"state": state, "reasons": (*result.reasons, reason), "detail": error[:500]}
        )
