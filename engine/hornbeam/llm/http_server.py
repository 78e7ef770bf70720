"""A model behind an OpenAI-compatible completions endpoint that knows grammars, such as `vllm serve`."""

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
from hornbeam.llm.protocol import Completion, ModelIdentity, Request, TokenScore, Usage
from hornbeam.llm.tokenizer import DirectoryTokenizer
from hornbeam.settings import ModelSettings

#: What a request to a server that is down, or that is no model server, may raise.
_UNREADABLE = (httpx.HTTPError, ValueError, LookupError, TypeError, AttributeError)


class HttpModel:
    """One server. Start vLLM's with `--enable-prefix-caching --enable-prompt-tokens-details` and a
    structured-outputs backend of xgrammar.

    The chat format and the chunk sizes come from a tokenizer directory (`model.tokenizer`); without one, the
    server's own model path where this machine has it.
    """

    def __init__(self, url: str, settings: ModelSettings) -> None:
        self._settings = settings
        self._base = url.rstrip("/").removesuffix("/v1") + "/v1"
        headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
        limits = httpx.Limits(max_connections=settings.max_num_seqs * 2)
        self._client = httpx.Client(
            timeout=settings.request_timeout_s, headers=headers, limits=limits, trust_env=_is_remote(url)
        )
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
        self._identity = ModelIdentity(
            self._name,
            hashlib.sha256(f"{self._name}\n{root}".encode()).hexdigest(),
            "OpenAI-compatible HTTP",
            f"{url} is a URL; it serves '{self._name}'",
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
        yield Completion(request.request_id, text, reason, usage, tuple(scores))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    def _served_model(self) -> dict[str, Any]:
        try:
            response = self._client.get(f"{self._base}/models", timeout=10.0)
            response.raise_for_status()
            listed: dict[str, dict[str, Any]] = {str(m["id"]): m for m in response.json()["data"]}
        except _UNREADABLE as error:
            raise ModelError(f"no model server answers at {self._base}/models: {error}") from error
        wanted = self._settings.name
        for name, model in listed.items():
            if wanted in (None, name):
                return model
        served = ", ".join(listed) or "no model"
        wish = f" and not '{wanted}'" if wanted else ""
        raise ModelError(f"{self._base} serves {served}{wish}; set model.name to one that it serves")

    def _body(self, request: Request) -> dict[str, Any]:
        """
        Raises:
            ValueError: the prompt leaves no room for an answer. (Where it leaves less than was asked for, a
                server would refuse.)
        """
        length = self._tokenizer.count(request.prompt)
        room = self._max_model_len - length
        if room < 1:
            raise ValueError(f"prompt of {length} tokens exceeds the context of {self._max_model_len}")
        body: dict[str, Any] = {
            "model": self._name,
            "prompt": request.prompt,
            "max_tokens": min(request.max_tokens, room),
            "temperature": request.temperature,
            "seed": self._settings.seed,
            "add_special_tokens": False,  # the prompt holds them already
        }
        if request.grammar:
            body["structured_outputs"] = {"grammar": request.grammar}
        if request.stop:
            body["stop"] = list(request.stop)
        if request.logprobs:
            body["logprobs"] = 0
        return body

    def _complete(self, request: Request) -> Completion:
        try:
            response = self._client.post(f"{self._base}/completions", json=self._body(request))
            if response.status_code != 200:
                return _failed(request, _server_error(response))
            answer = response.json()
            choice = answer["choices"][0]
            reason: Literal["stop", "length"] = "length" if choice["finish_reason"] == "length" else "stop"
            return Completion(
                request.request_id, choice["text"], reason, _usage(answer), tuple(_scores(choice))
            )
        except _UNREADABLE as error:
            return _failed(request, f"{self._base}: {type(error).__name__} {error}")


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
