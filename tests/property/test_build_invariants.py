"""Whatever the documents and the schema are, and whatever the model says, a version keeps the invariants."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hornbeam.errors import UsageError
from hornbeam.schema import GraphSchema
from support.building import build, table_bytes, walker, walking_settings
from support.invariants import check_invariants

_NAMES = st.sampled_from(
    [
        *("Ada", "ADA", "the Ada", "Ada Lovelace", "C++", "“Times”", "Jean-Paul", "1867", "in", "wrote to"),
        *(
            "Лев Толстой",
            "«Мир»",
            "北京大学",
            "北京",
            "e\u0301cole",
            "👩\u200d👧",
            "?!",
            "a\u00a0b",
            "x" * 60,
        ),
    ]
)
_ENDS = st.sampled_from([" ", " ", ". ", "。", "\n", "\n\n", "! ", ", ", "\n\n# "])
_TEXTS = st.lists(st.tuples(_NAMES, _ENDS), max_size=40).map(
    lambda parts: "".join(name + end for name, end in parts)
)
_TYPES = ["person", "place", "thing"]
_SIDES = st.lists(st.sampled_from(_TYPES), unique=True, max_size=2)


@st.composite
def schemas(draw: st.DrawFn) -> GraphSchema:
    relations = draw(st.lists(st.tuples(_SIDES, _SIDES), max_size=3))
    attributes = draw(st.lists(st.tuples(_SIDES, st.sampled_from(["text", "number", "date"])), max_size=2))
    return GraphSchema.model_validate(
        {
            "name": "drawn",
            "entity_types": [{"name": name} for name in _TYPES],
            "relation_types": [
                {"name": f"relation_{number}", "domain": domain, "range": range_}
                for number, (domain, range_) in enumerate(relations)
            ],
            "attribute_types": [
                {"name": f"attribute_{number}", "domain": domain, "kind": kind}
                for number, (domain, kind) in enumerate(attributes)
            ],
        }
    )


@given(
    texts=st.lists(_TEXTS, max_size=5),
    schema=schemas(),
    seed=st.integers(0, 1000),
    output_tokens=st.sampled_from([32, 200]),
    threshold=st.sampled_from([0.0, 0.05]),
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_version_keeps_the_invariants_and_is_found_again(
    texts: list[str], schema: GraphSchema, seed: int, output_tokens: int, threshold: float
) -> None:
    options = walking_settings(
        extract={"max_output_tokens": output_tokens, "min_confidence": threshold, "window": 2}
    )
    with tempfile.TemporaryDirectory() as name:
        corpus, index = Path(name) / "corpus", Path(name) / "index"
        corpus.mkdir()
        for number, text in enumerate(texts):
            (corpus / f"{number}.txt").write_text(text, "utf-8")

        if not texts:
            with pytest.raises(UsageError, match="there is no file"):
                build(index, [corpus], model=walker(seed=seed), schema=schema, settings=options)
            assert not (index / "versions").exists()
            return
        report = build(index, [corpus], model=walker(seed=seed), schema=schema, settings=options)

        assert report.version is not None
        check_invariants(index / "versions" / report.version)
        documents = report.documents
        assert documents["seen"] == len(texts)
        assert documents["seen"] == documents["indexed"] + documents["duplicates"] + len(
            documents["rejected"]
        )
        chunks = report.chunks
        assert chunks["total"] == chunks["done"] + chunks["degraded"] + chunks["failed"]

        again = walker(seed=seed)
        second = build(index, [corpus], model=again, schema=schema, settings=options)
        assert (again.calls, second.version) == (0, report.version)


@given(first=st.lists(_TEXTS, min_size=1, max_size=2), second=st.lists(_TEXTS, max_size=2))
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_graph_does_not_depend_on_the_order_of_documents(first: list[str], second: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        graphs = []
        for side, order in (("one", [*first, *second]), ("two", [*second, *first])):
            corpus = Path(name) / side / "corpus"
            corpus.mkdir(parents=True)
            for number, text in enumerate(order):
                (corpus / f"{number}.txt").write_text(text, "utf-8")
            report = build(Path(name) / side / "index", [corpus])
            graphs.append(table_bytes(Path(name) / side / "index", report.version))
        assert graphs[0] == graphs[1]
