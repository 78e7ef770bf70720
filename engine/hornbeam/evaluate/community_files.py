"""Graphs with known communities from files: GML, or an edge list beside a list of labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hornbeam.errors import UsageError, reason

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class LabelledGraph:
    name: str
    heads: NDArray[np.int64]  # [T]
    tails: NDArray[np.int64]  # [T]
    labels: NDArray[np.int64]  # [n]


def labelled_graphs(path: Path) -> list[LabelledGraph]:
    """The graphs of a file or of all files below a folder, by path.

    `NAME.gml` holds nodes with an integer or text `value`, its community; `NAME.edges.tsv` holds two node
    numbers a line, `NAME.labels.tsv` beside it a node number and its community's name.

    Raises:
        UsageError: no such path, no graph in it, or a file that is not in its form.
    """
    if not path.exists():
        raise UsageError(f"no such file or folder: {path}")
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    graphs = [_gml(file) for file in files if file.suffix == ".gml"]
    graphs += [_lists(file) for file in files if file.name.endswith(".edges.tsv")]
    if not graphs:
        raise UsageError(f"{path}: no graph: neither *.gml nor *.edges.tsv with *.labels.tsv beside it")
    return graphs


def _gml(file: Path) -> LabelledGraph:
    import networkx
    import numpy as np

    try:
        graph = networkx.read_gml(file, label="id")
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {reason(error)}") from error
    # What networkx makes of a file that is not GML, besides its own error.
    except (networkx.NetworkXError, ValueError, AttributeError, TypeError, KeyError, RecursionError) as error:
        raise UsageError(f"{file}: not a GML graph: {reason(error)}") from error
    nodes = list(graph)
    missing = [node for node in nodes if "value" not in graph.nodes[node]]
    if missing:
        raise UsageError(f"{file}: node {missing[0]} has no 'value', the community it is known to be in")
    row = {node: number for number, node in enumerate(nodes)}
    edges = np.array([(row[a], row[b]) for a, b in graph.edges()], dtype=np.int64).reshape(-1, 2)
    names = [str(graph.nodes[node]["value"]) for node in nodes]
    labels = np.unique(names, return_inverse=True)[1].astype(np.int64)
    return LabelledGraph(file.stem, edges[:, 0], edges[:, 1], labels)


def _lists(file: Path) -> LabelledGraph:
    import numpy as np

    beside = file.with_name(file.name.replace(".edges.tsv", ".labels.tsv"))
    listed = _split_lines(beside)
    known, n = dict(listed), len(listed)
    if set(known) != set(range(n)):
        raise UsageError(f"{beside}: nodes must be 0 to {n - 1}, each once")
    edges = []
    for number, (a, b) in enumerate(_split_lines(file), start=1):
        if not b.isdecimal() or len(b) > 18 or max(a, int(b)) >= n:
            raise UsageError(f"{file}: edge {number} ends at '{b}', which {beside.name} does not know")
        edges.append((a, int(b)))
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    labels = np.unique([known[node] for node in range(n)], return_inverse=True)[1].astype(np.int64)
    return LabelledGraph(file.name.removesuffix(".edges.tsv"), ends[:, 0], ends[:, 1], labels)


def _split_lines(file: Path) -> list[tuple[int, str]]:
    # A node number, a tab or blanks, and the rest of the line.
    try:
        lines = file.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {reason(error)}") from error
    rows = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            node, _, rest = line.strip().replace("\t", " ").partition(" ")
            if not node.isdecimal() or len(node) > 18 or not rest.strip():
                raise UsageError(f"{file}: line {number} is not 'node<tab>value': {line[:60]}")
            rows.append((int(node), rest.strip()))
    return rows
