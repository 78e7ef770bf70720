"""`hornbeam index --tier fast` with the real embedder: no engine is loaded, and search finds its way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from support.invariants import check_invariants

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
#: The command line, and then what was imported on the way.
RUN = """
import sys
from hornbeam.cli import main
try:
    main()
finally:
    print("loaded:", sorted({"vllm", "xgrammar"} & set(sys.modules)), file=sys.stderr)
"""


def run(*arguments: str) -> tuple[dict[str, object], str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_a_corpus_is_indexed_and_searched_without_a_model(tmp_path: Path) -> None:
    index = tmp_path / "index"
    documents = [str(CORPUS / name) for name in ("corvane-tidal-works.md", "hu-lanting.zh.txt")]
    report, said = run(
        "index", *documents, "--index", str(index), "--tier", "fast", "--schema", "medical", "--json"
    )
    assert "loaded: []" in said
    assert "schema is 'cooccurrence', 'medical' is for the model tier" in said
    assert report["tokens"] == {}
    check_invariants(index / "versions" / str(report["version"]))
    found, _ = run("search", "Tolvemere Harbour Authority", "--index", str(index), "--json")
    items = found["items"]
    assert isinstance(items, list)
    assert any("Tolvemere Harbour Authority" in item["text"] for item in items)
