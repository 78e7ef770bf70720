"""Descriptions as spans beside their entities, and chunks of a thousand words in any script."""

from __future__ import annotations

import random

import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.extract.reading import read_entities
from hornbeam.extract.stages import Extractor
from hornbeam.grammar.entities import entity_grammar
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Request
from hornbeam.records import ChunkState
from hornbeam.schema.load import load_schema
from hornbeam.settings import ExtractSettings
from support.walker import GrammarWalker

try:
    embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)

SCHEMA = load_schema("general")
PIECES = [
    "Marie Curie, a physicist of Warsaw, was born on 7 November 1867. ",
    "林冲是东京八十万禁军教头，人称豹子头。",
    "ولد ابن سينا، وهو طبيب، في أفشنة عام 980. ",
    "חבר צה״ל נולד בתל־אביב. ",
    "👩‍👩‍👧‍👦 met 👍🏽 in 🇫🇷. ",
    'He said "no" to "x" and \\ left \\n it. ',
    '["a","b"],["c"]]} root ::= "a" | [^b] {0,9} ',
    "e\u0301\u0302 x\u200by \ufeff क्‍ष नमस्ते ",
]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), min_size=1, max_size=12).map(
    "".join
)
_few = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def flat(text: str) -> str:
    return str(regex.sub(r"\s+", " ", text))


@_few
@given(texts, st.integers(0, 1 << 30), st.sampled_from([0.05, 0.3, None]))
def test_a_description_is_a_span_of_the_text_and_never_the_name_alone(
    text: str, seed: int, closing: float | None
) -> None:
    lexicon, described = SpanLexicon(text, 10), SpanLexicon(text, 16)
    grammar = entity_grammar(lexicon, SCHEMA, 3, described=described)
    if grammar is None:
        assert not lexicon
        return
    walker = GrammarWalker(seed, closing=closing)
    completion = walker.complete(Request("walk", text[:200], 400, grammar=grammar, logprobs=True))
    assert completion.finish_reason in ("stop", "length"), completion.error
    read = read_entities(completion, lexicon, SCHEMA, described)
    assert read.dropped == 0
    for entity in read.entities:
        assert entity.spans
        if entity.description is not None:
            start, end = entity.description
            assert flat(text[start:end]).strip()
            assert not any(left <= start and end <= right for left, right in entity.spans)


def thousand_words(seed: int) -> str:
    """Of all scripts and marks together; an unspaced character counts as a word."""
    chance = random.Random(seed)
    text = ""
    while len(SpanLexicon(text, 10).words) < 1000:
        text += "".join(chance.choice(PIECES) for _ in range(8)) + chance.choice(["", "\n\n", "\u2028"])
    return text


@pytest.mark.parametrize("descriptions", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_a_chunk_of_a_thousand_words_is_extracted_grounded(seed: int, descriptions: bool) -> None:
    text = thousand_words(seed)
    limits = ExtractSettings(descriptions=descriptions, examples=1)
    found = 0
    for walk in range(3):  # one may close its list at once
        model = GrammarWalker(walk, closing=0.02, max_model_len=16_384)
        ((_, result),) = Extractor(model, SCHEMA, limits).run([("k", text)])
        assert result.state is not ChunkState.FAILED, result.detail
        assert not result.dropped
        for entity in result.entities:
            assert entity.name.strip()
            assert all(flat(text[start:end]) == entity.name for start, end in entity.spans)
        for fact in result.attributes:
            assert flat(text[fact.start : fact.end]) == fact.value != ""
        assert descriptions or all(entity.description is None for entity in result.entities)
        found += len(result.entities)
    assert found
