"""`hornbeam evaluate communities`: files, measures, report."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hornbeam.cli import app
from hornbeam.errors import UsageError
from hornbeam.evaluate.communities import KnownGraph, score
from hornbeam.evaluate.community_files import labelled_graphs
from hornbeam.evaluate.community_report import run
from hornbeam.evaluate.planted import Planting, planted_graph
from hornbeam_kernels.communities import Graph

GML = """graph [
  node [ id 7 label "A" value "red" ]
  node [ id 3 label "B" value "blue" ]
  node [ id 5 label "C" value "red" ]
  edge [ source 7 target 5 ]
  edge [ source 3 target 5 ]
]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.gml").write_text(GML)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "list.edges.tsv").write_text("0\t1\n1\t2\n\n2\t0\n3\t4\n")
    (tmp_path / "deep" / "list.labels.tsv").write_text("0\tMr. Hi\n1\tMr. Hi\n2\tMr. Hi\n3\tб\n4\tб\n")
    return tmp_path


def test_both_forms_of_file_are_read(folder: Path) -> None:
    gml, lists = labelled_graphs(folder)
    assert (gml.name, lists.name) == ("small", "list")
    assert gml.labels.tolist() == [1, 0, 1]
    assert list(zip(gml.heads.tolist(), gml.tails.tolist(), strict=True)) == [(0, 2), (1, 2)]
    assert lists.labels.tolist() == [0, 0, 0, 1, 1]
    assert lists.tails.tolist() == [1, 2, 0, 4]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("small.gml", "graph [ node [ id 0 label ", "not a GML graph"),
        ("small.gml", 'graph [ node [ id 0 label "A" ] ]', "no 'value'"),
        ("small.gml", "graph 5", "not a GML graph"),
        ("small.gml", "graph " + "[ a " * 5000, "not a GML graph"),
        ("deep/list.edges.tsv", "0\t" + "1" * 5000, "edge 1 ends at"),
        ("deep/list.labels.tsv", "0\ta\n0\tb\n", "each once"),
        ("deep/list.edges.tsv", "0\t1\n0\t9\n", "edge 2 ends at '9'"),
        ("deep/list.edges.tsv", "0\t1\nx\t1\n", "line 2"),
        ("deep/list.labels.tsv", "0\ta\n2\tb\n", "nodes must be 0 to 1"),
        ("deep/list.labels.tsv", None, "cannot be read"),
    ],
)
def test_a_file_in_no_form_is_one_clear_error(
    folder: Path, name: str, text: str | None, message: str
) -> None:
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        labelled_graphs(folder)
    assert "\n" not in str(caught.value).strip()


def test_a_folder_may_be_called_like_a_graph_and_a_file_begin_with_a_mark(folder: Path) -> None:
    (folder / "folder.gml").mkdir()
    labels = folder / "deep" / "list.labels.tsv"
    labels.write_text("\ufeff" + labels.read_text(encoding="utf-8"), encoding="utf-8")
    assert len(labelled_graphs(folder)) == 2


def test_a_path_without_graphs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no graph"):
        labelled_graphs(tmp_path)
    with pytest.raises(UsageError, match="no such"):
        labelled_graphs(tmp_path / "nowhere")


def test_measures_of_the_truth_and_of_one_lump() -> None:
    made = planted_graph(1000, Planting(mixing=0.0, noise=1.0), seed=0)
    graph = Graph(made.entity_vectors, made.relation_vectors, made.heads, made.relations, made.tails)
    known = KnownGraph("g", graph, made.labels)
    truth = score(known, made.labels)
    assert truth["ari"] == truth["nmi"] == 1.0
    assert truth["modularity"] > 0.7
    assert truth["coherence"] == pytest.approx(0.5, abs=0.05)  # 1 / (1 + σ²)
    lump = score(known, np.zeros(1000, dtype=np.int32))
    assert lump["ari"] == 0.0
    assert lump["modularity"] == pytest.approx(0.0, abs=1e-9)
    assert lump["coherence"] == pytest.approx(0.0, abs=0.02)


def test_silent_signals_are_silent() -> None:
    vectors = planted_graph(600, Planting(noise=float("inf")), seed=0)
    same = vectors.labels[:, None] == vectors.labels[None, :]
    np.fill_diagonal(same, False)
    cosine = vectors.entity_vectors @ vectors.entity_vectors.T
    assert abs(cosine[same].mean()) < 0.01
    edges = planted_graph(600, Planting(mixing=1.0), seed=0)
    inside = (edges.labels[edges.heads] == edges.labels[edges.tails]).mean()
    assert inside < 0.1
    loud = planted_graph(600, Planting(mixing=0.2), seed=0)
    assert (loud.labels[loud.heads] == loud.labels[loud.tails]).mean() == pytest.approx(0.8, abs=0.03)
    assert len(loud.heads) == 600 * 3


def test_the_command_reports_every_method_on_every_graph(folder: Path) -> None:
    lines = folder / "predictions.jsonl"
    arguments = [
        "evaluate",
        "communities",
        str(folder),
        "--nodes",
        "120",
        "--mixing",
        "0.2",
        "--noise",
        "inf",
    ]
    result = CliRunner().invoke(
        app, [*arguments, "--draws", "2", "--json", "--predictions", str(lines)], catch_exceptions=False
    )
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["planted"]["as asked"]["noise"] == "inf"
    graphs = {row["graph"] for row in report["rows"]}
    assert graphs == {"small", "list", "planted: as asked"}
    by_graph = [[row["method"] for row in report["rows"] if row["graph"] == graph] for graph in graphs]
    assert by_graph[0] == by_graph[1] == by_graph[2]
    assert {row["draws"] for row in report["rows"] if row["graph"] == "planted: as asked"} == {2}
    found = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(found) == 4 * len(by_graph[0])
    assert {len(line["labels"]) for line in found} == {3, 5, 120}


def test_nothing_to_evaluate_and_nowhere_to_write_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to evaluate"):
        run(None, 0, None, None, 1, 60, 0, None)
    with pytest.raises(UsageError, match="cannot be written"):
        run(None, 50, None, None, 1, 60, 0, tmp_path / "no" / "file")


@pytest.mark.data
def test_planted_and_real_graphs_are_found_again() -> None:
    data = Path(os.environ.get("HORNBEAM_DATA", "../shared/data")) / "community"
    if not data.is_dir():
        pytest.skip(f"no evaluation data at {data}")
    report = run(data, 0, None, None, 1, 100, 42, None)
    ari = {(row["graph"], row["method"]): row["ari"] for row in report["rows"]}
    for mu in ("0.1", "0.2", "0.3"):
        graph = f"lfr_n1000_mu{mu}"
        assert ari[graph, "dual"] >= 0.95 * ari[graph, "leiden"]
