"""One-call extraction, guided by sentences whose facts are known.

Known sentences of like wording and frame propose the types that a sentence may state (`known_facts`). The
model is asked for the ends of those facts alone, a line each, out of spans of the sentence whose kind and
likeness fit (`grammar.facts`), with the nearest known sentences as examples. Facts are scored and the weak
ones left out (`fact_scores`). Everything before the examples is the same for all calls.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hornbeam.errors import ModelError
from hornbeam.extract.fact_scores import FactFigures, FactScores, scores_of
from hornbeam.extract.guided_facts import GuidedFact, as_extraction, strongest
from hornbeam.extract.guided_pieces import Passage, fitting_passages, halves_of
from hornbeam.extract.han_names import in_han
from hornbeam.extract.known_facts import Encoder, KnownFacts, KnownSentence, Sentence
from hornbeam.extract.predicates import Predicate, predicates
from hornbeam.extract.reading import rounded
from hornbeam.extract.result import ChunkExtraction, ChunkText, Reason, Rung, StageUsage
from hornbeam.grammar.facts import FactSlot, ReadFact, fact_grammar, halved_slots, line, read_facts
from hornbeam.llm.checked import GRAMMAR_REFUSED
from hornbeam.llm.conversations import Conversation, run_conversations
from hornbeam.llm.protocol import Completion, LanguageModel, Request
from hornbeam.prompts import Prompts, shipped_prompts
from hornbeam.records import ChunkState
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings

#: Part of the key of a stored result: raise it when what is asked or how it is read changes.
GUIDED_VERSION = "guided 3"
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
#: Separators and line breaks of one fact.
_PUNCTUATION = 6
#: Tokens of a yes or no behind it.
_JUDGEMENT = 3


@dataclass(frozen=True, slots=True)
class GuidedQuestion:
    """A sentence with the call that is made for it."""

    start: int  # of the sentence, in the chunk
    sentence: Sentence
    slots: tuple[FactSlot, ...]
    votes: Mapping[str, float]
    request: Request
    text_halvings: int = 0  # after an answer that the context is too small


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
        scores: FactScores | None = None,
    ) -> None:
        self.model = model
        self.known = KnownFacts(known, schema, encoder, settings.max_name_words)
        self._settings = settings
        self._scores = scores or scores_of(model.identity)
        self._predicates = predicates(schema)
        self._type_vectors = _type_vectors(schema, encoder)
        self._prompts = prompts or shipped_prompts()
        self._fixed_tokens: dict[str, int] = {}  # of a prompt without a text, by language
        self.versions: Mapping[str, str] = {
            language: self._version(language) for language in ("", *self._prompts.languages)
        }

    @property
    def threshold(self) -> float:
        """P(right) below which a fact is left out."""
        named = self._settings.guided_threshold
        return self._scores.threshold if named is None else named

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
        """The calls of one chunk, all at once; those that failed again, `retries` times. Two calls take the
        place of one whose text or grammar is too large."""
        cut = fitting_passages(text, partial(self._fits, language=language), self._settings.max_name_words)
        waiting = self._questions(key, cut.passages, language)
        facts: list[GuidedFact] = []
        usage = StageUsage()
        rungs: Counter[Rung] = Counter({Rung.SPLIT: cut.halvings} if cut.halvings else ())
        reasons: dict[Reason, None] = {}
        details: list[str] = []
        lost = len(cut.too_long)
        if cut.too_long:
            reasons[Reason.PROMPT_TOO_LONG] = None
            longest = max(len(passage) for _, passage in cut.too_long)
            details.append(f"a word of {longest} characters does not fit the context")
        dealt_with = len(cut.passages) - len(waiting)  # there was nothing to ask about some
        attempts = 0
        while waiting:
            completions = yield [asked.request for asked in waiting]
            following: list[GuidedQuestion] = []
            failed: list[GuidedQuestion] = []
            for asked, completion in zip(waiting, completions, strict=True):
                usage += StageUsage(
                    calls=1,
                    prompt=completion.usage.prompt,
                    cached=completion.usage.cached,
                    output=completion.usage.output,
                )
                if completion.finish_reason != "error":
                    if completion.finish_reason == "length":
                        reasons[Reason.RELATIONS_CUT] = None
                    facts += self._read(asked, completion)
                    dealt_with += 1
                    continue
                reason = _reason(completion.error)
                if reason is Reason.MODEL_ERROR:
                    failed.append(asked)
                    details.append(completion.error[:500])
                    continue
                step = self._smaller(asked, reason, language)
                if step is None:
                    reasons[reason] = None
                    details.append(completion.error[:500])
                    lost += 1
                else:
                    rungs[step[0]] += 1
                    following += step[1]
                    dealt_with += not step[1]
            attempts += bool(failed)
            if failed and attempts > self._settings.retries:
                reasons[Reason.MODEL_ERROR] = None
                lost += len(failed)
                failed = []
            waiting = following + failed
        result = as_extraction(facts)
        lost_all = bool(lost) and not dealt_with
        state = ChunkState.FAILED if lost_all else ChunkState.DEGRADED if reasons else ChunkState.DONE
        return key, result.model_copy(
            update={
                "state": state,
                "reasons": tuple(reasons),
                "detail": details[-1] if reasons and details else "",
                "rungs": dict(rungs),
                "usage": {FACTS: usage} if usage.calls else {},
            }
        )

    def facts(self, key: str, text: str) -> Conversation[list[GuidedFact]]:
        """Every fact that the model gave for a text, the weak ones too: what scores are fitted on."""
        asked = self.questions(text, key)
        completions = (yield [question.request for question in asked]) if asked else []
        return [
            fact
            for question, completion in zip(asked, completions, strict=True)
            for fact in self._all_facts(question, completion)
        ]

    def questions(self, text: str, key: str = "") -> list[GuidedQuestion]:
        """The calls about a text, as a build makes them."""
        cut = fitting_passages(text, partial(self._fits, language=""), self._settings.max_name_words)
        return self._questions(key, cut.passages, "")

    def _version(self, language: str) -> str:
        digest = hashlib.sha256(self._prompts.text(TASK, language).content.encode())
        for part in (GUIDED_VERSION, self._scores.version, self.known.version):
            digest.update(part.encode())
        return digest.hexdigest()[:16]

    def _questions(self, key: str, passages: Sequence[Passage], language: str) -> list[GuidedQuestion]:
        """The calls about passages of a chunk; some offer nothing to ask about."""
        sentences = self.known.read([passage for _, passage in passages])
        asked = []
        for number, ((start, _), sentence) in enumerate(zip(passages, sentences, strict=True)):
            votes = self.known.proposals(sentence)
            slots = self._slots(sentence, votes)
            if slots:
                request = Request(
                    f"{key}/{number}" if number else key,
                    self._prompt(sentence, language),
                    self._settings.max_output_tokens,
                    grammar=fact_grammar(slots, judged=self._scores.judged),
                    temperature=self._settings.temperature,
                    logprobs=True,
                )
                asked.append(GuidedQuestion(start, sentence, tuple(slots), votes, request))
        return asked

    def _smaller(
        self, asked: GuidedQuestion, reason: Reason, language: str
    ) -> tuple[Rung, list[GuidedQuestion]] | None:
        """Calls that take the place of one whose grammar or prompt is too large; None: there are none."""
        if reason is Reason.GRAMMAR_TOO_LARGE:
            halves = [
                _of_slots(asked, *half, judged=self._scores.judged)
                for half in enumerate(halved_slots(asked.slots))
            ]
            return (Rung.GRAMMAR_SPLIT, halves) if halves else None
        passages: list[Passage] = []
        if asked.text_halvings < self._settings.retry_splits:
            passages = halves_of((asked.start, asked.sentence.text), self._settings.max_name_words)
        if not passages:
            return None
        calls = [
            replace(
                call,
                text_halvings=asked.text_halvings + 1,
                request=replace(call.request, request_id=f"{asked.request.request_id}-{number}"),
            )
            for number, call in enumerate(self._questions("", passages, language))
        ]
        return Rung.SPLIT, calls

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
            room -= self.model.tokenizer.count(name) + 2 * self.model.tokenizer.count(longest)
            room -= _PUNCTUATION + (_JUDGEMENT if self._scores.judged else 0)
            if room < 0 and slots:
                break
            slots.append(slot)
        return slots

    def _slot(self, sentence: Sentence, predicate: Predicate) -> FactSlot | None:
        kind_of = {span.text: span.kind for span in sentence.spans if self._fits_an_answer(span.text)}
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
        if in_han(sentence.text):
            margin = math.inf  # chosen by their edges; an encoder of English texts says little of them
        least = max(likeness.values(), default=0.0) - margin
        ranked = sorted(spans, key=lambda span: -likeness[span])[:_ENDS_AT_ONCE]
        return [span for span in ranked if likeness[span] >= least]

    def _prompt(self, sentence: Sentence, language: str) -> str:
        """Instructions, the nearest examples that fit (the nearest last), the sentence."""
        prompt = self._prompts.text(TASK, language)
        room = self.model.max_model_len - self._settings.max_output_tokens
        room -= self._count(sentence.text, language)
        shown: list[str] = []
        stated = True if self._scores.judged else None
        for index in self.known.nearest(sentence):
            if len(shown) == self._settings.examples:
                break
            text, facts = self.known.example(index)
            lines = "\n".join(line(name, head, tail, stated) for head, name, tail in facts)
            example = self.model.neutralise(f"{prompt.ask(text=text)}\n{_FACTS_HEAD}{lines}")
            room -= self.model.tokenizer.count(example) + 2
            if facts and room >= 0:
                shown.insert(0, example)
        return self._filled(sentence.text, language, shown)

    def _filled(self, text: str, language: str, examples: Sequence[str]) -> str:
        prompt = self._prompts.text(TASK, language)
        system = prompt.instruct(examples="\n\n".join(examples))
        return self.model.chat_prompt(system, prompt.ask(text=self.model.neutralise(text))) + _FACTS_HEAD

    def _fits(self, passage: str, language: str) -> bool:
        """Whether a passage leaves room for a whole answer, without examples."""
        room = self.model.max_model_len - self._settings.max_output_tokens
        asked_in = self._prompts.language_of(language)
        if asked_in not in self._fixed_tokens:
            self._fixed_tokens[asked_in] = self._count("", asked_in)
        # Tokens are a byte long at least, save where a tokenizer writes a character out: most need no count.
        if self._fixed_tokens[asked_in] + 2 * len(passage.encode(errors="replace")) <= room:
            return True
        return self._count(passage, language) <= room

    def _fits_an_answer(self, span: str) -> bool:
        """A fact has two ends, so none takes more than a third of an answer."""
        most = self._settings.max_output_tokens // 3
        return 2 * len(span.encode(errors="replace")) <= most or self.model.tokenizer.count(span) <= most

    def _count(self, text: str, language: str) -> int:
        return self.model.tokenizer.count(self._filled(text, language, ()))

    def _all_facts(self, asked: GuidedQuestion, completion: Completion) -> list[GuidedFact]:
        sentence = asked.sentence
        place_of: dict[str, tuple[int, int]] = {}
        for span in sentence.spans:
            place_of.setdefault(span.text, (asked.start + span.start, asked.start + span.end))
        read = read_facts(completion, asked.slots, judged=self._scores.judged)
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
                    rounded(self._scores.probability(own, figures)),
                )
            )
        return facts

    def _figures(self, asked: GuidedQuestion, fact: ReadFact) -> FactFigures:
        name, ends = asked.slots[fact.slot].relation, asked.sentence.ends
        return FactFigures(
            fact.tail_logprob,
            fact.head_logprob,
            asked.votes[name],
            self.known.likeness_to_ends(name, 0, ends[fact.head]),
            self.known.likeness_to_ends(name, 1, ends[fact.tail]),
            fact.slot,
            fact.stated,
        )

    def _likest_type(self, vector: NDArray[np.float32], types: Sequence[str]) -> str:
        """Of the types that a domain or range allows, the one whose name is likest; "" of none."""
        if len(types) < 2:
            return types[0] if types else ""
        return max(types, key=lambda name: float(self._type_vectors[name] @ vector))

    def _read(self, asked: GuidedQuestion, completion: Completion) -> list[GuidedFact]:
        """The facts that are kept: every tail once, those above the threshold, the best in any case."""
        ranked = sorted(self._all_facts(asked, completion), key=lambda fact: -fact.confidence)
        return strongest(ranked, self.threshold)


def _of_slots(
    asked: GuidedQuestion, number: int, slots: tuple[FactSlot, ...], *, judged: bool
) -> GuidedQuestion:
    """The call for some of its types and ends."""
    request_id = f"{asked.request.request_id}.{number}"
    request = replace(asked.request, request_id=request_id, grammar=fact_grammar(slots, judged=judged))
    return replace(asked, slots=slots, request=request)


def _reason(error: str) -> Reason:
    if error.startswith(GRAMMAR_REFUSED):
        return Reason.GRAMMAR_TOO_LARGE
    return Reason.PROMPT_TOO_LONG if "exceeds the context" in error else Reason.MODEL_ERROR


def _is_value(kind: str) -> bool:
    return kind in ("number", "date", "year")


def _type_vectors(schema: GraphSchema, encoder: Encoder) -> dict[str, NDArray[np.float32]]:
    names = [item.name for item in schema.entity_types]
    shown = [f"{item.name}: {item.description}".removesuffix(": ") for item in schema.entity_types]
    return dict(zip(names, encoder.encode(shown), strict=True))
