"""Ray, joined where a cluster runs or started on this machine; nothing of it is reported to anybody."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
import threading
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any

import psutil

from hornbeam.errors import ModelError, UsageError, reason
from hornbeam.settings import RaySettings

#: No statistics of use go to Ray's makers, no metrics are collected, and workers are not put behind every
#: other process of the machine.
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_worker_niceness": "0",
}
#: Of a cluster of this machine alone: it listens on 127.0.0.1. (Ray asks no password.)
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
#: Ray gives its own processes half a minute to start, which is short where many others are at work.
_STARTS = 3
_STARTED_TOO_SLOWLY = "timed out during startup"
#: Ray's sockets lie below its folder, in up to 70 characters of the 107 that a socket's path may have.
_LONGEST_FOLDER = 32


def ray_version() -> str | None:
    """The installed one; None: there is none."""
    try:
        return version("ray")
    except PackageNotFoundError:
        return None


def check_installed() -> None:
    """
    Raises:
        UsageError: Ray is not there.
    """
    if ray_version() is None:
        raise UsageError(
            "executor = ray needs Ray, which is not installed; run \"pip install 'hornbeam[ray]'\""
        )


class Cluster:
    """An open connection. One that this process has already (an application's own) is used and left open.

    Raises:
        UsageError: Ray is not installed, or the cluster has too little for the settings.
        ModelError: the cluster cannot be reached or started.
    """

    def __init__(self, settings: RaySettings, gpus_per_worker: float) -> None:
        check_installed()
        os.environ |= _ENVIRONMENT
        if settings.address is None:
            os.environ |= _LOOPBACK
        import ray

        self.ray: Any = ray
        self._folder: str | None = None
        self._opened = not ray.is_initialized()
        if self._opened:
            self._open(settings, gpus_per_worker)
        try:
            self._check_resources(settings, gpus_per_worker)
        except UsageError:
            self.close()
            raise

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self.ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def data(self) -> Any:
        """The module `ray.data`. It sets its logging up when it is loaded, with lines on every pipeline."""
        import ray.data

        logging.getLogger("ray.data").setLevel(_log_level())
        return ray.data

    def _open(self, settings: RaySettings, gpus_per_worker: float) -> None:
        options: dict[str, Any] = {
            "log_to_driver": _log_level() < logging.ERROR,
            "logging_level": _log_level(),
            "namespace": "hornbeam",
        }
        if settings.address is not None:
            options["address"] = settings.address
        else:
            folder = tempfile.gettempdir()
            if len(folder) > _LONGEST_FOLDER:
                folder = "/tmp"
            self._folder = tempfile.mkdtemp(prefix="hornbeam-", dir=folder)
            needed = settings.workers * settings.cpus_per_worker + settings.readers
            options |= {
                "address": "local",
                "include_dashboard": False,
                "num_cpus": max(os.cpu_count() or 1, needed),
                "object_store_memory": settings.object_store_mib << 20,
                "_temp_dir": self._folder,
            }
        before = signal.getsignal(signal.SIGTERM)
        try:
            self._init(options)
        except Exception as error:  # Ray raises it bare where a process of its own did not start
            self._opened = False
            if self._folder is not None:
                _end_children(self._folder)
            self.close()
            where = f"cluster at {settings.address}" if settings.address else "this machine"
            raise ModelError(f"ray: {where} cannot be used: {reason(error)} (ray.address)") from error
        finally:
            # Ray puts a handler of its own in the place of the one that stops a build in order.
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, before)

    def _init(self, options: dict[str, Any]) -> None:
        for start in range(1, _STARTS + 1):
            try:
                self.ray.init(**options)
            except Exception as error:
                if self._folder is None or start == _STARTS or _STARTED_TOO_SLOWLY not in str(error):
                    raise
                _end_children(self._folder)
            else:
                return

    def _check_resources(self, settings: RaySettings, gpus_per_worker: float) -> None:
        there = self.ray.cluster_resources()
        # Reading needs a processor beside the workers, or it would wait for them for ever.
        cpus, gpus = settings.workers * settings.cpus_per_worker + 1, settings.workers * gpus_per_worker
        short = []
        if there.get("CPU", 0) < cpus:
            short.append(f"{cpus} CPUs, and the cluster has {there.get('CPU', 0):g}")
        if there.get("GPU", 0) < gpus:
            short.append(f"{gpus:g} GPUs, and the cluster has {there.get('GPU', 0):g}")
        if short:
            raise UsageError(
                f"ray: {settings.workers} workers and a reader need {'; '.join(short)}; lower ray.workers, "
                "ray.cpus_per_worker or ray.gpus_per_worker, or add machines"
            )


def _log_level() -> int:
    """What is raised comes as an error of ours; Ray would log it with its trace, too."""
    return logging.INFO if os.environ.get("HORNBEAM_DEBUG") else logging.CRITICAL


def _end_children(folder: str) -> None:
    """Of the processes that this one started, those with the folder among their arguments."""
    for child in psutil.Process().children(recursive=True):
        try:
            if folder in " ".join(child.cmdline()):
                child.kill()
        except psutil.NoSuchProcess:
            continue  # it has ended
