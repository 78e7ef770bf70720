"""Ray actors as the pool's workers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import orjson

from hornbeam import __version__
from hornbeam.distributed.failures import explained
from hornbeam.distributed.pool import Lost, Ticket, Worker
from hornbeam.distributed.worker import ExtractionWorker, Introduction, WorkerPlan
from hornbeam.errors import ModelError

#: How Ray says that the worker's class cannot be loaded on a machine: where Hornbeam is missing, say.
_NOT_MADE = "error raised in its creation task"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class WorkerResources:
    """Args: ahead: batches that a worker has at once."""

    cpus: int
    gpus: float
    ahead: int


class RayFleet:
    """
    Args:
        ray: the module, connected.
        recipe: what the workers must extract with, as `recipe_fields` has it.
        say: takes a line for the user.
    """

    def __init__(
        self,
        ray: Any,
        plan: WorkerPlan,
        recipe: dict[str, Any],
        resources: WorkerResources,
        say: Callable[[str], None],
    ) -> None:
        self._ray = ray
        self._plan = plan
        self._recipe = recipe
        self._say = say
        # The pool starts workers anew and knows what they had: Ray's own restarts would ask one that comes up
        # under the old name what it has never heard of.
        self._class = ray.remote(ExtractionWorker).options(
            num_cpus=resources.cpus,
            num_gpus=resources.gpus,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=resources.ahead + 1,
            scheduling_strategy="SPREAD",
        )

    def start(self) -> tuple[Worker, Ticket]:
        actor = self._class.remote()
        return actor, actor.introduce.remote(self._plan)

    def submit(self, worker: Any, chunks: bytes) -> Ticket:
        ticket: Ticket = worker.extract.remote(chunks)
        return ticket

    def wait(self, tickets: Collection[Ticket], seconds: float) -> list[tuple[Ticket, bytes | Lost]]:
        """
        Raises:
            HornbeamError: what a worker raised, or it is not as this process.
        """
        some, rest = self._ray.wait(list(tickets), num_returns=1, timeout=seconds)
        if some and rest:
            more, _ = self._ray.wait(rest, num_returns=len(rest), timeout=0)
            some = [*some, *more]
        return [(ticket, self._answer(ticket)) for ticket in some]

    def stop(self, worker: Any) -> None:
        self._ray.kill(worker, no_restart=True)

    def _answer(self, ticket: Ticket) -> bytes | Lost:
        errors = self._ray.exceptions
        try:
            answer = self._ray.get(ticket)
        except errors.RayTaskError as error:
            raise explained(error, "a worker failed") from error
        except errors.RayError as error:
            said = _COLOURS.sub("", str(error)).strip().splitlines() or [type(error).__name__]
            if _NOT_MADE in said[0]:  # another one would not be, either
                raise ModelError(f"ray: a worker cannot be made: {said[-1]}") from error
            return Lost(said[0].rstrip(".")[:200])
        if isinstance(answer, Introduction):
            self._greet(answer)
            return b""
        return bytes(answer)

    def _greet(self, worker: Introduction) -> None:
        """
        Raises:
            ModelError: its results would be other ones than this process's.
        """
        if worker.hornbeam != __version__:
            raise ModelError(f"ray: {worker.host} has hornbeam {worker.hornbeam}, this machine {__version__}")
        if orjson.dumps(worker.recipe) != orjson.dumps(self._recipe):
            differing = [name for name, value in self._recipe.items() if worker.recipe.get(name) != value]
            raise ModelError(
                f"ray: {worker.host} reads with another model, schema or prompts than this machine "
                f"({', '.join(differing)} differs); are the same files there?"
            )
        self._say(f"ray: a worker is there, on {worker.host} (process {worker.pid})")
