"""How Ray is started and joined, with a stand-in for it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hornbeam.distributed import cluster
from hornbeam.distributed.cluster import Cluster
from hornbeam.errors import ModelError, UsageError
from hornbeam.settings import RaySettings

TOO_SLOW = "The current node timed out during startup. This could happen because …"


class PretendRay(SimpleNamespace):
    """Args: failures: what the first starts raise."""

    def __init__(self, *failures: Exception, cpus: float = 8.0) -> None:
        super().__init__(failures=list(failures), started=[], running=False, cpus=cpus)

    def is_initialized(self) -> bool:
        return bool(self.running)

    def init(self, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as Ray does
        self.started.append(options)
        if self.failures:
            raise self.failures.pop(0)
        self.running = True

    def shutdown(self) -> None:
        self.running = False

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.cpus}


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Folders whose processes were ended. What is put into the environment is taken out again."""
    folders: list[str] = []
    monkeypatch.setattr(cluster, "_end_children", folders.append)
    monkeypatch.setattr(cluster, "ray_version", lambda: "2.60.0")
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return folders


def opened(monkeypatch: pytest.MonkeyPatch, ray: PretendRay, **settings: Any) -> Cluster:
    monkeypatch.setitem(sys.modules, "ray", ray)  # type: ignore[arg-type]
    return Cluster(RaySettings(**settings), gpus_per_worker=0)


def test_a_cluster_of_this_machine_tells_nobody_and_listens_to_nobody(
    monkeypatch: pytest.MonkeyPatch, ended: list[str]
) -> None:
    ray, before = PretendRay(), signal.getsignal(signal.SIGTERM)

    with opened(monkeypatch, ray, workers=3, readers=2, object_store_mib=100):
        (options,) = ray.started
        folder = Path(options["_temp_dir"])
        assert folder.is_dir()
        assert (options["include_dashboard"], options["address"]) == (False, "local")
        assert options["num_cpus"] >= 5
        assert options["object_store_memory"] == 100 * 2**20
        assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
        assert os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] == "0"
        assert signal.getsignal(signal.SIGTERM) == before

    assert not ray.running
    assert not folder.exists()
    assert ended == []


def test_a_start_that_takes_too_long_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, ended: list[str]
) -> None:
    ray = PretendRay(Exception(TOO_SLOW), Exception(TOO_SLOW))

    with opened(monkeypatch, ray):
        assert ray.running

    assert len(ray.started) == 3
    assert len(ended) == 2


def test_other_failures_and_a_third_slow_start_are_one_line(
    monkeypatch: pytest.MonkeyPatch, ended: list[str]
) -> None:
    with pytest.raises(ModelError, match=r"ray: this machine cannot be used: The current node timed out"):
        opened(monkeypatch, PretendRay(*[Exception(TOO_SLOW) for _ in range(3)]))
    with pytest.raises(ModelError, match=r"ray: cluster at head:6379 cannot be used: refused"):
        opened(monkeypatch, PretendRay(ConnectionError("refused")), address="head:6379")


def test_a_cluster_that_is_joined_keeps_its_own_settings(
    monkeypatch: pytest.MonkeyPatch, ended: list[str]
) -> None:
    ray = PretendRay()

    with opened(monkeypatch, ray, address="auto"):
        assert set(ray.started[0]) == {"address", "log_to_driver", "logging_level", "namespace"}


def test_one_that_the_process_has_is_used_and_left_open(
    monkeypatch: pytest.MonkeyPatch, ended: list[str]
) -> None:
    ray = PretendRay()
    ray.running = True

    with opened(monkeypatch, ray):
        assert ray.started == []

    assert ray.running


def test_too_few_processors_are_told_and_the_cluster_is_closed(
    monkeypatch: pytest.MonkeyPatch, ended: list[str]
) -> None:
    ray = PretendRay(cpus=2.0)

    with pytest.raises(UsageError, match="4 workers and a reader need 5 CPUs, and the cluster has 2; lower"):
        opened(monkeypatch, ray, workers=4)

    assert not ray.running
