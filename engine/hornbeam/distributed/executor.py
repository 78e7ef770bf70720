"""The executor of a build on many machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from hornbeam.device import choose_device
from hornbeam.distributed.cluster import Cluster, check_installed
from hornbeam.distributed.fleet import RayFleet, WorkerResources
from hornbeam.distributed.pool import Pool, PoolLimits
from hornbeam.distributed.reading import read_by_ray
from hornbeam.distributed.worker import WorkerPlan, recipe_fields
from hornbeam.extract.verification import Chunk, Outcome
from hornbeam.llm.opening import server_urls
from hornbeam.llm.protocol import LanguageModel
from hornbeam.pipeline.reading import Item
from hornbeam.pipeline.recipe import Recipe
from hornbeam.settings import Settings
from hornbeam.stopping import StopRequest


class RayExecutor:
    """Reads and extracts by Ray. The cluster is joined or started when there is something to read or to ask.

    Args:
        model: this process's, of which the tokenizer's place is taken.
        recipe: what the build keeps results under; a worker with another one is refused.
        say: takes a line for the user.

    Raises:
        UsageError: Ray is not installed.
    """

    def __init__(
        self,
        plan: WorkerPlan,
        model: LanguageModel,
        recipe: Recipe,
        stop: StopRequest,
        say: Callable[[str], None],
    ) -> None:
        check_installed()
        self._plan = plan
        self._settings = plan.settings
        self._tokenizer = None if plan.settings.model.path is None else model.tokenizer.directory
        self._recipe = recipe
        self._stop = stop
        self._say = say
        self._cluster: Cluster | None = None
        self._pool: Pool | None = None

    def read(self, paths: Sequence[Path], known_digest: Callable[[str], str | None]) -> Iterator[Item]:
        """
        Raises:
            UsageError: the cluster has too little for the settings.
            ModelError: it cannot be reached, or a machine lacks the tokenizer.
        """
        data, settings = self._connected().data(), self._settings
        yield from read_by_ray(
            data, paths, known_digest, self._tokenizer, settings.corpus, settings.chunk, settings.ray
        )

    def extract(
        self, chunks: Iterable[Chunk], on_progress: Callable[[int], None]
    ) -> Iterator[tuple[str, Outcome]]:
        """
        Raises:
            UsageError, ModelError: as `read`; or no worker comes up, or all are lost.
        """
        source = iter(chunks)
        first = next(source, None)
        if first is not None:  # else no cluster is needed
            pool = self._pool = self._pool or self._open_pool()
            yield from pool.run(chain([first], source), on_progress)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None

    def _connected(self) -> Cluster:
        if self._cluster is None:
            self._cluster = Cluster(self._settings.ray, gpus_per_worker(self._settings))
        return self._cluster

    def _open_pool(self) -> Pool:
        settings = self._settings.ray
        # One batch more than fills the window, so that it stays full while one ends.
        ahead = math.ceil(self._settings.extract.window / settings.batch) + 1
        resources = WorkerResources(settings.cpus_per_worker, gpus_per_worker(self._settings), ahead)
        fleet = RayFleet(self._connected().ray, self._plan, recipe_fields(self._recipe), resources, self._say)
        limits = PoolLimits(
            settings.workers, settings.batch, ahead, settings.losses, settings.start_timeout_s
        )
        return Pool(fleet, limits, self._say, lambda: self._stop.requested)


def gpus_per_worker(settings: Settings) -> float:
    """What the settings say, else one where the model runs in the worker on a GPU."""
    if settings.ray.gpus_per_worker is not None:
        return settings.ray.gpus_per_worker
    if settings.extract.tier == "fast" or server_urls(settings.model.path):
        return 0.0
    return 1.0 if choose_device(settings.device)[0] == "cuda" else 0.0
