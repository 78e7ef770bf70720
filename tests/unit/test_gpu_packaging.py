"""The GPU box's locks, image and compose file: pinned, whole, offline, and true to pyproject.toml."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(f"gpu_{name}", ROOT / "locks" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


gpu_check, gpu_lock = script("check"), script("lock")

LINE = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>\S+) --hash=sha256:[0-9a-f]{64}  # (?P<wheel>\S+\.whl)")
#: Lock → the parts of pyproject.toml that it must satisfy.
EXTRAS = {
    "gpu-all-in-one.txt": ("vllm", "rapids", "energy"),
    "gpu-engine.txt": ("gpu-engine", "rapids", "energy"),
}


def locked(name: str) -> dict[str, tuple[str, str]]:
    """Package → version and wheel."""
    found = {}
    for line in (ROOT / "locks" / name).read_text("utf-8").splitlines():
        match = LINE.fullmatch(line)
        assert match, line
        found[match["name"]] = (match["version"], match["wheel"])
    return found


@pytest.mark.parametrize("name", gpu_lock.LOCKS)
class TestALock:
    def test_names_a_wheel_for_the_platform_on_every_line(self, name: str) -> None:
        wanted = set(gpu_lock.wanted_tags())
        for package, (version, wheel) in locked(name).items():
            project, built, _, tags = parse_wheel_filename(wheel)
            assert (project, str(built)) == (canonicalize_name(package), version)
            assert tags & wanted, wheel

    def test_is_sorted_and_has_each_package_once(self, name: str) -> None:
        text = (ROOT / "locks" / name).read_text("utf-8")
        names = [line.split("==")[0] for line in text.splitlines()]
        assert names == sorted(set(names))
        assert len(names) > 100


@pytest.mark.parametrize("name", EXTRAS)
def test_a_lock_has_what_pyproject_asks_for(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"]
    asked = project["project"]["dependencies"] + [line for extra in EXTRAS[name] for line in extras[extra]]
    found = locked(name)
    for requirement in map(Requirement, asked):
        version, _ = found[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement


def test_the_two_environments_run_one_torch_and_one_grammar_compiler() -> None:
    one, engine, server = (
        locked(name) for name in ("gpu-all-in-one.txt", "gpu-engine.txt", "gpu-server.txt")
    )
    for package in ("torch", "xgrammar", "nvidia-cublas"):
        assert one[package] == engine[package] == server[package]
    assert "vllm" in one
    assert "vllm" in server
    assert "vllm" not in engine
    assert "cuml-cu13" in one
    assert "cuml-cu13" in engine
    assert "cuml-cu13" not in server
    assert one["numba"][0] == "0.65.0"  # vLLM's; see tool.uv


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Dockerfile.cuda").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [
        (head, rest.strip())
        for head, _, rest in (line.strip().partition(" ") for line in joined.splitlines() if line.strip())
    ]


def stages() -> dict[str, list[tuple[str, str]]]:
    """Stage → its instructions, its own `FROM` first."""
    found: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for head, rest in instructions():
        if head == "FROM":
            current = found.setdefault(rest.split(" AS ")[1], [])
        current.append((head, rest))
    return found


TARGETS = ("all-in-one", "server", "engine")
KNOWN = {
    *("ARG", "FROM", "RUN", "ENV", "WORKDIR", "COPY", "USER", "EXPOSE", "VOLUME", "HEALTHCHECK"),
    *("ENTRYPOINT", "CMD"),
}


class TestTheImage:
    def test_is_written_in_instructions_that_there_are(self) -> None:
        assert {head for head, _ in instructions()} <= KNOWN

    def test_begins_with_a_pinned_base_and_has_all_targets(self) -> None:
        (base,) = [rest for head, rest in instructions() if head == "ARG"]
        assert re.fullmatch(r"BASE=python:3\.12\.\d+-slim-[a-z]+", base)
        assert set(TARGETS) <= set(stages())
        for stage in stages().values():
            source = stage[0][1].split(" AS ")[0]
            assert source in {"${BASE}", *stages()}

    @pytest.mark.parametrize("target", TARGETS)
    def test_runs_as_a_user_with_a_health_check_and_without_installers(self, target: str) -> None:
        stage = stages()[target]
        heads = [head for head, _ in stage]
        assert "RUN" not in heads  # built in another stage
        assert ("USER", "hornbeam") in stage
        assert heads.index("USER") < heads.index("ENTRYPOINT")
        assert "HEALTHCHECK" in heads

    def test_installs_from_the_locks_alone_and_by_hash(self) -> None:
        installs = [rest for head, rest in instructions() if head == "RUN" and "pip install" in rest]
        from_locks = [rest for rest in installs if "-r /locks/" in rest]
        assert len(from_locks) == 3
        assert all("--no-deps" in rest and "--require-hashes" in rest for rest in from_locks)
        for rest in set(installs) - set(from_locks):
            assert "--no-deps /wheel/" in rest or re.search(r"hatchling==\d", rest)

    def test_is_offline_when_it_runs(self) -> None:
        environment = " ".join(rest for head, rest in instructions() if head == "ENV")
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK"):
            assert f"{name}=1" in environment

    def test_copies_what_there_is_and_the_context_lets_in(self) -> None:
        let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
        for head, rest in instructions():
            if head == "COPY" and "--from" not in rest:
                for source in shlex.split(rest)[:-1]:
                    assert (ROOT / source).exists(), source
                    assert source.split("/")[0] in let_in

    def test_starts_commands_that_the_environments_have(self) -> None:
        scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
        started = {target: dict(stages()[target])["ENTRYPOINT"] for target in TARGETS}
        assert started["engine"] == started["all-in-one"] == '["hornbeam"]'
        assert "hornbeam" in scripts
        assert started["server"] == '["vllm", "serve"]'
        assert "vllm" in locked("gpu-server.txt")


def test_the_composed_services_are_targets_on_a_closed_network() -> None:
    yaml = pytest.importorskip("yaml")
    composed = yaml.safe_load((ROOT / "compose.cuda.yaml").read_text("utf-8"))
    for service in composed["services"].values():
        assert service["build"]["target"] in TARGETS
        assert service["build"]["dockerfile"] == "Dockerfile.cuda"
        assert service["networks"] == ["inside"]
    assert composed["networks"] == {"inside": {"internal": True}}
    settings = composed["services"]["engine"]["environment"]
    assert settings["HORNBEAM_MODEL__PATH"] == "http://model:8000"


def test_the_check_sees_a_parameter_that_is_not_there() -> None:
    def call(one: int, two: int) -> None: ...

    assert gpu_check.lacking(call, ("one", "three")) == ["three"]


def test_the_check_knows_every_lock_and_what_it_imports_is_locked() -> None:
    assert {f"{setup}.txt" for setup in gpu_check.MODULES} == set(gpu_lock.LOCKS)


def test_xgrammar_has_what_we_call() -> None:
    pytest.importorskip("xgrammar")
    assert gpu_check.xgrammar_problems() == []
