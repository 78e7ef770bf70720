"""The Python example of the README runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

import hornbeam.llm.opening
from support.importing import import_triples
from support.walker import GrammarWalker

README = Path(__file__).parents[2] / "README.md"
TRIPLES = "Hu Lanting\tinvented\ttide gauge\ntide gauge\ttried_out_in\tLanbi Harbour\n"


def test_the_python_example_answers_with_citations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), flags=re.S)
    facts = tmp_path / "facts.tsv"
    facts.write_text(TRIPLES, "utf-8")
    import_triples(tmp_path / "papers-index", facts)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hornbeam.llm.opening, "open_model", lambda settings: GrammarWalker())
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    assert "pieces of evidence" in capsys.readouterr().out
