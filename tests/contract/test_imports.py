"""The import contracts of pyproject.toml hold: kernels know no engine, stages no command line."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("importlinter", reason="import-linter is not installed (extra dev)")


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    """import-linter writes its cache into the working directory and puts that on the import path."""
    monkeypatch.chdir(ROOT)


def check(config: Path) -> int:
    from importlinter.cli import lint_imports

    return int(lint_imports(config_filename=str(config), cache_dir=None, no_cache=True))


def test_the_import_contracts_hold(capsys: pytest.CaptureFixture[str]) -> None:
    status = check(ROOT / "pyproject.toml")

    assert status == 0, capsys.readouterr().out


def test_a_broken_contract_is_seen(tmp_path: Path) -> None:
    """Without this, a linter that looked at nothing would pass the test above."""
    config = tmp_path / "contracts.toml"
    config.write_text(
        """
[tool.importlinter]
root_packages = ["hornbeam", "hornbeam_kernels"]

[[tool.importlinter.contracts]]
name = "the engine knows no kernels"
type = "forbidden"
source_modules = ["hornbeam"]
forbidden_modules = ["hornbeam_kernels"]
""",
        "utf-8",
    )

    assert check(config) == 1
