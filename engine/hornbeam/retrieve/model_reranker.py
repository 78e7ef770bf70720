"""Reranking by the language model: yes or no about every text, by grammar, P(yes) the score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hornbeam.errors import ModelError
from hornbeam.extract.verification import GRAMMAR, probability_of_yes
from hornbeam.llm.batch import run_requests
from hornbeam.llm.protocol import LanguageModel, Request
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import RetrieveSettings

_INSTRUCTIONS = """\
Decide whether the text helps to answer the question. Reply yes or no.

Example question: Who founded the company that built the Selmer bridge?
Example text: The Selmer bridge was built by Ostrava Steel in 1931.
Example reply: yes
Example question: Who founded the company that built the Selmer bridge?
Example text: The Selmer prize is given to young poets.
Example reply: no"""
#: "yes" and "no" are a token or two, and one ends the answer.
_ANSWER_TOKENS = 4
#: Tokens left for instructions, question and chat format when a text is cut to what the model reads.
_FRAME_TOKENS = 400


class ModelReranker:
    """Its calls are made together; a small model tells little apart, and the order says so."""

    name = "model"

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Raises ModelError when a call fails."""
        scores = [0.0] * len(texts)
        requests = (self._request(place, question, text) for place, text in enumerate(texts))
        for completion in run_requests(self._model, requests, window=max(1, len(texts))):
            yes = probability_of_yes(completion)
            if yes is None:
                raise ModelError(
                    f"retrieve.rerank=model: the model could not decide about a text: "
                    f"{completion.error or completion.text[:40]!r}"
                )
            scores[int(completion.request_id.rpartition("/")[2])] = yes
        return scores

    def _request(self, place: int, question: str, text: str) -> Request:
        tokens = self._model.tokenizer.offsets(text)
        room = max(1, self._model.max_model_len - _FRAME_TOKENS)
        shown = text if len(tokens) <= room else text[: tokens[room - 1][1]]
        asked, told = (self._model.neutralise(" ".join(part.split())) for part in (question, shown))
        prompt = self._model.chat_prompt(_INSTRUCTIONS, f"Question: {asked}\nText: {told}")
        return Request(f"rerank/{place}", prompt, _ANSWER_TOKENS, grammar=GRAMMAR, logprobs=True)


def reranked_by_model(kb: KnowledgeBase, model: LanguageModel, settings: RetrieveSettings) -> KnowledgeBase:
    """`kb` with the model as its reranker where the settings ask for it, else as it is."""
    return replace(kb, reranker=ModelReranker(model)) if settings.rerank == "model" else kb
