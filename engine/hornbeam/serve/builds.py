"""Builds that the server starts: each is a process of its own, which writes what it does into its folder.

INDEX/builds/<id>/started.json     what was asked for, when, by whom, and the process
INDEX/builds/<id>/progress.jsonl   the process's progress (`hornbeam.progress_record`), its end included
INDEX/builds/<id>/log              its standard error
INDEX/builds/<id>/report.json      its standard output
INDEX/builds/<id>/cancelled        somebody asked it to stop

All that is known of a build is in these files: a server that starts anew finds the builds of the one before,
also those that still run. Readers of the index are not touched by a build; `ServedIndex.refresh` takes its
version when it is promoted.
"""

from __future__ import annotations

import json
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hornbeam.errors import StoreError, UsageError
from hornbeam.settings import Settings
from hornbeam.store.lock import write_lock

State = Literal["running", "stopping", "done", "refused", "stopped", "failed"]
#: Of an index; older ones go when another starts.
_KEPT = 20
_TAIL_BYTES = 65_536
#: Clocks that were set between writing and asking.
_SAME_START_S = 2.0
#: How `hornbeam` is run, whatever its script is called and wherever it lies.
COMMAND = (sys.executable, "-c", "from hornbeam.cli import main; main()")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Args: source: a name among `serve.sources`; None: the paths that the index was built from."""

    source: str | None = None
    full: bool = False
    evolve: bool = False


class BuildRun:
    """One build, by its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.build_id = folder.name
        self.started: dict[str, Any] = json.loads((folder / "started.json").read_text("utf-8"))

    @property
    def progress_file(self) -> Path:
        return self.folder / "progress.jsonl"

    def runs(self) -> bool:
        """Whether its process is there; one that only has its number is another."""
        import psutil

        try:
            process = psutil.Process(self.started["pid"])
            there = process.status() != psutil.STATUS_ZOMBIE
            return there and bool(
                abs(process.create_time() - self.started["process_started"]) < _SAME_START_S
            )
        except psutil.Error:
            return False

    def to_json(self) -> dict[str, Any]:
        """What was asked for, how far it has come or how it ended."""
        runs = self.runs()  # before its lines are read: the last one is written before it goes
        last = last_lines(self.progress_file)
        told = {key: self.started[key] for key in ("source", "full", "evolve", "started", "by")}
        end, cancelled = last.get("end"), (self.folder / "cancelled").exists()
        state: State
        if end is not None:
            state, message = end["end"], end["message"]
        elif runs:
            state, message = ("stopping" if cancelled else "running"), ""
        else:
            state, message = ("stopped", "") if cancelled else ("failed", self._last_words())
        return {
            "build": self.build_id,
            **told,
            "state": state,
            "message": message,
            "progress": last.get("stage"),
            "version": None if end is None else end.get("version"),
            "promoted": end is not None and bool(end.get("promoted")),
        }

    def cancel(self, *, now: bool) -> None:
        """Ask it to stop: in order, what is in flight finished and kept; a second time, or `now`, at once.

        Raises:
            StoreError: it has ended.
        """
        import psutil

        if not self.runs():
            raise StoreError(f"build {self.build_id} has ended")
        (self.folder / "cancelled").touch()
        try:
            process = psutil.Process(self.started["pid"])
            process.send_signal(signal.SIGKILL if now else signal.SIGTERM)
        except psutil.NoSuchProcess as error:
            raise StoreError(f"build {self.build_id} has ended") from error

    def _last_words(self) -> str:
        try:
            lines = (self.folder / "log").read_text("utf-8", "replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1].removeprefix("error: ") if lines else "its process was ended from outside"


class Builds:
    """
    Args:
        command: how `hornbeam` is run; tests put another program in its place.
    """

    def __init__(self, settings: Settings, command: Sequence[str] = COMMAND) -> None:
        self._settings = settings
        self._command = tuple(command)
        self._starting = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def sources(self) -> list[str]:
        return sorted(self._settings.serve.sources)

    def start(self, index: Path, wanted: Wanted, by: str) -> BuildRun:
        """
        Raises:
            UsageError: no such source.
            StoreError: the index is being written.
        """
        with self._starting:
            arguments = self._arguments(index, wanted)
            with write_lock(index):
                pass  # nobody writes; who begins in the next moment is told of by the build's own refusal
            if any(run.runs() for run in runs_of(index)):  # it may not have come to the lock yet
                raise StoreError(f"{index} is being written by another process; a build is under way")
            folder = index / "builds" / f"b{int(time.time() * 1000):012x}{secrets.token_hex(2)}"
            folder.mkdir(parents=True)
            process = self._run(folder, arguments)
            self._processes = [*(one for one in self._processes if one.poll() is None), process]
            _write_started(folder, process.pid, wanted, by)
            threading.Thread(target=process.wait, name="build", daemon=True).start()  # no zombie stays
            for old in list_runs(index)[_KEPT:]:
                if not old.runs():
                    shutil.rmtree(old.folder)
            return BuildRun(folder)

    def stop(self) -> None:
        """Ask those that this server started to stop in order; what they finished is kept."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()

    def _run(self, folder: Path, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        command = [*self._command, "update", *arguments]
        command += ["--progress-file", str(folder / "progress.jsonl"), "--json", "--quiet"]
        with (folder / "log").open("wb") as log, (folder / "report.json").open("wb") as report:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=report,
                stderr=log,
                start_new_session=True,  # Ctrl-C at the server's terminal comes to it once, from `stop`
            )

    def _arguments(self, index: Path, wanted: Wanted) -> list[str]:
        serve, cost = self._settings.serve, self._settings.cost
        arguments: list[str] = []
        if wanted.source is not None:
            if wanted.source not in serve.sources:
                raise UsageError(
                    f"no source '{wanted.source}'; the server's setting serve.sources has "
                    f"{', '.join(self.sources) or 'none'}"
                )
            arguments.append(str(Path(serve.sources[wanted.source]).expanduser().resolve()))
        arguments += ["--index", str(index.resolve())]
        changes: dict[str, str | int | float | bool] = {}
        if cost.gpu_hour_price is not None:
            changes["cost.gpu_hour_price"], changes["cost.currency"] = cost.gpu_hour_price, cost.currency
        changes |= serve.build_settings
        if wanted.evolve:
            changes["evolve.enabled"] = True
        for key, value in changes.items():
            said = str(value).lower() if isinstance(value, bool) else value
            arguments += ["--set", f"{key}={said}"]
        return [*arguments, "--full"] if wanted.full else arguments


def list_runs(index: Path) -> list[BuildRun]:
    """The newest first."""
    return list(reversed(runs_of(index)))


def runs_of(index: Path) -> list[BuildRun]:
    return [BuildRun(path.parent) for path in sorted((index / "builds").glob("b*/started.json"))]


def last_lines(progress: Path) -> dict[str, dict[str, Any]]:
    """The newest line of a stage and the end's, under "stage" and "end", where there are any."""
    try:
        with progress.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        told = read_line(line)
        for kind in ("stage", "end"):
            if told is not None and kind in told:
                found[kind] = told
    return found


def read_line(line: bytes) -> dict[str, Any] | None:
    """None of a line that is cut off."""
    try:
        told = json.loads(line)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _write_started(folder: Path, pid: int, wanted: Wanted, by: str) -> None:
    import psutil

    try:
        process_started = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        process_started = 0.0
    started = {
        "source": wanted.source,
        "full": wanted.full,
        "evolve": wanted.evolve,
        "started": round(time.time(), 3),
        "by": by,
        "pid": pid,
        "process_started": process_started,
    }
    temporary = folder / ".started.json"
    temporary.write_text(json.dumps(started, ensure_ascii=False) + "\n", "utf-8")
    temporary.replace(folder / "started.json")
