"""The frozen probe set decides on promotion: what the promoted version found must still be found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hornbeam.errors import UsageError
from hornbeam.probes import read_probes
from hornbeam.settings import Settings
from support.importing import import_triples


def settings(probes: Path) -> Settings:
    return Settings.model_validate(
        {"embedder": {"kind": "hashed"}, "gates": {"probes": str(probes)}, "retrieve": {"top_k": 5}}
    )


@pytest.fixture
def probes(tmp_path: Path) -> Path:
    path = tmp_path / "probes.jsonl"
    lines = [
        {"question": "Where was Marie Curie born?", "documents": [f"{tmp_path}/curie.tsv#1"]},
        {"question": "Which river flows through Krakow?", "documents": ["rivers"]},
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def test_less_recall_than_before_is_exit_code_3(tmp_path: Path, probes: Path) -> None:
    curie, rivers, index = tmp_path / "curie.tsv", tmp_path / "rivers.tsv", tmp_path / "index"
    curie.write_text("Marie Curie\tborn_in\tWarsaw\n")
    rivers.write_text("Vistula\tflows_through\tKrakow\n")
    first = import_triples(index, curie, rivers, settings=settings(probes))
    noise = tmp_path / "noise.tsv"
    noise.write_text(
        "".join(f"Marie Curie\twas born where\tWhere Marie Curie was born {i}\n" for i in range(60))
    )

    refused = import_triples(index, noise, settings=settings(probes))
    alone = import_triples(tmp_path / "fresh", noise, settings=settings(probes))

    assert first["exit_code"] == 0
    assert first["gates"]["probe_recall"] == {"value": 1.0, "threshold": 0.0, "passed": True}
    assert refused["exit_code"] == 3
    assert not refused["promoted"]
    gate = refused["gates"]["probe_recall"]
    assert gate["value"] == 0.5
    assert gate["threshold"] == pytest.approx(0.95)
    assert gate["offenders"] == ["Where was Marie Curie born?"]
    assert (index / "CURRENT").read_text().strip() == first["version"]
    assert alone["gates"]["probe_recall"]["passed"]  # there is nothing to compare with


@pytest.mark.parametrize("line", ["{", '{"question": "a"}', '{"question": "", "documents": ["d"]}', ""])
def test_probes_that_say_nothing_are_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "probes.jsonl"
    path.write_text(line)

    with pytest.raises(UsageError, match=r"gates\.probes .*probes\.jsonl"):
        read_probes(path)
