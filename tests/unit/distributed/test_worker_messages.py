"""Nothing of a chunk, a result or a document is lost between processes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hornbeam.corpus import CutDocument, SeenFile
from hornbeam.distributed.messages import (
    pack_chunks,
    pack_item,
    pack_outcomes,
    unpack_chunks,
    unpack_item,
    unpack_outcomes,
)
from hornbeam.extract.result import (
    ChunkExtraction,
    ChunkVerification,
    FoundAttribute,
    FoundEntity,
    FoundRelation,
    Reason,
    Rung,
    StageUsage,
)
from hornbeam.extract.verification import Chunk
from hornbeam.records import Chunk as CutChunk
from hornbeam.records import ChunkState, Document, Rejection

TEXT = st.text(max_size=20)
SHARE = st.floats(0, 1)
SPAN = st.tuples(st.integers(0, 99), st.integers(0, 99))
USAGE = st.dictionaries(
    TEXT, st.builds(StageUsage, calls=st.integers(0, 9), prompt=st.integers(0, 2**40)), max_size=2
)
EXTRACTION = st.builds(
    ChunkExtraction,
    entities=st.lists(
        st.builds(
            FoundEntity,
            name=TEXT,
            type=TEXT,
            confidence=SHARE,
            spans=st.lists(SPAN, max_size=3).map(tuple),
            description=st.none() | SPAN,
            identity=st.none() | TEXT,
        ),
        max_size=3,
    ).map(tuple),
    relations=st.lists(
        st.builds(FoundRelation, head=st.integers(0, 9), type=TEXT, tail=st.integers(0, 9), confidence=SHARE),
        max_size=3,
    ).map(tuple),
    attributes=st.lists(
        st.builds(
            FoundAttribute,
            entity=st.integers(0, 9),
            type=TEXT,
            value=TEXT,
            start=st.integers(0, 99),
            end=st.integers(0, 99),
            confidence=SHARE,
        ),
        max_size=2,
    ).map(tuple),
    state=st.sampled_from(ChunkState),
    reasons=st.lists(st.sampled_from(Reason), max_size=2).map(tuple),
    detail=TEXT,
    repeated=st.integers(0, 9),
    dropped=st.integers(0, 9),
    rungs=st.dictionaries(st.sampled_from(Rung), st.integers(1, 9)),
    usage=USAGE,
)
VERIFICATION = st.builds(
    ChunkVerification,
    relations=st.lists(st.none() | SHARE, max_size=3).map(tuple),
    attributes=st.lists(st.none() | SHARE, max_size=3).map(tuple),
    detail=TEXT,
    usage=USAGE,
)


@given(st.lists(st.builds(Chunk, TEXT, TEXT, st.none() | EXTRACTION, TEXT, TEXT), max_size=4))
def test_chunks_come_as_they_went(chunks: list[Chunk]) -> None:
    assert unpack_chunks(pack_chunks(chunks)) == chunks


@given(st.lists(st.tuples(TEXT, EXTRACTION | VERIFICATION), max_size=4))
def test_outcomes_come_as_they_went_and_are_stored_alike(
    outcomes: list[tuple[str, ChunkExtraction | ChunkVerification]],
) -> None:
    came = unpack_outcomes(pack_outcomes(outcomes))

    assert came == outcomes
    assert [one.model_dump_json() for _, one in came] == [one.model_dump_json() for _, one in outcomes]


@given(
    st.builds(Rejection, TEXT, TEXT)
    | st.builds(SeenFile, TEXT, TEXT, st.booleans(), st.booleans())
    | st.builds(Document, TEXT, TEXT, TEXT, TEXT, TEXT, st.lists(TEXT, max_size=2))
)
def test_what_reading_brings_comes_as_it_went(item: Rejection | SeenFile | Document) -> None:
    assert unpack_item(pack_item(item)) == item


@given(st.text(min_size=1), st.lists(SPAN, max_size=4))
def test_chunks_of_a_document_have_its_text(text: str, spans: list[tuple[int, int]]) -> None:
    chunks = tuple(
        CutChunk(f"c{start}", "d", start, end, text[start:end], end) for start, end in map(sorted, spans)
    )
    document = CutDocument("d", "source", "title", text, "en", ["source"], chunks)

    assert unpack_item(pack_item(document)) == document
