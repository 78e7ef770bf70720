"""Runs the benchmark scripts of ``bench/``, which lie in the checkout or, installed, in the package."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from hornbeam.errors import UsageError

_PACKAGE = Path(__file__).resolve().parent
#: In an installed wheel the scripts lie in the package, in a checkout at the repository's root.
_FOLDERS = (_PACKAGE / "bench_scripts", _PACKAGE.parent.parent / "bench")


def run_benchmark(name: str, arguments: Sequence[str]) -> int:
    """Calls ``main(arguments)`` of the script of that name and returns the exit code that it gives.

    Raises:
        UsageError: no such script, or it needs what is not installed.
        SystemExit: what is wrong with the arguments, told by the script.
    """
    file = next((folder / f"{name}.py" for folder in _FOLDERS if (folder / f"{name}.py").is_file()), None)
    if file is None:
        looked = " and ".join(str(folder) for folder in _FOLDERS)
        raise UsageError(f"no benchmark '{name}': looked in {looked}")
    spec = importlib.util.spec_from_file_location(f"hornbeam_bench_{name}", file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up
    try:
        # A script imports what lies beside it. Not while it runs: transformers takes any module `kernels`
        # that it finds for a library.
        sys.path.insert(0, str(file.parent))
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path.remove(str(file.parent))
        code: int | None = module.main(list(arguments))
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"hornbeam bench {name} needs {missing.name}: pip install 'hornbeam[bench,cpu]'"
        ) from missing
    return code or 0
