"""Extraction without a model: which terms of a text are paired."""

from __future__ import annotations

import pytest

from hornbeam.errors import SchemaError
from hornbeam.extract.cooccurrence import NEXT_TERMS, CooccurrenceExtractor
from hornbeam.extract.result import ChunkExtraction
from hornbeam.records import ChunkState
from hornbeam.schema import load_schema
from hornbeam.settings import ExtractSettings


@pytest.fixture
def extractor() -> CooccurrenceExtractor:
    return CooccurrenceExtractor(load_schema("cooccurrence"), ExtractSettings(tier="fast"))


def pairs(result: ChunkExtraction) -> set[tuple[str, str]]:
    return {(result.entities[r.head].name, result.entities[r.tail].name) for r in result.relations}


def test_terms_of_one_sentence_are_paired(extractor: CooccurrenceExtractor) -> None:
    result = extractor.extract("In Warsaw he met Marie Curie. Later, in Paris, he met Paul Langevin.")
    assert {entity.name for entity in result.entities} == {"Warsaw", "Marie Curie", "Paris", "Paul Langevin"}
    assert pairs(result) == {("Marie Curie", "Warsaw"), ("Paris", "Paul Langevin")}
    assert result.state is ChunkState.DONE
    assert {entity.type for entity in result.entities} == {"term"}
    assert all(0 < fact.confidence < 0.5 for fact in result.relations)


def test_a_pair_has_one_direction_whatever_the_order(extractor: CooccurrenceExtractor) -> None:
    one, other = (extractor.extract(f"He saw {a} near {b}.") for a, b in (("Rome", "Oslo"), ("Oslo", "Rome")))
    assert pairs(one) == pairs(other) == {("Oslo", "Rome")}


def test_a_list_of_names_is_paired_with_the_next_few(extractor: CooccurrenceExtractor) -> None:
    names = [f"Town{chr(97 + n)}x" for n in range(20)]
    result = extractor.extract(f"He saw {', '.join(names)}.")
    assert len(result.entities) == 20
    assert len(result.relations) == 20 * NEXT_TERMS - NEXT_TERMS * (NEXT_TERMS + 1) // 2


def test_every_chunk_comes_out_in_order_and_the_source_is_read_in_portions(
    extractor: CooccurrenceExtractor,
) -> None:
    read = []

    def source() -> object:
        for number in range(600):
            read.append(number)
            yield str(number), "" if number % 2 else "He saw Rome near Oslo."

    results = extractor.run(source())  # type: ignore[arg-type]
    assert next(results)[0] == "0"
    assert len(read) < 600
    rest = list(results)
    assert [key for key, _ in rest] == [str(number) for number in range(1, 600)]
    assert rest[0][1] == ChunkExtraction()


def test_a_schema_that_cannot_hold_it_is_refused() -> None:
    with pytest.raises(SchemaError, match="seed schema 'cooccurrence'"):
        CooccurrenceExtractor(load_schema("general"), ExtractSettings(tier="fast"))
