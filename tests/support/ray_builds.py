"""Builds whose chunks are extracted by Ray workers that replay a recording."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hornbeam.build import Build
from hornbeam.distributed.executor import RayExecutor
from hornbeam.distributed.worker import WorkerPlan
from hornbeam.extract.verification import Chunk, Outcome
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Completion
from hornbeam.llm.replay import ReplayModel
from hornbeam.llm.tokenizer import DirectoryTokenizer
from hornbeam.pipeline.executing import Executor
from hornbeam.pipeline.recipe import Recipe
from hornbeam.progress import Progress
from hornbeam.schema import load_schema
from hornbeam.settings import Settings
from hornbeam.stopping import StopRequest
from support.building import walking_settings
from support.version_by_hand import HashedWords

SCHEMA = "general"


def ray_settings(address: str | None = None) -> Settings:
    """Batches of two chunks, two on their way to each worker."""
    return walking_settings(
        extract={"window": 2},
        ray={"workers": 2, "batch": 2, "readers": 1, "object_store_mib": 100, "address": address},
    )


class Replayed(ReplayModel):
    """
    Args:
        killed: where a process that kills itself leaves its number; where one did, no other does.
        polls_until_killed: of this process.
    """

    def __init__(self, recording: Path, killed: Path | None = None, polls_until_killed: int = 0) -> None:
        super().__init__(recording, DirectoryTokenizer(embedded_model_directory()))
        self._killed = killed
        self._polls_left = polls_until_killed

    def poll(self) -> list[Completion]:
        if self._killed is not None:
            self._polls_left -= 1
            if self._polls_left == 0 and not self._killed.exists():
                self._killed.write_text(str(os.getpid()))
                os.kill(os.getpid(), signal.SIGKILL)
        return super().poll()


@dataclass(frozen=True)
class OpenReplayed:
    """What a worker opens its model with."""

    recording: Path
    killed: Path | None = None

    def __call__(self, settings: Settings) -> Replayed:
        return Replayed(self.recording, self.killed, polls_until_killed=3)


def ray_build(
    index: Path,
    recording: Path,
    *,
    killed: Path | None = None,
    address: str | None = None,
    make: type[RayExecutor] = RayExecutor,
    said: Callable[[str], None] = lambda line: None,
) -> Build:
    settings, schema = ray_settings(address), load_schema(SCHEMA)
    model = Replayed(recording)
    plan = WorkerPlan(settings, schema, OpenReplayed(recording, killed))
    stop = StopRequest()

    def executor(recipe: Recipe) -> Executor:
        return make(plan, model, recipe, stop, said)

    return Build(index, settings, schema, model, HashedWords(), Progress(quiet=True), stop, executor)


class KillsItsDriver(RayExecutor):
    """After a few results this process is gone."""

    RESULTS = 9

    def extract(
        self, chunks: Iterable[Chunk], on_progress: Callable[[int], None]
    ) -> Iterator[tuple[str, Outcome]]:
        for number, outcome in enumerate(super().extract(chunks, on_progress)):
            if number == self.RESULTS:
                os.kill(os.getpid(), signal.SIGKILL)
            yield outcome


if __name__ == "__main__":
    given_index, given_corpus, given_recording, given_address = sys.argv[1:]
    ray_build(Path(given_index), Path(given_recording), address=given_address, make=KillsItsDriver).run(
        [given_corpus]
    )
