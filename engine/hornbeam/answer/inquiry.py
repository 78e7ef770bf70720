"""One question under way: what has been found for it, and its calls to the model."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal

import regex

from hornbeam.answer.events import EvidenceFound
from hornbeam.answer.metering import Meter
from hornbeam.errors import ModelError
from hornbeam.llm.protocol import Completion, LanguageModel, Request
from hornbeam.prompts import DEFAULT_LANGUAGE, Prompts, load_prompts
from hornbeam.retrieve.evidence import Evidence, pack_evidence
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.search import search
from hornbeam.settings import AnswerSettings, PromptSettings, RetrieveSettings

_HAN = regex.compile(r"\p{Han}")
#: A passage of the evidence, a few words, or whole sentences.
Style = Literal["extract", "short", "sentences"]


class Inquiry:
    """
    Attributes:
        question: as it is answered: standing alone.
        evidence: all that was found; a piece's label is its place, from 1.
        signals: by which it was decided last whether the evidence answers; empty before.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        model: LanguageModel,
        question: str,
        *,
        retrieve: RetrieveSettings,
        answer: AnswerSettings,
        style: Style,
    ) -> None:
        self.kb = kb
        self.model = model
        self.question = question
        self.retrieve = retrieve
        self.answer = answer
        self.style: Style = style
        self.meter = Meter()
        self._prompts = question_prompts(answer.prompts)
        self.evidence: list[Evidence] = []
        self.signals: dict[str, float] = {}
        self._numbers = itertools.count(1)

    def find(
        self,
        text: str,
        routes: frozenset[str],
        *,
        tokens: int,
        types: frozenset[str] = frozenset(),
        sub_question: int | None = None,
        step: int | None = None,
    ) -> tuple[list[Evidence], EvidenceFound]:
        """Retrieve and pack.

        Args:
            routes: of retrieval, that run.
            tokens: of the texts together.
            types: of the schema, that are looked for: a hint.

        Returns:
            the pieces for `text`, best first, with their labels in this inquiry; and the event, which holds
            those that are new.
        """
        result = search(self.kb, text, self.retrieve, routes=routes, types=types)
        count = self.model.tokenizer.count
        packed = pack_evidence(self.kb, result, token_budget=tokens, count_tokens=count)
        pieces, new = self.admit(packed)
        self.meter.retrieved(result.milliseconds)
        return pieces, EvidenceFound(tuple(new), dict(result.milliseconds), sub_question, step)

    def admit(self, found: Sequence[Evidence]) -> tuple[list[Evidence], list[Evidence]]:
        """Label pieces: the known ones as before, each once; and those that are new."""
        pieces: dict[int, Evidence] = {}
        new: list[Evidence] = []
        for piece in found:
            known = next((one for one in self.evidence if _covers(one, piece)), None)
            if known is None:
                known = replace(piece, label=len(self.evidence) + 1)
                self.evidence.append(known)
                new.append(known)
            pieces.setdefault(known.label, known)
        return list(pieces.values()), new

    @property
    def own_words(self) -> bool:
        """Whether the model words plans, queries and rewritten questions itself."""
        words = self.answer.words
        return words == "any" or (words == "auto" and self.style != "extract")

    def chat(self, task: str, **values: str) -> str:
        """A task's prompt in the question's language; `values` are made harmless."""
        safe = {name: self.model.neutralise(value) for name, value in values.items()}
        prompt = self._prompts.text(task, language_of(self.question))
        return self.model.chat_prompt(prompt.instruct(), prompt.ask(**safe))

    def request(
        self, stage: str, prompt: str, max_tokens: int, *, grammar: str, logprobs: bool = False
    ) -> Request:
        name = f"{stage}-{next(self._numbers)}"
        return Request(name, prompt, max_tokens, grammar=grammar, logprobs=logprobs)

    def complete(self, stage: str, requests: Sequence[Request]) -> list[Completion]:
        """Their completions in order; all are with the model at once.

        Raises:
            ModelError: one failed.
        """
        done: dict[str, Completion] = {}
        with self.meter.timed(stage):
            for request in requests:
                self.model.submit(request)
            while len(done) < len(requests):
                finished = self.model.poll()
                if not finished:
                    raise ModelError(f"the model lost a request ({stage})")
                done |= {completion.request_id: completion for completion in finished}
        for completion in done.values():
            self.check(stage, completion)
            self.meter.called(stage, completion.usage)
        return [done[request.request_id] for request in requests]

    @staticmethod
    def check(stage: str, completion: Completion) -> None:
        if completion.finish_reason == "error":
            raise ModelError(f"the model failed ({stage}): {completion.error}")


@cache
def question_prompts(directory: str | None) -> Prompts:
    """Those of every language: a question says itself in which it is asked.

    Raises:
        UsageError: a file of the user's folder cannot be used.
    """
    return load_prompts(PromptSettings(directory=directory, language="document"))


def language_of(question: str) -> str:
    """The language that a question is asked in, as far as there are prompts in it: "zh" or "en"."""
    return "zh" if _HAN.search(question) else DEFAULT_LANGUAGE


def numbered(evidence: Iterable[Evidence]) -> str:
    """One line a piece: "[3] its text"."""
    return "\n".join(f"[{piece.label}] {' '.join(piece.text.split())}" for piece in evidence)


def _covers(known: Evidence, piece: Evidence) -> bool:
    """The same piece, or the known one holds its very text."""
    if known.kind != piece.kind:
        return False
    if piece.kind == "chunk" and known.chunk_id == piece.chunk_id:
        assert known.start is not None
        assert known.end is not None
        assert piece.start is not None
        assert piece.end is not None
        return known.start <= piece.start and piece.end <= known.end
    return known.text == piece.text and known.chunk_id == piece.chunk_id
