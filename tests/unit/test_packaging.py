"""What is cheap to import, what a wheel holds, and that the tree builds on any machine."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pkgutil
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import hornbeam
import hornbeam_kernels

ROOT = Path(__file__).resolve().parents[2]

#: Each takes from a tenth of a second to seconds to load; functions import them.
HEAVY = (
    *("cupy", "duckdb", "faiss", "graspologic_native", "numba", "pandas", "pyarrow", "ray", "scipy"),
    *("sentence_transformers", "sklearn", "tokenizers", "torch", "trafilatura", "transformers", "vllm"),
    "xgrammar",
)
#: Loaded by no module of the tree, only by calls.
ONLY_IN_CALLS = ("faiss", "sentence_transformers", "sklearn", "torch", "transformers", "vllm", "xgrammar")


def run_python(code: str, *arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter; `path` comes before everything that is installed."""
    environment = dict(os.environ)
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=120)


def loaded_of(names: tuple[str, ...], code: str) -> list[str]:
    """Which of the named modules are loaded after the code has run in a new interpreter."""
    report = f"\nimport json, sys; print('LOADED ' + json.dumps(sorted(set({names!r}) & set(sys.modules))))"
    run = run_python(code + report)
    assert run.returncode == 0, run.stderr
    line = next(line for line in run.stdout.splitlines() if line.startswith("LOADED "))
    loaded: list[str] = json.loads(line.removeprefix("LOADED "))
    return loaded


def all_modules() -> list[str]:
    """Every module of both packages but `__main__`, which runs."""
    found = []
    for package in (hornbeam, hornbeam_kernels):
        walked = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        found += [package.__name__, *(module.name for module in walked)]
    return [name for name in found if not name.endswith(".__main__")]


class TestImports:
    def test_the_report_sees_a_module_that_is_loaded(self) -> None:
        assert loaded_of(("json", "sqlite3", "torch"), "import sqlite3") == ["json", "sqlite3"]

    @pytest.mark.parametrize("package", ["hornbeam", "hornbeam_kernels"])
    def test_a_package_loads_nothing_heavy(self, package: str) -> None:
        assert loaded_of((*HEAVY, "numpy"), f"import {package}") == []

    def test_the_help_of_the_command_line_loads_nothing_heavy(self) -> None:
        help_of_main = """
import sys
from hornbeam.cli import main
sys.argv = ["hornbeam", "--help"]
try:
    main()
except SystemExit as exit:
    assert not exit.code, exit.code
"""
        assert loaded_of((*HEAVY, "numpy"), help_of_main) == []

    def test_no_module_loads_an_engine_when_it_is_imported(self) -> None:
        imports = f"import importlib\nfor name in {all_modules()!r}: importlib.import_module(name)"

        assert loaded_of(ONLY_IN_CALLS, imports) == []

    @pytest.mark.parametrize("name", all_modules())
    def test_a_module_holds_the_names_that_it_offers(self, name: str) -> None:
        module = importlib.import_module(name)

        offered = getattr(module, "__all__", [])
        assert [public for public in offered if not hasattr(module, public)] == []
        assert module.__file__ is not None
        is_empty = Path(module.__file__).stat().st_size == 0  # an `__init__.py` may be
        assert module.__doc__ or is_empty, f"{name} does not say what it is for"

    def test_every_file_is_in_a_package(self) -> None:
        """A folder without `__init__.py` is importable here and missing in what `walk_packages` sees."""
        sources = [ROOT / "engine" / "hornbeam", ROOT / "kernels" / "hornbeam_kernels"]
        folders = {file.parent for source in sources for file in source.rglob("*.py")}

        assert [folder for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []

    @pytest.mark.parametrize("folder", ["engine", "kernels"])
    def test_the_source_folders_are_no_packages(self, folder: str) -> None:
        """transformers looks for a package called `kernels`."""
        assert not (ROOT / folder / "__init__.py").exists()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built with what is installed: no network."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed (extra dev)")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    (built,) = folder.glob("hornbeam-*.whl")
    return built


class TestTheWheel:
    def test_holds_every_file_of_the_packages(self, wheel: Path) -> None:
        names = set(zipfile.ZipFile(wheel).namelist())
        for folder in (ROOT / "engine", ROOT / "kernels"):
            for file in folder.rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts and ".egg-info" not in str(file):
                    assert file.relative_to(folder).as_posix() in names

    def test_holds_types_prompts_and_seed_schemas(self, wheel: Path) -> None:
        names = set(zipfile.ZipFile(wheel).namelist())

        assert {"hornbeam/py.typed", "hornbeam_kernels/py.typed"} <= names
        assert "hornbeam/prompts/en/extraction.txt" in names
        seeds = {f"hornbeam/seed_schemas/{file.name}" for file in (ROOT / "schemas").glob("*.json")}
        assert seeds
        assert seeds <= names

    def test_runs_its_benchmarks_where_it_is_installed(self, wheel: Path, tmp_path: Path) -> None:
        zipfile.ZipFile(wheel).extractall(tmp_path)

        code = "import sys, hornbeam.benchmarks as b; b.run_benchmark(sys.argv[1], ['--help'])"
        for name in (
            "extraction",
            "extraction_baselines",
            "extraction_forms",
            "text2kg_baselines",
            "type_growth",
            "prompt_shapes",
            "index",
            "kernels",
        ):
            run = run_python(code, name, path=tmp_path)
            assert run.returncode == 0, run.stderr
            assert f"usage: hornbeam bench {name.replace('_', '-')}" in run.stdout
        scripts = tmp_path / "hornbeam" / "bench_scripts"
        growth = {file.name for file in (ROOT / "bench" / "kernel_growth").glob("*.py")}
        assert {file.name for file in (scripts / "kernel_growth").iterdir()} - {"__pycache__"} == growth
        assert {file.name for file in scripts.iterdir()} - {"__pycache__"} == {
            "extraction.py",
            "extraction_forms.py",
            "resolution_calls.py",
            "host_work.py",
            "index.py",
            "replayed_index.py",
            "extraction_baselines.py",
            "text2kg_baselines.py",
            "type_growth.py",
            "prompt_shapes.py",
            "gpu_costs.py",
            "kernels.py",
            "verification.py",
            "kernel_growth",
            "query.py",
            "serve.py",
            "page.py",
            "served_mix.py",
            "query_growth",
        }

    def test_holds_nothing_else(self, wheel: Path) -> None:
        roots = {name.split("/", 1)[0] for name in zipfile.ZipFile(wheel).namelist()}

        assert {root for root in roots if not root.endswith(".dist-info")} == {"hornbeam", "hornbeam_kernels"}

    def test_finds_its_seed_schemas_where_it_is_installed(self, wheel: Path, tmp_path: Path) -> None:
        zipfile.ZipFile(wheel).extractall(tmp_path)

        code = "import hornbeam.schema as s; print(s.__file__, *s.seed_schemas()); s.load_schema('general')"
        run = run_python(code, path=tmp_path)

        assert run.returncode == 0, run.stderr
        file, *seeds = run.stdout.split()
        assert Path(file).is_relative_to(tmp_path)
        assert seeds == sorted(file.stem for file in (ROOT / "schemas").glob("*.json"))

    def test_offers_the_command(self, wheel: Path) -> None:
        archive = zipfile.ZipFile(wheel)
        (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))

        assert "hornbeam = hornbeam.cli:main" in archive.read(entry_points).decode()


# In pieces, so that this file does not hold what it looks for.
MACHINE_PATHS = ("/wo" + "rk/", "/ro" + "ot/", "/opt/whe" + "els", "/opt/py" + "pi")
INDEX_HOSTS = (
    *("py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "npm" + "js.com", "deb." + "debian.org"),
    *("anaconda" + ".org", "pypi." + "nvidia.com", "download." + "pytorch.org"),
)
#: The one build that is on no general index.
ALLOWED = {("Makefile", INDEX_HOSTS[-1])}


def found_in(text: str) -> list[str]:
    """The machine paths and index hosts in a text. A path counts from its root: `home` + a path does not."""
    paths = [path for path in MACHINE_PATHS if re.search(rf"(?<![\w.~-]){re.escape(path)}", text)]
    return paths + [host for host in INDEX_HOSTS if host in text.lower()]


class TestTheTree:
    def test_holds_no_path_of_a_machine_and_no_package_index(self) -> None:
        found = [
            (name, what)
            for name in git_files()
            for what in found_in((ROOT / name).read_text("utf-8", "replace"))
            if (name, what) not in ALLOWED
        ]

        assert found == []

    @pytest.mark.parametrize(
        "text", [f"cd {MACHINE_PATHS[0]}main", f'"{MACHINE_PATHS[1]}.cache"', INDEX_HOSTS[0]]
    )
    def test_the_search_finds_what_it_looks_for(self, text: str) -> None:
        assert len(found_in(text)) == 1

    def test_the_ci_script_can_be_run(self) -> None:
        assert os.access(ROOT / ".ci" / "run", os.X_OK)


def git_files() -> list[str]:
    """Files of the checkout that are committed or would be; a source archive has no list."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    assert "pyproject.toml" in names
    return names
