"""Write the locks of the GPU box again: ``python locks/lock.py`` in the checkout, with uv on the path.

Each line is one package: version, the hash of one wheel, and that wheel's name. The wheel is the best for
Python 3.12 on x86-64 Linux with glibc 2.34 or newer; a package that has none fails the lock. `[tool.uv]` in
pyproject.toml says what is overridden and why.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from packaging.tags import compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).resolve().parents[1]
PYTHON = (3, 12)
GLIBC = 34
#: File → what goes in: extras of pyproject.toml, or packages by themselves.
LOCKS: dict[str, tuple[str, ...]] = {
    "gpu-all-in-one.txt": tuple(
        part for extra in ("vllm", "rapids", "energy", "serve", "telemetry") for part in ("--extra", extra)
    ),
    "gpu-engine.txt": tuple(
        part
        for extra in ("gpu-engine", "rapids", "energy", "serve", "telemetry")
        for part in ("--extra", extra)
    ),
    "gpu-server.txt": ("vllm",),
}
SERVER = "vllm==0.33.0\nxgrammar==0.2.8\n"


def main() -> None:
    for name, chosen in LOCKS.items():
        with tempfile.TemporaryDirectory() as folder:
            packages = resolve(chosen, Path(folder))
        lines = [line(package) for package in packages]
        (ROOT / "locks" / name).write_text("\n".join(lines) + "\n", "utf-8")
        print(f"{name}: {len(lines)} packages", file=sys.stderr)


def resolve(chosen: tuple[str, ...], folder: Path) -> list[dict[str, Any]]:
    """uv's lock of the chosen packages, without the project itself."""
    source, options = ROOT / "pyproject.toml", list(chosen)
    if chosen == ("vllm",):
        source, options = folder / "server.in", []
        source.write_text(SERVER, "utf-8")
    target = folder / "pylock.toml"
    command = [
        *("uv", "pip", "compile", str(source), *options, "--no-build", "-o", str(target)),
        *("--python-version", f"{PYTHON[0]}.{PYTHON[1]}"),
        *("--python-platform", f"x86_64-manylinux_2_{GLIBC}"),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    packages: list[dict[str, Any]] = tomllib.loads(target.read_text("utf-8"))["packages"]
    return packages


def line(package: dict[str, Any]) -> str:
    order = {tag: place for place, tag in enumerate(wanted_tags())}
    fitting = []
    for wheel in package.get("wheels", ()):
        file = wheel.get("name") or wheel["url"].rsplit("/", 1)[-1].split("#")[0].replace("%2B", "+")
        places = [order[tag] for tag in parse_wheel_filename(file)[3] if tag in order]
        if places:
            fitting.append((min(places), file, wheel["hashes"]["sha256"]))
    if not fitting:
        raise SystemExit(f"{package['name']} {package['version']} has no wheel for x86-64 Linux")
    _, file, digest = min(fitting)
    return f"{package['name']}=={package['version']} --hash=sha256:{digest}  # {file}"


def wanted_tags() -> list[Any]:
    """The best first."""
    platforms = [f"manylinux_2_{minor}_x86_64" for minor in range(GLIBC, 4, -1)]
    platforms += ["manylinux2014_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    return [*cpython_tags(PYTHON, platforms=platforms), *compatible_tags(PYTHON, "cp312", platforms)]


if __name__ == "__main__":
    main()
