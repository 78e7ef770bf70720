"""The worst possible language model: it knows the grammar of a request and nothing else.

At every step it draws one of the tokens that xgrammar allows, by chance. Whatever such a walk can produce,
some model will; whatever it cannot, none can. It needs no weights and no engine, only the tokenizer.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xgrammar

from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Completion, ModelIdentity, Request, TokenScore, Usage
from hornbeam.llm.tokenizer import DirectoryTokenizer


class Vocabulary:
    """A tokenizer directory as xgrammar sees it."""

    def __init__(self, directory: Path) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = DirectoryTokenizer(directory)
        tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        ids = tokenizer.get_vocab(with_added_tokens=True)
        written = [""] * (max(ids.values()) + 1)
        for token, token_id in ids.items():
            written[token_id] = token
        config = json.loads((directory / "tokenizer_config.json").read_text("utf-8"))
        stop = config["eos_token"]
        metadata = xgrammar.TokenizerInfo._detect_metadata_from_hf(tokenizer.to_str())
        self.stop_token: int = ids[stop["content"] if isinstance(stop, dict) else stop]
        self.info = xgrammar.TokenizerInfo(written, stop_token_ids=[self.stop_token], **metadata)
        self.bytes: list[bytes] = self.info.decoded_vocab
        # An engine leaves special tokens out of the text.
        for token_id, added in tokenizer.get_added_tokens_decoder().items():
            if added.special:
                self.bytes[token_id] = b""
        #: tokens that end a list or the answer, and tokens that begin with the end of a string
        self.ends_list = np.array([token[:1] == b"]" or b"}" in token for token in self.bytes])
        self.ends_list[self.stop_token] = True
        self.ends_string = np.array([token[:1] == b'"' for token in self.bytes])

    def allowed(self, matcher: xgrammar.GrammarMatcher) -> npt.NDArray[np.intp]:
        """Ids of the tokens that may come next, ascending."""
        size = len(self.bytes)
        mask = np.full((1, (size + 31) // 32), -1, dtype=np.int32)  # bit i % 32 of word i // 32 is token i
        matcher.fill_next_token_bitmask(mask)
        return np.flatnonzero(np.unpackbits(mask.view(np.uint8)[0], bitorder="little")[:size])


@cache
def vocabulary(directory: Path) -> Vocabulary:
    return Vocabulary(directory)


class GrammarWalker:
    """A `LanguageModel` that walks the grammar of each request by chance. Deterministic: a completion depends
    on the seed, the prompt, the grammar and the token limit alone, not on what else is in flight.

    Args:
        seed: another seed, another walk.
        directory: a tokenizer directory; None: the embedded model's, which is made if it is not there yet.
        closing: chance that a list ends, or else a string, where it can end or go on. None: all allowed
            tokens alike, which gives short lists.
        max_model_len: context in tokens; a prompt that fills it comes back as an error.
        per_poll: completions that one `poll` returns at most, the oldest requests first; None: all.
        before_poll: called at the beginning of every `poll`: to kill, to raise, to count.
        fail_when: the error that a request fails with, or None to answer it.

    Attributes:
        requests: every request seen, in order; `calls` is their number.
        peak: the most requests that were in flight at once.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        directory: Path | None = None,
        closing: float | None = None,
        max_model_len: int = 4096,
        per_poll: int | None = None,
        before_poll: Callable[[], None] | None = None,
        fail_when: Callable[[Request], str | None] | None = None,
    ) -> None:
        directory = directory or embedded_model_directory()
        self._seed = seed
        self._closing = closing
        self._vocabulary = vocabulary(directory)
        self._compiler = xgrammar.GrammarCompiler(self._vocabulary.info, max_threads=1, cache_enabled=False)
        self._tokenizer = self._vocabulary.tokenizer
        self._max_model_len = max_model_len
        self._per_poll = per_poll
        self._waiting: list[Request] = []
        self.before_poll = before_poll
        self.fail_when = fail_when
        self.requests: list[Request] = []
        self.peak = 0

    @property
    def calls(self) -> int:
        return len(self.requests)

    @property
    def identity(self) -> ModelIdentity:
        return ModelIdentity(
            "grammar walker", f"walker-{self._seed}-{self._closing}", "walker", "a test's model"
        )

    @property
    def tokenizer(self) -> DirectoryTokenizer:
        return self._tokenizer

    @property
    def max_model_len(self) -> int:
        return self._max_model_len

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    def chat_prompt(self, system: str, user: str) -> str:
        return self._tokenizer.chat_prompt(system, user)

    def neutralise(self, text: str) -> str:
        return self._tokenizer.neutralise(text)

    def submit(self, request: Request) -> None:
        self.requests.append(request)
        self._waiting.append(request)
        self.peak = max(self.peak, len(self._waiting))

    def poll(self) -> list[Completion]:
        if self.before_poll is not None:
            self.before_poll()
        due = self._waiting[: self._per_poll]
        self._waiting = self._waiting[len(due) :]
        return [self.complete(request) for request in due]

    def stream(self, request: Request) -> Iterator[str | Completion]:
        self.requests.append(request)
        completion = self.complete(replace(request, logprobs=True))
        yield from (token.text for token in completion.tokens if token.text)
        yield completion if request.logprobs else _without_scores(completion)

    def close(self) -> None:
        self._waiting.clear()

    def complete(self, request: Request) -> Completion:
        """The completion of a request, without counting it as a call."""
        error = self.fail_when(request) if self.fail_when is not None else None
        prompt_tokens = self._tokenizer.count(request.prompt)
        room = self._max_model_len - prompt_tokens
        if error is None and room < 1:
            error = f"prompt of {prompt_tokens} tokens exceeds the context of {self._max_model_len}"
        if error is not None:
            return Completion(request.request_id, "", "error", Usage(), error=error)
        limit = min(request.max_tokens, room)
        chance = self._chance(request)
        if request.grammar is None:
            ids = self._tokenizer.encode(f"The answer is {chance.randrange(1000)}.")
            ids, ended = ids[:limit], len(ids) <= limit
        else:
            try:
                ids, ended = self._walk(request.grammar, limit, chance)
            except RuntimeError as refused:  # a grammar that does not parse
                return Completion(request.request_id, "", "error", Usage(), error=str(refused))
        tokens = tuple(TokenScore(text, -chance.expovariate(1.0)) for text in self._texts(ids))
        completion = Completion(
            request.request_id,
            "".join(token.text for token in tokens),
            "stop" if ended else "length",
            Usage(prompt_tokens, 0, len(ids)),
            tokens,
        )
        return completion if request.logprobs else _without_scores(completion)

    def _chance(self, request: Request) -> random.Random:
        key = json.dumps([self._seed, request.prompt, request.grammar])
        return random.Random(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest())

    def _walk(self, grammar: str, limit: int, chance: random.Random) -> tuple[list[int], bool]:
        """Token ids, the stop token included, and whether the grammar came to its end."""
        matcher = xgrammar.GrammarMatcher(self._compiler.compile_grammar(grammar))
        ids: list[int] = []
        while len(ids) < limit and not matcher.is_terminated():
            allowed = self._vocabulary.allowed(matcher)
            assert allowed.size, f"the grammar has a dead end after {self._texts(ids)}"
            token = self._choose(allowed, chance)
            assert matcher.accept_token(token)
            ids.append(token)
        return ids, matcher.is_terminated()

    def _choose(self, allowed: npt.NDArray[np.intp], chance: random.Random) -> int:
        if self._closing is not None:
            for closing in (self._vocabulary.ends_list, self._vocabulary.ends_string):
                ends = closing[allowed]
                if ends.any() and not ends.all():
                    allowed = allowed[ends if chance.random() < self._closing else ~ends]
        return int(allowed[chance.randrange(allowed.size)])

    def _texts(self, ids: list[int]) -> list[str]:
        """What each token adds to the text; "" for one that holds the beginning of a character only."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return [decoder.decode(self._vocabulary.bytes[token]) for token in ids]


def _without_scores(completion: Completion) -> Completion:
    return replace(completion, tokens=())
