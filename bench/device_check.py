"""Is the GPU right, and how far from its memory's speed? For the machine with the GPU.

    python bench/device_check.py [--size N] [--json] [--skip-tests] [--self-test]

Runs the kernels' contract tests, then every kernel on the device and on the CPU with the same input, compares
the two within the tolerance that the table states, and times the device: the median of a few runs, by CUDA
events, beside the floor, the bytes of each input read once and each output written once at the bandwidth that
a large device-to-device copy reaches. At the end a small random model writes under
grammars on both. It works with whatever of CuPy, cuML, cuVS, pylibcugraph and faiss-gpu
is there; what is missing is skipped with the reason.

Exit code 0: everything that ran agrees; 1: a mismatch or a failed test; 2: no CUDA device, nothing was
checked. ``--self-test`` puts the CPU on both sides, which tries the comparison and says nothing about a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from device.checks import checks
from device.contract import contract_tests
from device.decoding import decoding_check
from device.report import Row, exit_code, table
from device.running import copy_bandwidth, run_check

from hornbeam_kernels import cuda_libraries
from hornbeam_kernels.backend import BackendUnavailableError, select_backend

SIZE = 50_000
"""Entities by default: a minute or two for the CPU's side."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table, or with ``--json`` one JSON document, and returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=SIZE, help=f"entities (default {SIZE})")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--skip-tests", action="store_true", help="without the contract tests")
    parser.add_argument("--self-test", action="store_true", help="the CPU on both sides")
    options = parser.parse_args(arguments)
    cpu = select_backend("cpu")
    try:
        device = cpu if options.self_test else select_backend("cuda")
    except BackendUnavailableError as error:
        return finish([], f"nothing was checked: {error}", options.json, 2)
    bandwidth = copy_bandwidth(device)
    heading = f"{device.reason}; copies {bandwidth / 1e9:.0f} GB/s; {options.size} entities"
    if options.self_test:
        heading = f"SELF-TEST, the CPU on both sides, no device was checked; {heading}"
    else:
        heading += "".join(
            f"; {part}: {library}" for part, library in cuda_libraries.chosen_libraries().items()
        )
    rows = [] if options.skip_tests or options.self_test else [contract_tests()]
    rows += [run_check(check, device, cpu, bandwidth) for check in checks(options.size)]
    rows.append(decoding_check("cuda" if device.on_device else "cpu"))
    return finish(rows, heading, options.json, exit_code(rows))


def finish(rows: Sequence[Row], heading: str, as_json: bool, code: int) -> int:
    """Prints and returns the exit code."""
    if as_json:
        print(
            json.dumps(
                {"heading": heading, "exit_code": code, "checks": [asdict(row) for row in rows]}, indent=2
            )
        )
    elif rows:
        print(table(rows, heading))
    else:
        print(heading)
    return code


if __name__ == "__main__":
    sys.exit(main())
