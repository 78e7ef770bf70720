"""The model's answers to questions about the whole graph, each kept by what it depends on and asked once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from hornbeam.llm.batch import run_batches
from hornbeam.llm.protocol import Completion, LanguageModel, Request, Usage
from hornbeam.prompts import Prompts
from hornbeam.records import content_id
from hornbeam.stopping import StopRequest
from hornbeam.store.ledger import Ledger

_WINDOW = 64
#: Raise when what is asked or how it is read changes.
_VERSION = "1"


@dataclass(frozen=True, slots=True)
class Question:
    """Args: values: of the placeholders of the task's question; language: what it is about is written in."""

    values: Mapping[str, str]
    language: str
    grammar: str
    max_tokens: int


class Answers:
    """Asks one model, in batches; what the ledger holds is not asked again.

    Args:
        fingerprint: of the model whose answers these are.
        model: None: nothing is asked, what is not kept has no answer.
        run: the ledger's run that the calls are counted for.

    Attributes:
        counts: questions by task and what became of them: "asked", "reused", "failed".
    """

    def __init__(
        self,
        ledger: Ledger,
        fingerprint: str,
        prompts: Prompts,
        model: LanguageModel | None = None,
        run: int = 0,
        stop: StopRequest | None = None,
    ) -> None:
        self._ledger = ledger
        self._fingerprint = fingerprint
        self._prompts = prompts
        self._model = model
        self._run = run
        self._stop = stop or StopRequest()
        self.counts: Counter[str] = Counter()

    def ask(
        self, task: str, questions: Sequence[Question], read: Callable[[Completion], str | None]
    ) -> list[str | None]:
        """
        Args:
            read: what a completion says; None: nothing, and it is not kept.

        Returns:
            an answer for each question; None where the model failed.
        """
        keys = [self._key(task, question) for question in questions]
        said: dict[str, str] = {
            key: json.loads(payload) for key, payload in self._ledger.get_many("summary", keys).items()
        }
        self.counts[f"{task} reused"] += sum(key in said for key in keys)
        missing = {key: one for key, one in zip(keys, questions, strict=True) if key not in said}
        if self._model is not None and missing:
            self.counts[f"{task} asked"] += len(missing)
            said |= self._asked(self._model, task, missing, read)
        self.counts[f"{task} failed"] += sum(key not in said for key in missing)
        return [said.get(key) for key in keys]

    def _asked(
        self,
        model: LanguageModel,
        task: str,
        questions: Mapping[str, Question],
        read: Callable[[Completion], str | None],
    ) -> dict[str, str]:
        said: dict[str, str] = {}
        requests = (self._request(model, task, key, one) for key, one in questions.items())
        for batch in run_batches(model, requests, _WINDOW):
            with self._ledger.transaction():
                for completion in batch:
                    answer = None if completion.finish_reason == "error" else read(completion)
                    if answer is not None:
                        said[completion.request_id] = answer
                        payload = json.dumps(answer, ensure_ascii=False).encode()
                        self._ledger.put("summary", completion.request_id, payload)
                usage = sum((completion.usage for completion in batch), Usage())
                self._ledger.runs.add_usage(self._run, task, calls=len(batch), **asdict(usage))
            self._ledger.seal()
            self._stop.check()
        return said

    def _request(self, model: LanguageModel, task: str, key: str, question: Question) -> Request:
        text = self._prompts.text(task, question.language)
        values = {name: model.neutralise(value) for name, value in question.values.items()}
        prompt = model.chat_prompt(text.instruct(), text.ask(**values))
        return Request(key, prompt, question.max_tokens, grammar=question.grammar, logprobs=True)

    def _key(self, task: str, question: Question) -> str:
        text = self._prompts.text(task, question.language)
        values = [part for pair in sorted(question.values.items()) for part in pair]
        limits = (question.grammar, str(question.max_tokens))
        return content_id("q", _VERSION, self._fingerprint, text.content, *limits, *values)
