"""Builds by two Ray workers on this machine: the result of the local executor, whoever is killed.

One cluster for all: its start is most of the time.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hornbeam.build import BuildReport
from hornbeam.distributed.cluster import Cluster
from hornbeam.distributed.reading import read_by_ray
from hornbeam.errors import ModelError, UsageError
from hornbeam.llm.replay import RecordingModel
from hornbeam.settings import RaySettings
from hornbeam.store.ledger import Ledger
from support.building import build, table_bytes, walker
from support.ray_builds import Replayed, ray_build, ray_settings

DOCUMENTS = 12


@dataclass(frozen=True)
class LocalBuild:
    corpus: Path
    recording: Path
    index: Path
    report: BuildReport


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> LocalBuild:
    """A build in this process, of which the model's answers were recorded."""
    folder = tmp_path_factory.mktemp("local")
    corpus, recording, index = folder / "corpus", folder / "recording.jsonl", folder / "index"
    corpus.mkdir()
    for number in range(DOCUMENTS):
        text = f"Ada Park {number} leads Group {number} in Oslo. She met Bo Lind {number % 5} there."
        (corpus / f"{number:02d}.txt").write_text(text, "utf-8")
    (corpus / "again.txt").write_text((corpus / "00.txt").read_text("utf-8"), "utf-8")
    (corpus / "empty.txt").write_bytes(b"")
    model = RecordingModel(walker(), recording)
    report = build(index, [corpus], model=model, settings=ray_settings())
    model.close()
    return LocalBuild(corpus, recording, index, report)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # workers load their model from `support`
        with Cluster(ray_settings().ray, gpus_per_worker=0) as opened:
            yield opened


def kept(index: Path) -> dict[str, bytes]:
    """Every stored extraction by its key."""
    with Ledger(index, create=False, read_only=True) as ledger:
        keys = [str(key) for (key,) in ledger._run("SELECT key FROM journal WHERE kind = 'extraction'")]
        return ledger.get_many("extraction", keys)


def test_two_workers_one_of_them_killed_build_what_one_process_builds(
    local: LocalBuild, cluster: Cluster, tmp_path: Path
) -> None:
    index, killed, said = tmp_path / "index", tmp_path / "killed", list[str]()

    report = ray_build(index, local.recording, killed=killed, said=said.append).run([local.corpus])

    assert killed.exists()
    assert sum("a worker was lost" in line for line in said) == 1
    assert sum("a worker is there" in line for line in said) >= 2
    assert report.version == local.report.version
    assert table_bytes(index, report.version) == table_bytes(local.index, local.report.version)
    assert kept(index) == kept(local.index)
    # What was on its way to the lost worker was asked twice, and is counted once.
    assert report.tokens == local.report.tokens
    assert report.chunks == local.report.chunks
    assert report.documents == local.report.documents
    # Nothing is left to do, and no worker is started for it.
    said.clear()
    again = ray_build(index, local.recording, said=said.append).run([local.corpus])
    assert (again.version, again.unchanged, said) == (report.version, True, [])


def test_the_local_executor_goes_on_where_a_killed_driver_was(
    local: LocalBuild, cluster: Cluster, tmp_path: Path
) -> None:
    index = tmp_path / "index"
    address = cluster.ray.get_runtime_context().gcs_address

    stopped = subprocess.run(
        [sys.executable, "-m", "support.ray_builds", index, local.corpus, local.recording, address],
        capture_output=True,
        timeout=600,
    )

    assert stopped.returncode == -9, stopped.stderr.decode()
    before = kept(index)
    assert 0 < len(before) < len(kept(local.index))
    model = Replayed(local.recording)
    report = build(index, [local.corpus], model=model, settings=ray_settings())
    assert report.version == local.report.version
    assert kept(index) == kept(local.index)
    assert before.items() <= kept(index).items()


def test_a_cluster_with_too_little_is_refused(cluster: Cluster) -> None:
    with pytest.raises(UsageError, match="40 workers and a reader need 41 CPUs, and the cluster has"):
        Cluster(RaySettings(workers=40), gpus_per_worker=0)
    with pytest.raises(UsageError, match="2 workers and a reader need 2 GPUs, and the cluster has 0"):
        Cluster(RaySettings(workers=2), gpus_per_worker=1)
    assert cluster.ray.is_initialized()


def test_what_a_reading_task_raises_is_told_as_here(
    local: LocalBuild, cluster: Cluster, tmp_path: Path
) -> None:
    settings = ray_settings()
    reading = read_by_ray(
        *(cluster.data(), [local.corpus], lambda source: None, tmp_path),
        *(settings.corpus, settings.chunk, settings.ray),
    )

    with pytest.raises(ModelError, match=r"holds no tokenizer\.json"):
        list(reading)
