"""One-call extraction, guided by sentences whose facts are known.

Known sentences of like wording and frame propose the types that a sentence may state (`known_facts`). The
model is asked for the ends of those facts alone, a line each, out of spans of the sentence whose kind and
likeness fit (`grammar.facts`), with the nearest known sentences as examples. Facts are scored and the weak
ones left out (`fact_scores`). Everything before the examples is the same for all calls.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hornbeam.corpus.boundaries import Boundary, segment
from hornbeam.errors import ModelError
from hornbeam.extract.fact_scores import SCORES_VERSION, FactFigures, probability
from hornbeam.extract.guided_facts import GuidedFact, as_extraction, strongest
from hornbeam.extract.known_facts import Encoder, KnownFacts, KnownSentence, Sentence
from hornbeam.extract.predicates import Predicate, predicates
from hornbeam.extract.reading import rounded
from hornbeam.extract.result import ChunkExtraction, ChunkText, Reason, Rung, StageUsage
from hornbeam.grammar.facts import FactSlot, ReadFact, fact_grammar, line, read_facts
from hornbeam.llm.checked import GRAMMAR_REFUSED
from hornbeam.llm.conversations import Conversation, run_conversations
from hornbeam.llm.protocol import Completion, LanguageModel, Request
from hornbeam.prompts import Prompts, shipped_prompts
from hornbeam.records import ChunkState
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings

#: Part of the key of a stored result: raise it when what is asked or how it is read changes.
GUIDED_VERSION = "guided 2"
FACTS = "facts"
TASK = "guided"

#: A type is asked for from this many votes on, and the likeliest one in any case.
_ASKED_FROM = 0.25
_TYPES_AT_ONCE = 9
#: Spans less like a type's known heads (tails) than the likest span by more than this are no ends of it.
_HEAD_MARGIN, _TAIL_MARGIN = 0.15, 0.25
#: Spans that may be a head, that may be a tail, and values, at most: a grammar has a literal for every pair.
_ENDS_AT_ONCE = 24
#: Begins every answer, in examples, too.
_FACTS_HEAD = "Facts:\n"
#: Sentences of a paragraph that together are no longer are asked about at once.
_CHARACTERS_AT_ONCE = 400
#: Separators and line breaks of one fact.
_PUNCTUATION = 6


@dataclass(frozen=True, slots=True)
class _Asked:
    """A sentence with the call that is made for it."""

    start: int  # of the sentence, in the chunk
    sentence: Sentence
    slots: tuple[FactSlot, ...]
    votes: Mapping[str, float]
    request: Request


class GuidedExtractor:
    """Extracts chunks a few sentences at a time with one model, one schema and a store of known facts."""

    def __init__(
        self,
        model: LanguageModel,
        schema: GraphSchema,
        settings: ExtractSettings,
        known: Sequence[KnownSentence],
        encoder: Encoder,
        prompts: Prompts | None = None,
    ) -> None:
        self.model = model
        self.known = KnownFacts(known, schema, encoder, settings.max_name_words)
        self._settings = settings
        self._predicates = predicates(schema)
        self._type_vectors = _type_vectors(schema, encoder)
        self._prompts = prompts or shipped_prompts()
        self.versions: Mapping[str, str] = {
            language: self._version(language) for language in ("", *self._prompts.languages)
        }

    def check_room(self, max_chunk_tokens: int) -> None:
        """
        Raises:
            ModelError: instructions, a chunk of one sentence and the answer do not fit the model's context.
        """
        needed = self._count("", "") + max_chunk_tokens + self._settings.max_output_tokens
        if needed > self.model.max_model_len:
            raise ModelError(
                f"the prompt, a chunk ({max_chunk_tokens} tokens) and an answer "
                f"({self._settings.max_output_tokens}) need {needed} tokens of context, and the model has "
                f"{self.model.max_model_len}; lower chunk.max_tokens or raise model.max_model_len"
            )

    def run(
        self,
        chunks: Iterable[ChunkText],
        on_progress: Callable[[int], None] = lambda in_flight: None,
    ) -> Iterator[tuple[str, ChunkExtraction]]:
        """As `Extractor.run`: every chunk that goes in comes out, in any order."""
        source = iter(chunks)

        def following() -> Conversation[tuple[str, ChunkExtraction]] | None:
            chunk = next(source, None)
            return None if chunk is None else self.extract(*chunk)

        yield from run_conversations(self.model, following, self._settings.window, on_progress)

    def extract(self, key: str, text: str, language: str = "") -> Conversation[tuple[str, ChunkExtraction]]:
        """The calls of one chunk, all at once; those that failed again, `retries` times."""
        waiting = self._questions(key, text, language)
        facts: list[GuidedFact] = []
        usage = StageUsage()
        rungs: Counter[Rung] = Counter()
        reasons: dict[Reason, None] = {}
        detail = ""
        attempts = 0
        lost: list[_Asked] = []
        while waiting:
            completions = yield [asked.request for asked in waiting]
            split: list[_Asked] = []
            failed: list[_Asked] = []
            for asked, completion in zip(waiting, completions, strict=True):
                usage += StageUsage(
                    calls=1,
                    prompt=completion.usage.prompt,
                    cached=completion.usage.cached,
                    output=completion.usage.output,
                )
                if completion.error.startswith(GRAMMAR_REFUSED) and len(asked.slots) > 1:
                    split += _halved(asked)
                    rungs[Rung.GRAMMAR_SPLIT] += 1
                    continue
                if completion.finish_reason == "error":
                    failed.append(asked)
                    detail = completion.error[:500]
                    continue
                if completion.finish_reason == "length":
                    reasons[Reason.RELATIONS_CUT] = None
                facts += self._read(asked, completion)
            attempts += bool(failed)
            if failed and attempts > self._settings.retries:
                reasons[_reason(detail)] = None
                lost += failed
                failed = []
            waiting = split + failed
        result = as_extraction(facts)
        lost_all = bool(lost) and not facts
        state = ChunkState.FAILED if lost_all else ChunkState.DEGRADED if reasons else ChunkState.DONE
        return key, result.model_copy(
            update={
                "state": state,
                "reasons": tuple(reasons),
                "detail": detail if reasons else "",
                "rungs": dict(rungs),
                "usage": {FACTS: usage} if usage.calls else {},
            }
        )

    def facts(self, key: str, text: str) -> Conversation[list[GuidedFact]]:
        """Every fact that the model gave for a text, the weak ones too: what scores are fitted on."""
        asked = self._questions(key, text, "")
        completions = (yield [question.request for question in asked]) if asked else []
        return [
            fact
            for question, completion in zip(asked, completions, strict=True)
            for fact in self._all_facts(question, completion)
        ]

    def _version(self, language: str) -> str:
        digest = hashlib.sha256(self._prompts.text(TASK, language).content.encode())
        for part in (GUIDED_VERSION, SCORES_VERSION, self.known.version):
            digest.update(part.encode())
        return digest.hexdigest()[:16]

    def _questions(self, key: str, text: str, language: str) -> list[_Asked]:
        places = _questions_of(text)
        sentences = self.known.read([sentence for _, sentence in places])
        asked = []
        for number, ((start, _), sentence) in enumerate(zip(places, sentences, strict=True)):
            votes = self.known.proposals(sentence)
            slots = self._slots(sentence, votes)
            if slots:
                request = Request(
                    f"{key}/{number}" if number else key,
                    self._prompt(sentence, language),
                    self._settings.max_output_tokens,
                    grammar=fact_grammar(slots),
                    temperature=self._settings.temperature,
                    logprobs=True,
                )
                asked.append(_Asked(start, sentence, tuple(slots), votes, request))
        return asked

    def _slots(self, sentence: Sentence, votes: Mapping[str, float]) -> list[FactSlot]:
        """The types to ask for with their possible ends, the likeliest first, as many as the answer has room
        for."""
        ranked = sorted(votes, key=lambda name: (-votes[name], name))
        wanted = [name for name in ranked if votes[name] >= _ASKED_FROM] or ranked[:1]
        room = self._settings.max_output_tokens
        slots: list[FactSlot] = []
        for name in wanted[:_TYPES_AT_ONCE]:
            slot = self._slot(sentence, self._predicates[name])
            if slot is None:
                continue
            longest = max((*slot.heads_of, *(h for hs in slot.heads_of.values() for h in hs)), key=len)
            room -= self.model.tokenizer.count(name) + 2 * self.model.tokenizer.count(longest) + _PUNCTUATION
            if room < 0 and slots:
                break
            slots.append(slot)
        return slots

    def _slot(self, sentence: Sentence, predicate: Predicate) -> FactSlot | None:
        kind_of = {span.text: span.kind for span in sentence.spans}
        heads = [text for text, kind in kind_of.items() if kind == "name"] or list(kind_of)
        heads = self._likest(sentence, heads, predicate.name, 0, _HEAD_MARGIN)
        values = [t for t, kind in kind_of.items() if kind in predicate.tail_kinds and _is_value(kind)]
        names = [t for t, kind in kind_of.items() if kind in predicate.tail_kinds and not _is_value(kind)]
        tails = [*values[:_ENDS_AT_ONCE], *self._likest(sentence, names, predicate.name, 1, _TAIL_MARGIN)]
        order = {text: number for number, text in enumerate(kind_of)}
        heads_of = {
            tail: owners
            for tail in sorted(tails, key=order.__getitem__)
            if (owners := tuple(head for head in heads if head != tail and head not in tail))
        }
        return FactSlot(predicate.name, heads_of) if heads_of else None

    def _likest(
        self, sentence: Sentence, spans: Sequence[str], predicate: str, side: int, margin: float
    ) -> list[str]:
        likeness = {span: self.known.likeness_to_ends(predicate, side, sentence.ends[span]) for span in spans}
        least = max(likeness.values(), default=0.0) - margin
        ranked = sorted(spans, key=lambda span: -likeness[span])[:_ENDS_AT_ONCE]
        return [span for span in ranked if likeness[span] >= least]

    def _prompt(self, sentence: Sentence, language: str) -> str:
        """Instructions, the nearest examples that fit (the nearest last), the sentence."""
        prompt = self._prompts.text(TASK, language)
        room = self.model.max_model_len - self._settings.max_output_tokens
        room -= self._count(sentence.text, language)
        shown: list[str] = []
        for index in self.known.nearest(sentence):
            if len(shown) == self._settings.examples:
                break
            text, facts = self.known.example(index)
            lines = "\n".join(line(name, head, tail) for head, name, tail in facts)
            example = self.model.neutralise(f"{prompt.ask(text=text)}\n{_FACTS_HEAD}{lines}")
            room -= self.model.tokenizer.count(example) + 2
            if facts and room >= 0:
                shown.insert(0, example)
        return self._filled(sentence.text, language, shown)

    def _filled(self, text: str, language: str, examples: Sequence[str]) -> str:
        prompt = self._prompts.text(TASK, language)
        system = prompt.instruct(examples="\n\n".join(examples))
        return self.model.chat_prompt(system, prompt.ask(text=self.model.neutralise(text))) + _FACTS_HEAD

    def _count(self, text: str, language: str) -> int:
        return self.model.tokenizer.count(self._filled(text, language, ()))

    def _all_facts(self, asked: _Asked, completion: Completion) -> list[GuidedFact]:
        sentence = asked.sentence
        place_of: dict[str, tuple[int, int]] = {}
        for span in sentence.spans:
            place_of.setdefault(span.text, (asked.start + span.start, asked.start + span.end))
        read = read_facts(completion, asked.slots)
        figures = [self._figures(asked, fact) for fact in read]
        facts = []
        for fact, own in zip(read, figures, strict=True):
            predicate = self._predicates[asked.slots[fact.slot].relation]
            facts.append(
                GuidedFact(
                    fact.head,
                    self._likest_type(sentence.ends[fact.head], predicate.head_types),
                    place_of[fact.head],
                    predicate.name,
                    fact.tail,
                    self._likest_type(sentence.ends[fact.tail], predicate.tail_types),
                    place_of[fact.tail],
                    own,
                    rounded(probability(own, figures)),
                )
            )
        return facts

    def _figures(self, asked: _Asked, fact: ReadFact) -> FactFigures:
        name, ends = asked.slots[fact.slot].relation, asked.sentence.ends
        return FactFigures(
            fact.tail_logprob,
            fact.head_logprob,
            asked.votes[name],
            self.known.likeness_to_ends(name, 0, ends[fact.head]),
            self.known.likeness_to_ends(name, 1, ends[fact.tail]),
            fact.slot,
        )

    def _likest_type(self, vector: NDArray[np.float32], types: Sequence[str]) -> str:
        """Of the types that a domain or range allows, the one whose name is likest; "" of none."""
        if len(types) < 2:
            return types[0] if types else ""
        return max(types, key=lambda name: float(self._type_vectors[name] @ vector))

    def _read(self, asked: _Asked, completion: Completion) -> list[GuidedFact]:
        """The facts that are kept: every tail once, those above the threshold, the best in any case."""
        ranked = sorted(self._all_facts(asked, completion), key=lambda fact: -fact.confidence)
        return strongest(ranked, self._settings.guided_threshold)


def _halved(asked: _Asked) -> list[_Asked]:
    """Two calls for the halves of its types, in place of one whose grammar was too large."""
    middle = len(asked.slots) // 2
    parts = (asked.slots[:middle], asked.slots[middle:])
    return [
        replace(
            asked,
            slots=slots,
            request=replace(
                asked.request,
                request_id=f"{asked.request.request_id}.{number}",
                grammar=fact_grammar(slots),
            ),
        )
        for number, slots in enumerate(parts)
    ]


def _reason(detail: str) -> Reason:
    if detail.startswith(GRAMMAR_REFUSED):
        return Reason.GRAMMAR_TOO_LARGE
    return Reason.PROMPT_TOO_LONG if "exceeds the context" in detail else Reason.MODEL_ERROR


def _questions_of(text: str) -> list[tuple[int, str]]:
    """Offsets and texts of what is asked about at once: sentences, short ones of a paragraph together, since
    the second often says "it" of what the first names."""
    places: list[tuple[int, int]] = []
    for unit in segment(text):
        if places and unit.opens is Boundary.SENTENCE and unit.end - places[-1][0] <= _CHARACTERS_AT_ONCE:
            places[-1] = (places[-1][0], unit.end)
        else:
            places.append((unit.start, unit.end))
    found = []
    for start, end in places:
        written = text[start:end]
        if stripped := written.strip():
            found.append((start + len(written) - len(written.lstrip()), stripped))
    return found


def _is_value(kind: str) -> bool:
    return kind in ("number", "date", "year")


def _type_vectors(schema: GraphSchema, encoder: Encoder) -> dict[str, NDArray[np.float32]]:
    names = [item.name for item in schema.entity_types]
    shown = [f"{item.name}: {item.description}".removesuffix(": ") for item in schema.entity_types]
    return dict(zip(names, encoder.encode(shown), strict=True))
