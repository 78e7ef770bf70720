"""Whether an engine can compile a grammar in reasonable time, found out before it is asked to.

An engine has no time limit of its own: one grammar that takes minutes, or that does not parse, would hold
up its whole batch. Compiling costs about 10 microseconds for every byte of a literal and grows with the
square of the rules (measured: about 0.1 ms a rule at 500 rules, 1 ms at 5,000). So size tells most of it:

- A grammar of literals, choices and names alone, up to a size that was measured to be harmless, passes
  untried: compiling it here as well as in the engine would only cost twice.
- One that says more than that (a set of characters, a repetition) has no such bound and is compiled here, in
  a thread beside the model (xgrammar lets go of the interpreter while it compiles); so is every small one
  where the limit is below what is known of its size.
- A larger one is compiled in a process of its own, which is ended when the limit is reached; a grammar no
  larger than one that was compiled there in time is taken to be no slower.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from threading import Lock, local
from typing import Any

#: Rules and characters up to which a grammar is harmless: with a vocabulary of 49,000 tokens these took 0.4 s
#: at most on a core that was shared with four others, and one of 262,000 tokens takes up to twice as long.
SAFE_RULES, SAFE_CHARACTERS = 1_500, 100_000
#: What they may be trusted to take at most.
SAFE_SECONDS = 2.0
#: Stand in what is more than literals, names, choices and options, and has no cost that its size would tell.
_COSTLY = frozenset("[{*+/")
#: Rules above which it is not tried at all.
MOST_RULES = 20_000
#: For a process to import the compiler and read the vocabulary.
_START_SECONDS = 120.0


class GrammarCheck:
    """Tells grammars that a model's engine cannot compile in time, or at all.

    Args:
        tokenizer: directory of the model's tokenizer.
        seconds: that compiling may take, of one core.
        threads: that compile beside the caller; None: half as many as there are cores.
    """

    def __init__(self, tokenizer: Path, seconds: float, threads: int | None = None) -> None:
        self._tokenizer = tokenizer
        self._seconds = seconds
        workers = threads or max(1, (os.cpu_count() or 2) // 2)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="grammar")
        self._mine = local()  # a compiler for each thread
        self._rules, self._characters = 0, 0  # compiled in time in the other process
        self._worker: tuple[SpawnProcess, Connection] | None = None
        self._lock = Lock()  # the process does one thing at a time
        self.tried = 0  # in the other process
        self.compiled = 0  # here

    def submit(self, grammar: str) -> Future[bool]:
        """Whether it is to be refused, some time later."""
        if self._is_small(grammar):
            if self._is_harmless(grammar):
                passed: Future[bool] = Future()
                passed.set_result(False)
                return passed
            # Here, not in a thread: a model's engine may be importing the same libraries by then.
            _vocabulary(self._tokenizer)
        return self._pool.submit(self.too_large, grammar)

    def too_large(self, grammar: str) -> bool:
        """Whether it is to be refused: it takes too long, or does not parse."""
        if self._is_small(grammar):
            return not (self._is_harmless(grammar) or self._compiles_here(grammar))
        rules, characters = _size(grammar)
        if rules > MOST_RULES:
            return True
        with self._lock:
            if rules <= self._rules and characters <= self._characters:
                return False
            if not self._compiles_elsewhere(grammar):
                return True
            self._rules, self._characters = max(rules, self._rules), max(characters, self._characters)
        return False

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._end()

    def _is_harmless(self, grammar: str) -> bool:
        """Of a small one, whether its size alone says that it compiles within the limit."""
        # Without escaped quotes, every other part between quotes is outside of literals.
        parts = grammar.replace("\\\\", "").replace('\\"', "").split('"')
        is_plain = len(parts) % 2 == 1 and _COSTLY.isdisjoint("".join(parts[::2]))
        return self._seconds >= SAFE_SECONDS and is_plain

    @staticmethod
    def _is_small(grammar: str) -> bool:
        rules, characters = _size(grammar)
        return rules <= SAFE_RULES and characters <= SAFE_CHARACTERS

    def _compiles_here(self, grammar: str) -> bool:
        if not hasattr(self._mine, "compiles"):
            self._mine.compiles = _compiler(self._tokenizer)
        self.compiled += 1
        started = time.thread_time()
        return bool(self._mine.compiles(grammar)) and time.thread_time() - started <= self._seconds

    def _compiles_elsewhere(self, grammar: str) -> bool:
        """Within the limit, in the other process; False as well where it finds the grammar faulty."""
        self.tried += 1
        try:
            connection = self._started()
            connection.send(grammar)
            if connection.poll(self._seconds):
                return bool(connection.recv())
        except (EOFError, OSError):  # no compiler is installed there, or it ran out of memory
            pass
        self._end()
        return False

    def _end(self) -> None:
        if self._worker is not None:
            process, connection = self._worker
            self._worker = None
            process.kill()
            process.join()
            connection.close()

    def _started(self) -> Connection:
        if self._worker is None:
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            process = context.Process(target=_compile_all, args=(self._tokenizer, theirs), daemon=True)
            process.start()
            theirs.close()
            self._worker = process, ours
            if not ours.poll(_START_SECONDS):
                raise EOFError
            ours.recv()
        return self._worker[1]


def _size(grammar: str) -> tuple[int, int]:
    """Rules, characters."""
    return grammar.count("\n") + 1, len(grammar)


def _compile_all(tokenizer: Path, connection: Connection) -> None:
    """The other process: says that it is ready, then of every grammar whether it can be compiled."""
    compiles = _compiler(tokenizer)
    connection.send(True)
    while True:
        try:
            grammar = connection.recv()
        except EOFError:
            return
        connection.send(compiles(grammar))


def _compiler(tokenizer: Path) -> Callable[[str], bool]:
    import xgrammar

    compiler = xgrammar.GrammarCompiler(_vocabulary(tokenizer), max_threads=1, cache_enabled=False)

    def compiles(grammar: str) -> bool:
        try:
            compiler.compile_grammar(grammar)
        except RuntimeError:  # it does not parse
            return False
        return True

    return compiles


@cache
def _vocabulary(directory: Path) -> Any:
    """A tokenizer directory as xgrammar sees it, read without the libraries that train models."""
    import xgrammar
    from tokenizers import Tokenizer

    file = directory / "tokenizer.json"
    ids = Tokenizer.from_file(str(file)).get_vocab(with_added_tokens=True)
    written = [""] * (max(ids.values()) + 1)
    for token, token_id in ids.items():
        written[token_id] = token
    decoder = json.dumps(json.loads(file.read_text("utf-8")).get("decoder"))
    kinds = xgrammar.VocabType
    kind = kinds.BYTE_FALLBACK if "ByteFallback" in decoder else kinds.RAW
    return xgrammar.TokenizerInfo(written, kinds.BYTE_LEVEL if "ByteLevel" in decoder else kind)
