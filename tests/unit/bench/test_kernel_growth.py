"""The benchmark of the kernels at sizes where it is quick: what it writes, fits, reports and cuts off."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hornbeam.errors import UsageError

BENCH = Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
try:
    import kernels as script
    from kernel_growth import growth, kernels, peers, planted, plots, worker
    from kernel_growth.work import Inputs, NotInstalledError, Work
finally:
    sys.path.remove(str(BENCH))
    # transformers takes any module of that name for a library.
    sys.modules.pop("kernels", None)

N = 150


@pytest.fixture(scope="module", name="inputs")
def _inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    folder = tmp_path_factory.mktemp("planted") / "graph"
    planted.write_planted_graph(folder, N, seed=1, dimension=16)
    return Inputs(folder)


@pytest.fixture(scope="module", name="measured")
def _measured(inputs: Inputs) -> dict[str, dict[str, Any]]:
    """Every kernel, in order, at one tiny size in this process."""
    return {name: worker.measure(kernel.prepare(inputs)) for name, kernel in kernels.KERNELS.items()}


def test_the_planted_graph_has_the_degree_the_types_and_the_communities_that_it_says(tmp_path: Path) -> None:
    n = 5000
    planted.write_planted_graph(tmp_path, n, dimension=64)
    inputs = Inputs(tmp_path)
    heads, relations, tails = inputs.triples
    labels, vectors = inputs.load("labels"), inputs.load("vectors")
    assert len(heads) == len(relations) == len(tails) == 3 * n
    assert set(np.unique(relations)) == set(range(40))
    sizes = np.bincount(labels)
    assert sizes[:-1].min() >= 20
    assert sizes.max() <= 60
    assert (labels[heads] == labels[tails]).mean() == pytest.approx(0.9, abs=0.02)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    same = (vectors[heads] * vectors[tails]).sum(axis=1)[labels[heads] == labels[tails]].mean()
    anyone = (vectors[:-1] * vectors[1:]).sum(axis=1).mean()
    assert same > anyone + 0.3
    assert abs(np.corrcoef(labels, np.arange(n))[0, 1]) < 0.1  # numbers of entities say nothing
    assert inputs.load("queries").shape == (1000, 64)


def test_the_planted_graph_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        planted.write_planted_graph(tmp_path / name, 200, seed=seed, dimension=8)
    files = sorted(file.name for file in (tmp_path / "a").iterdir())
    assert all((tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes() for f in files)
    assert all((tmp_path / "a" / f).read_bytes() != (tmp_path / "c" / f).read_bytes() for f in files)


@pytest.mark.parametrize("n", [1, 19, 21])
def test_a_planted_graph_may_be_smaller_than_a_community(tmp_path: Path, n: int) -> None:
    planted.write_planted_graph(tmp_path, n, dimension=4)
    assert len(Inputs(tmp_path).load("labels")) == n


def test_a_graph_of_a_file_is_measured_with_what_needs_no_vectors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "graph.tsv"
    file.write_text("".join(f"a{i % 40}\tknows\tб{i % 37}\n" for i in range(300)), encoding="utf-8")
    assert (
        script.main(["--triples", str(file), "--no-peers", "--only", "paths,split,components", "--json"]) == 0
    )
    report = json.loads(capsys.readouterr().out)
    assert report["sizes"] == [77]
    assert set(report["kernels"]) == {"paths", "components"}
    file.write_text("a\tb\n")
    with pytest.raises(UsageError, match="line 1"):
        script.main(["--triples", str(file)])


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_every_kernel_is_measured(measured: dict[str, dict[str, Any]], name: str) -> None:
    point = measured[name]
    assert point["seconds"] > 0
    assert point["peak_mib"] >= point["peak_before_mib"] > 0
    json.dumps(point)


@pytest.mark.parametrize(
    "name", ["split", "merge", "refine", "levels", "communities", "tree", "leiden", "components"]
)
def test_every_entity_has_a_community(measured: dict[str, dict[str, Any]], name: str) -> None:
    assert measured[name]["coverage"] == 1.0


def test_what_is_reported_of_rankings_paths_and_neighbours(measured: dict[str, dict[str, Any]]) -> None:
    batch = measured["pagerank_batch"]
    ratio = batch["one_after_another_seconds"] / batch["batch_seconds"]
    assert batch["times_faster_than_one_after_another"] == pytest.approx(ratio)
    assert batch["largest_difference"] <= 2e-6
    assert measured["neighbours_query"]["recall_at_10"] == 1.0  # exact at this size
    assert measured["paths_hub"]["largest_degree"] >= N > measured["paths"]["largest_degree"]
    assert measured["paths"]["p95_ms"] >= measured["paths"]["p50_ms"] > 0


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("name", peers.PEERS)
def test_what_is_compared_with_runs_on_the_same_graph(inputs: Inputs, name: str) -> None:
    try:
        point = worker.measure(peers.PEERS[name].prepare(inputs))
    except NotInstalledError as missing:
        pytest.skip(str(missing))
    assert point["seconds"] > 0
    assert peers.PEERS[name].beside in kernels.KERNELS
    if name.endswith("pagerank"):
        assert point["largest_difference_from_ours"] <= 2e-6


def test_a_library_that_is_not_there_is_named(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(NotInstalledError, match="pip install igraph"):
        peers.PEERS["igraph_pagerank"].prepare(inputs)


def test_labels_that_leave_a_number_out_or_miss_an_entity_are_no_partition(inputs: Inputs) -> None:
    with pytest.raises(AssertionError):
        kernels._partition(np.full(N, 1), inputs)
    with pytest.raises(AssertionError):
        kernels._partition(np.zeros(N - 1, dtype=int), inputs)
    holes = np.zeros(N, dtype=int)
    holes[:15] = -1
    assert kernels._coverage(holes, N) == pytest.approx(0.9)


def test_the_seconds_are_the_median_run_for_one_operation() -> None:
    runs = iter(range(100))

    def spin() -> int:
        return sum(range(1000 * 10 ** min(3, next(runs))))

    point = worker.measure(Work(spin, lambda total: {"total": total}, operations=10))
    assert 1 <= point["runs"] <= worker.RUNS
    assert point["total"] > 0


def test_the_exponent_is_the_slope_of_the_logarithms() -> None:
    def points(*seconds: float) -> list[dict[str, Any]]:
        return [{"n": 10**k, "seconds": s} for k, s in enumerate(seconds, start=3)]

    assert growth.exponent(points(1, 10, 100)) == pytest.approx(1.0)
    assert growth.exponent(points(2, 200, 20000)) == pytest.approx(2.0)
    assert growth.exponent(points(1, 10, 1000)) == pytest.approx(1.5)
    assert growth.exponent([*points(1, 10), {"n": 10**5, "cut_off": True}]) == pytest.approx(1.0)
    assert growth.exponent(points(1)) is None
    found = growth.summary([*points(1, 10, 1000), {"n": 10**6, "skipped": "x"}])
    assert found["exponent_of_the_two_largest"] == pytest.approx(2.0)
    assert found["reached"] == 10**5
    assert len(found["points"]) == 4
    assert growth.summary([{"n": 10, "failed": "x"}])["reached"] is None


def test_what_a_measurement_reads_is_measured_before_it() -> None:
    names = growth.closure(["communities", "structural_similarity"])
    assert names == ["representation", "split", "merge", "communities", "structural_similarity"]
    assert growth.closure(["networkx_pagerank"]) == ["pagerank", "networkx_pagerank"]


def test_a_measurement_that_is_cut_off_says_so_and_is_not_tried_on_larger_graphs(tmp_path: Path) -> None:
    told: list[str] = []
    points = growth.measure_growth(
        [60, 40],
        ["pagerank", "networkx_pagerank", "components"],
        limit=0.001,
        peer_limit=60,
        work=tmp_path,
        tell=told.append,
    )
    assert points["components"] == [
        {"n": 40, "cut_off": True, "limit_seconds": 0.001},
        {"n": 60, "skipped": "cut off at 40 entities"},
    ]
    assert points["networkx_pagerank"][0]["skipped"] == "needs pagerank, which gave no result"
    assert any("cut off after 0.001 s" in line for line in told)
    assert list(tmp_path.iterdir()) == []  # inputs are removed


def test_a_measurement_that_fails_says_why(inputs: Inputs) -> None:
    point = growth._in_process(["no_such_kernel", str(inputs.folder)], None)
    assert "no_such_kernel" in point["failed"]
    assert growth.outcome(point).startswith("failed: ")


def test_the_peak_memory_is_the_measurements_own_and_not_its_parents() -> None:
    held = np.ones(40_000_000)  # 305 MiB, touched
    code = f"import sys; sys.path.insert(0, {str(BENCH)!r})\nfrom kernel_growth.worker import peak_mib"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint(peak_mib())"], capture_output=True, text=True, check=True
    )
    assert 5 < float(run.stdout) < 250 < worker.peak_mib()
    assert held.sum() == len(held)


def bench_kernels(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from hornbeam.cli import main; main()", "bench", "kernels", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module", name="report")
def _report(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str, Path]:
    plots = tmp_path_factory.mktemp("plots")
    options = ["--sizes", "80,40", "--json", "--only", "leiden,graspologic_leiden,components"]
    run = bench_kernels(*options, *(["--plots", str(plots)] if _has_matplotlib() else []))
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout), run.stderr, plots


def _has_matplotlib() -> bool:
    import importlib.util

    return importlib.util.find_spec("matplotlib") is not None


def test_the_command_prints_one_json_document_and_progress_beside_it(
    report: tuple[dict[str, Any], str, Path],
) -> None:
    document, errors, _ = report
    assert document["sizes"] == [40, 80]
    assert list(document["kernels"]) == ["leiden", "components"]
    for name in ("leiden", "components"):
        kernel = document["kernels"][name]
        assert [point["n"] for point in kernel["points"]] == [40, 80]
        assert kernel["reached"] == 80
        assert kernel["coverage"] == 1.0
        assert isinstance(kernel["exponent"], float)
        assert all(point["seconds"] > 0 and point["peak_mib"] > 1 for point in kernel["points"])
    assert document["peers"]["graspologic_leiden"]["beside"] == "leiden"
    assert "components" in errors


def test_there_is_a_plot_for_each_kernel_with_what_is_beside_it(
    report: tuple[dict[str, Any], str, Path], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra bench)")
    document, _, folder = report
    assert sorted(file.name for file in folder.iterdir()) == ["components.svg", "leiden.svg"]
    again = plots.draw(document, tmp_path)
    assert [file.read_bytes() for file in again] == [(folder / file.name).read_bytes() for file in again]
    leiden, components = ((folder / f"{name}.svg").read_text() for name in ("leiden", "components"))
    assert "</svg>" in leiden
    assert "graspologic leiden" in leiden
    assert "graspologic" not in components


@pytest.mark.parametrize("bad", [["--sizes", "0"], ["--only", "nothing"], ["--sizes", "x"]])
def test_arguments_that_mean_nothing_are_refused(bad: list[str]) -> None:
    run = bench_kernels(*bad)
    assert run.returncode == 2
    assert "error: argument" in run.stderr


def test_a_kernel_that_failed_or_left_entities_out_makes_the_command_fail() -> None:
    fine = {"coverage": 1.0, "points": [{"n": 1, "seconds": 1.0}, {"n": 2, "cut_off": True}]}
    holes = {"coverage": 0.9, "points": [{"n": 1, "seconds": 1.0}]}
    failed = {"points": [{"n": 1, "failed": "MemoryError"}]}
    assert script.wrong({"kernels": {"a": fine, "b": holes, "c": failed}}) == ["b", "c"]
