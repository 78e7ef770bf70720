"""OSKGC: texts with triples under an ontology, as XML, the training texts packed.

ontology/<name>.json    data/test/<name>.xml    data/train.tar.gz (train/<name>.xml)
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from hornbeam.errors import UsageError, reason
from hornbeam.evaluate.fact_sets import FactSet, GoldSentence, Split, fact_set
from hornbeam.schema import load_schema

_TRAIN = "train.tar.gz"


def is_of_form(folder: Path) -> bool:
    return (folder / "ontology").is_dir() and (folder / "data" / "test").is_dir()


def read(folder: Path, numbers: set[int] | None, split: Split) -> Iterator[FactSet]:
    """Categories are numbered in the order of their names, from 1 on; "held-out" has none."""
    if split != "test":
        return
    files = sorted((folder / "ontology").glob("*.json"))
    for number, ontology in enumerate(files, start=1):
        test = folder / "data" / "test" / f"{ontology.stem}.xml"
        if (numbers is not None and number not in numbers) or not test.is_file():
            continue
        known = _training(folder / "data" / _TRAIN, f"train/{ontology.stem}.xml")
        asked = _sentences(test.read_bytes(), test)
        yield fact_set(f"oskgc/{ontology.stem}", load_schema(str(ontology)), known, asked)


def _training(archive: Path, member: str) -> list[GoldSentence]:
    try:
        with tarfile.open(archive) as packed:
            file = packed.extractfile(member)
            return _sentences(file.read(), archive) if file is not None else []
    except (OSError, KeyError, tarfile.TarError) as error:
        raise UsageError(f"{archive}: {reason(error)}") from error


def _sentences(xml: bytes, source: Path) -> list[GoldSentence]:
    try:
        root = etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError as error:
        raise UsageError(f"{source}: {reason(error)}") from error
    return [
        GoldSentence(
            entry.get("id", ""),
            entry.findtext("text", ""),
            tuple(
                (triple.findtext("sub", ""), triple.findtext("rel", ""), triple.findtext("obj", ""))
                for triple in entry.iterfind("triples/triple")
            ),
        )
        for entry in root.iter("entry")
    ]
