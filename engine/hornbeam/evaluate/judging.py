"""Is an answer right? A model's yes or no, by grammar: optional, and never counted where it failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hornbeam.extract.verification import GRAMMAR, probability_of_yes
from hornbeam.llm.batch import run_requests
from hornbeam.llm.protocol import LanguageModel, Request

_INSTRUCTIONS = """\
Decide whether the answer says the same as the reference answer to the question. Reply yes or no.

Example question: Who wrote The Glass Ferry?
Example reference: Aldo Brenn
Example answer: The Glass Ferry was written by Aldo Brenn in 1931.
Example reply: yes
Example question: Who wrote The Glass Ferry?
Example reference: Aldo Brenn
Example answer: The Glass Ferry is a novel about a river.
Example reply: no"""
_ANSWER_TOKENS = 4
_WINDOW = 32


@dataclass(frozen=True, slots=True)
class ToJudge:
    question: str
    golds: tuple[str, ...]
    answer: str


def judged(model: LanguageModel, answers: Sequence[ToJudge]) -> list[float | None]:
    """P(right) of each; None where the judge gave no answer."""
    verdicts: list[float | None] = [None] * len(answers)
    requests = (_request(model, place, answer) for place, answer in enumerate(answers))
    for completion in run_requests(model, requests, _WINDOW):
        verdicts[int(completion.request_id.rpartition("/")[2])] = probability_of_yes(completion)
    return verdicts


def _request(model: LanguageModel, place: int, one: ToJudge) -> Request:
    said = {"Question": one.question, "Reference": " or ".join(one.golds), "Answer": one.answer}
    lines = "\n".join(f"{name}: {model.neutralise(' '.join(text.split()))}" for name, text in said.items())
    prompt = model.chat_prompt(_INSTRUCTIONS, lines)
    return Request(f"judge/{place}", prompt, _ANSWER_TOKENS, grammar=GRAMMAR, logprobs=True)
