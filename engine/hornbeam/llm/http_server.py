"""A model behind one OpenAI-compatible completions endpoint, such as `vllm serve`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx

from hornbeam.errors import ModelError
from hornbeam.llm.adapter import read_adapter
from hornbeam.llm.enforcement import Enforcement, probe
from hornbeam.llm.json_answers import in_grammars_form
from hornbeam.llm.protocol import Completion, ModelIdentity, Request, TokenScore, Usage
from hornbeam.llm.tokenizer import DirectoryTokenizer
from hornbeam.settings import ModelSettings

#: What a request to a server that is down, or that is no model server, may raise.
_UNREADABLE = (httpx.HTTPError, ValueError, LookupError, TypeError, AttributeError)
#: Answers that are about the request: every server would give them.
_OF_THE_REQUEST = (400, 413, 422)
_OPENING_S = 10.0


class ServerFault(Exception):
    """The server is gone, overloaded or answers nonsense; another one may do better."""


class HttpModel:
    """One server. Start vLLM's with `--enable-prefix-caching --enable-prompt-tokens-details` and a
    structured-outputs backend of xgrammar. One that knows no grammars is given a JSON schema where there is
    one; whoever reads the answers drops what the grammar would have ruled out.

    The chat format and the chunk sizes come from a tokenizer directory (`model.tokenizer`); without one, the
    server's own model path where this machine has it.
    """

    def __init__(self, url: str, settings: ModelSettings) -> None:
        self._settings = settings
        self._base = url.rstrip("/").removesuffix("/v1") + "/v1"
        headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        limits = httpx.Limits(max_connections=settings.max_num_seqs * 2)
        self._client = httpx.Client(
            timeout=settings.request_timeout_s,
            headers=headers,
            limits=limits,
            trust_env=_is_remote(url),
            verify=url.startswith("https:"),  # certificates are read in a tenth of a second
        )
        named = settings.adapter
        self._adapter = read_adapter(Path(named).expanduser()) if named is not None else None
        served = self._served_model()
        self._name = str(served["id"])
        self._max_model_len = int(served.get("max_model_len") or settings.max_model_len)
        root = str(served.get("root") or "")
        directory = settings.tokenizer or (root if root and Path(root).is_dir() else None)
        if directory is None:
            raise ModelError(
                f"{url} serves '{self._name}', whose tokenizer is not on this machine; "
                "name its directory with model.tokenizer (HORNBEAM_MODEL__TOKENIZER)"
            )
        self._tokenizer = DirectoryTokenizer(Path(directory))
        self.enforcement = self._probe()
        kind = self.enforcement.kind
        free = "" if kind == "grammar" else f" {kind}"  # other answers than under the grammar
        beside = f"\n{self._adapter.fingerprint}" if self._adapter else ""
        self._identity = ModelIdentity(
            self._name,
            hashlib.sha256(f"{self._name}\n{root}{beside}".encode()).hexdigest() + free,
            "OpenAI-compatible HTTP",
            f"{url} is a URL; it serves '{self._name}'" + (f" and enforces{free}" if free else ""),
            adapter=self._adapter.card if self._adapter else None,
        )
        self._pool = ThreadPoolExecutor(max_workers=settings.max_num_seqs * 2)
        self._running: set[Future[Completion]] = set()

    @property
    def identity(self) -> ModelIdentity:
        return self._identity

    @property
    def tokenizer(self) -> DirectoryTokenizer:
        return self._tokenizer

    @property
    def max_model_len(self) -> int:
        return self._max_model_len

    @property
    def in_flight(self) -> int:
        return len(self._running)

    def chat_prompt(self, system: str, user: str) -> str:
        return self._tokenizer.chat_prompt(system, user)

    def neutralise(self, text: str) -> str:
        return self._tokenizer.neutralise(text)

    def submit(self, request: Request) -> None:
        self._running.add(self._pool.submit(self._complete, request))

    def poll(self) -> list[Completion]:
        if not self._running:
            return []
        done, self._running = wait(self._running, return_when=FIRST_COMPLETED)
        return [future.result() for future in done]

    def serving(self) -> dict[str, Any]:
        return {"enforces": self.enforcement.kind, "servers": []}

    def answer(self, request: Request) -> Completion:
        """
        Raises:
            ServerFault: the server is to blame.
        """
        try:
            body = self._body(request)
        except ValueError as error:
            return _failed(request, str(error))
        try:
            response = self._client.post(f"{self._base}/completions", json=body)
            if response.status_code in _OF_THE_REQUEST:
                return _failed(request, _server_error(response))
            if response.status_code != 200:
                raise ServerFault(_server_error(response))
            answer = response.json()
            choice = answer["choices"][0]
            reason: Literal["stop", "length"] = "length" if choice["finish_reason"] == "length" else "stop"
            completion = Completion(
                request.request_id, choice["text"], reason, _usage(answer), tuple(_scores(choice))
            )
        except _UNREADABLE as error:
            raise ServerFault(f"{self._base}: {type(error).__name__} {error}") from error
        return self._in_form(request, completion)

    def stream(self, request: Request) -> Iterator[str | Completion]:
        text, scores, usage, ended = "", [], Usage(), False
        reason: Literal["stop", "length"] = "stop"
        try:
            body = self._body(request) | {"stream": True, "stream_options": {"include_usage": True}}
            with self._client.stream("POST", f"{self._base}/completions", json=body) as response:
                if response.status_code != 200:
                    response.read()
                    yield _failed(request, _server_error(response))
                    return
                for line in response.iter_lines():
                    if not line.startswith("data:"):
                        continue
                    if line.endswith("[DONE]"):
                        ended = True
                        break
                    event = json.loads(line.removeprefix("data:"))
                    if "error" in event:
                        yield _failed(request, f"the server answered {event['error']}")
                        return
                    usage = _usage(event) if event.get("usage") else usage
                    for choice in event.get("choices", []):
                        if choice.get("finish_reason") == "length":
                            reason = "length"
                        scores += _scores(choice)
                        if choice.get("text"):
                            text += choice["text"]
                            yield choice["text"]
        except _UNREADABLE as error:
            yield _failed(request, f"{self._base}: {type(error).__name__} {error}")
            return
        if not ended:
            yield _failed(request, f"{self._base}: the stream broke off")
            return
        completion = Completion(request.request_id, text, reason, usage, tuple(scores))
        yield self._in_form(request, completion)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def _served_model(self) -> dict[str, Any]:
        try:
            response = self._client.get(f"{self._base}/models", timeout=_OPENING_S)
            response.raise_for_status()
            listed: dict[str, dict[str, Any]] = {str(m["id"]): m for m in response.json()["data"]}
        except _UNREADABLE as error:
            raise ModelError(f"no model server answers at {self._base}/models: {error}") from error
        wanted = self._settings.name or (self._adapter.name if self._adapter else None)
        for name, model in listed.items():
            if wanted in (None, name):
                # A server lists an adapter as a model of its own whose parent it is laid beside.
                return {**listed.get(str(model.get("parent")), model), "id": name}
        served = ", ".join(listed) or "no model"
        wish = f" and not '{wanted}'" if wanted else ""
        raise ModelError(
            f"{self._base} serves {served}{wish}; set model.name to one that it serves"
            + (f", or load the adapter there: --lora-modules {wanted}=DIR" if self._adapter else "")
        )

    def _body(self, request: Request) -> dict[str, Any]:
        """
        Raises:
            ValueError: the prompt leaves no room for an answer. (Where it leaves less than was asked for, a
                server would refuse.)
        """
        prompt = request.prompt
        if request.json_answer and self.enforcement.writes_whole_documents(request.json_answer):
            prompt = prompt.removesuffix(request.json_answer.opening)
        length = self._tokenizer.count(prompt)
        room = self._max_model_len - length
        if room < 1:
            raise ValueError(f"prompt of {length} tokens exceeds the context of {self._max_model_len}")
        body: dict[str, Any] = {
            "model": self._name,
            "prompt": prompt,
            "max_tokens": min(request.max_tokens, room),
            "temperature": request.temperature,
            "seed": self._settings.seed,
            "add_special_tokens": False,  # the prompt holds them already
        }
        if request.grammar:
            body |= self.enforcement.fields(request.grammar, request.json_answer)
        if request.stop:
            body["stop"] = list(request.stop)
        if request.logprobs:
            body["logprobs"] = 0
        return body

    def _complete(self, request: Request) -> Completion:
        try:
            return self.answer(request)
        except ServerFault as fault:
            return _failed(request, str(fault))

    def _in_form(self, request: Request, completion: Completion) -> Completion:
        if self.enforcement.kind == "grammar" or request.json_answer is None:
            return completion
        whole = self.enforcement.writes_whole_documents(request.json_answer)
        return in_grammars_form(completion, request.json_answer.opening, whole=whole)

    def _probe(self) -> Enforcement:
        def complete(body: dict[str, Any]) -> str | None:
            # A server that works for others may let it wait.
            response = self._client.post(f"{self._base}/completions", json=body | {"model": self._name})
            if response.status_code in _OF_THE_REQUEST:
                return None
            response.raise_for_status()
            return str(response.json()["choices"][0]["text"])

        try:
            found = probe(complete)
        except _UNREADABLE as error:
            raise ModelError(f"{self._base} lists models and completes nothing: {error}") from error
        if found is None:
            raise ModelError(f"{self._base} refuses every completion of '{self._name}'")
        return found


def _is_remote(url: str) -> bool:
    """Proxies of the environment are for remote servers only."""
    return urlsplit(url).hostname not in ("localhost", "127.0.0.1", "::1")


def _failed(request: Request, error: str) -> Completion:
    return Completion(request.request_id, "", "error", Usage(), error=error)


def _server_error(response: httpx.Response) -> str:
    return f"the server answered {response.status_code}: {response.text[:300]}"


def _usage(answer: dict[str, Any]) -> Usage:
    usage = answer.get("usage") or {}
    details = usage.get("prompt_tokens_details") or {}
    return Usage(
        int(usage.get("prompt_tokens") or 0),
        int(details.get("cached_tokens") or 0),
        int(usage.get("completion_tokens") or 0),
    )


def _scores(choice: dict[str, Any]) -> list[TokenScore]:
    logprobs = choice.get("logprobs")
    if not logprobs:
        return []
    pairs = zip(logprobs["tokens"], logprobs["token_logprobs"], strict=True)
    return [TokenScore(token, float(logprob or 0.0)) for token, logprob in pairs]
