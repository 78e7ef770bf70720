"""Whether an engine could compile a grammar in reasonable time, found out before it is asked to.

An engine has no time limit of its own: one grammar that takes minutes would hold up its whole batch.
Compiling grows with the square of the rules (measured: about 0.1 ms a rule at 500 rules, 1 ms at 5,000), so
that small ones, which nearly all are, need no trial. Larger ones are compiled in a process of their own, and
it is ended when the limit is reached; a grammar no larger than one that was compiled in time is taken to be
no slower.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

#: Rules and characters up to which a grammar is not tried: with a vocabulary of 49,000 tokens these were
#: compiled within 0.4 s on a core that was shared with four others.
SAFE_RULES, SAFE_CHARACTERS = 1_500, 100_000
#: Rules above which it is not tried either.
MOST_RULES = 20_000
#: For a process to import the compiler and read the vocabulary.
_START_SECONDS = 120.0


class GrammarCheck:
    """Tells grammars that are too large for a model's vocabulary.

    Args:
        tokenizer: directory of the model's tokenizer.
        seconds: that compiling may take.
    """

    def __init__(self, tokenizer: Path, seconds: float) -> None:
        self._tokenizer = tokenizer
        self._seconds = seconds
        self._rules, self._characters = SAFE_RULES, SAFE_CHARACTERS  # known to be compiled in time
        self._worker: tuple[SpawnProcess, Connection] | None = None
        self.tried = 0

    def too_large(self, grammar: str) -> bool:
        rules, characters = grammar.count("\n") + 1, len(grammar)
        if rules <= self._rules and characters <= self._characters:
            return False
        if rules > MOST_RULES or not self._compiles(grammar):
            return True
        self._rules, self._characters = max(rules, self._rules), max(characters, self._characters)
        return False

    def close(self) -> None:
        if self._worker is not None:
            process, connection = self._worker
            self._worker = None
            process.kill()
            process.join()
            connection.close()

    def _compiles(self, grammar: str) -> bool:
        """Within the limit, in the other process; False as well where it finds the grammar faulty."""
        self.tried += 1
        try:
            connection = self._started()
            connection.send(grammar)
            if connection.poll(self._seconds):
                return bool(connection.recv())
        except (EOFError, OSError):  # no compiler is installed there, or it ran out of memory
            pass
        self.close()
        return False

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
    from transformers import AutoTokenizer

    info = xgrammar.TokenizerInfo.from_huggingface(AutoTokenizer.from_pretrained(str(tokenizer)))
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compiles(grammar: str) -> bool:
        try:
            compiler.compile_grammar(grammar)
        except RuntimeError:  # it does not parse
            return False
        return True

    return compiles
