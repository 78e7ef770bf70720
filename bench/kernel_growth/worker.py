"""One measurement in a process of its own: ``python worker.py NAME FOLDER`` prints one JSON object.

The seconds are the median of up to five runs, as many as fit in two seconds. The memory is the process's
peak: its libraries, its inputs as far as they were read, and the kernel.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

if not __package__:  # run, not imported
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kernel_growth.kernels import KERNELS
from kernel_growth.peers import PEERS
from kernel_growth.planted import write_planted_graph
from kernel_growth.work import Inputs, NotInstalledError, Work

GENERATE = "generate"
RUNS, LONG_ENOUGH = 5, 2.0
NOT_INSTALLED = 3
"""Exit code of a comparison whose library is not there; the reason is the last line of standard error."""


def main(arguments: list[str]) -> int:
    name, folder, *rest = arguments
    if name == GENERATE:
        write_planted_graph(Path(folder), int(rest[0]))
        return 0
    inputs = Inputs(Path(folder))
    try:
        work = (KERNELS | PEERS)[name].prepare(inputs)
    except NotInstalledError as missing:
        print(missing, file=sys.stderr)
        return NOT_INSTALLED
    print(json.dumps(measure(work)))
    return 0


def measure(work: Work) -> dict[str, Any]:
    before = peak_mib()
    seconds: list[float] = []
    while len(seconds) < RUNS and sum(seconds) < LONG_ENOUGH:
        start = time.perf_counter()
        result = work.run()
        seconds.append(time.perf_counter() - start)
    peak = peak_mib()
    return {
        "seconds": median(seconds) / work.operations,
        "runs": len(seconds),
        "peak_mib": round(peak, 1),
        "peak_before_mib": round(before, 1),
        **work.report(result),
    }


def peak_mib() -> float:
    """The most memory that this process ever held, in MiB."""
    try:
        # Of this program alone; what `getrusage` says begins with the size of the process that started it.
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return next(int(row.split()[1]) for row in status.splitlines() if row.startswith("VmHWM:")) / 1024
    except (OSError, StopIteration):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (1024 * 1024 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
