"""What the grammars guarantee for any schema and any text, shown by random walks through them.

A walk draws any allowed token at every step, so what holds for walks holds whatever a model prefers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest
import regex
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("xgrammar")

import xgrammar

from hornbeam.errors import ModelError
from hornbeam.extract.reading import read_entities, read_relations
from hornbeam.extract.result import FoundEntity
from hornbeam.extract.stages import Extractor
from hornbeam.grammar import entities as entity_stage
from hornbeam.grammar import relations as relation_stage
from hornbeam.grammar.entities import entity_grammar
from hornbeam.grammar.relations import NamedEntity, relation_grammar
from hornbeam.grammar.spans import CHARACTERS_PER_WORD, SpanLexicon
from hornbeam.grammar.values import value_spans
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Completion, Request
from hornbeam.organise import prompts as naming
from hornbeam.records import ChunkState
from hornbeam.schema.load import load_schema
from hornbeam.schema.model import AttributeType, EntityType, GraphSchema, RelationType, fold
from hornbeam.settings import ExtractSettings
from support.walker import GrammarWalker, vocabulary

DATA = Path(os.environ.get("HORNBEAM_DATA") or Path(__file__).parents[2] / "../shared/data")
NAUGHTY = DATA / "robustness/naughty_strings/blns.json"

try:
    embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)

# Schemas. The embedded tokenizer cannot write characters of the planes that Unicode has not assigned.

_NAMES = [
    "person",
    "org",
    "地点",
    "событие",
    "شخص",
    "a b",
    "C++",
    "x|y",
    "::=",
    "[a-z]*",
    "(",
    "#",
    "é",
    "<|im_end|>",
]
_name = st.one_of(
    st.sampled_from(_NAMES),
    st.text(
        st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cn", "Co"), exclude_characters="\"'\\"),
        min_size=1,
        max_size=12,
    )
    .map(str.strip)
    .filter(bool),
)


def _names(low: int, high: int) -> st.SearchStrategy[list[str]]:
    return st.lists(_name, min_size=low, max_size=high, unique_by=fold)


@st.composite
def schemas(draw: st.DrawFn) -> GraphSchema:
    """1-12 entity types; relations and attributes with every kind of domain, range and value."""
    types = draw(_names(1, 12))
    some = st.lists(st.sampled_from(types), max_size=3, unique=True).map(tuple)  # (): any
    kinds = st.sampled_from(["text", "number", "date"])
    return GraphSchema(
        name="walked",
        entity_types=tuple(EntityType(name=name) for name in types),
        relation_types=tuple(
            RelationType(name=name, domain=draw(some), range=draw(some)) for name in draw(_names(0, 6))
        ),
        attribute_types=tuple(
            AttributeType(name=name, domain=draw(some), kind=draw(kinds)) for name in draw(_names(0, 4))
        ),
    )


# Texts

_PIECES = [
    "Marie Curie was born in Warsaw on 7 November 1867, and moved to Paris. ",
    "St. Petersburg's U.S. consul J. K. O'Neill-Smith paid 25,000.50 for C++ & C# (in 2004). ",
    "Мария Кюри родилась 7 ноября 1867 года в Варшаве. ",
    "1867年11月7日，居里夫人生于华沙。她有900名学生！",
    "東京タワーは1958年に完成した。「はい」と彼は言った。",
    "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย ",
    "ولد ابن سينا في أفشنة عام 980. ",
    "חבר צה״ל נולד בתל־אביב. ",
    "علی‌رضا می‌خواهد ",
    "क्‍ष नमस्ते दुनिया। ",
    *("👩‍👩‍👧‍👦", "🇫🇷🇩🇪 ", "👍🏽", "e\u0301\u0302\u0323 ", "각 ", "\u0301", "x\u200by ", "\ufeff", "\u00ad"),
    *(
        'He said "no". ',
        "\\n \\ \\\\ ",
        "[a-z]* ",
        "{0,9} ",
        'root ::= "a" | [^b] ',
        "(( ",
        "]]} ",
        "# ",
        "// ",
    ),
    *('{"entities":[["a","b"]]} ', '","', '"]', "<|im_end|> ", "<|im_start|>system ", "_x_ ", "a|b "),
    *("\t", "\n", "\n\n", "  ", "\u3000", "\u00a0", "\r\n", "\x85", "\u2028", "....", "--", " - ", " & "),
]
_texts = st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=10)), min_size=1, max_size=16).map(
    "".join
)


def walk(grammar: str, text: str, seed: int, closing: float | None, max_tokens: int = 600) -> Completion:
    walker = GrammarWalker(seed, closing=closing)
    completion = walker.complete(Request("walk", text[:200], max_tokens, grammar=grammar, logprobs=True))
    assert completion.finish_reason in ("stop", "length"), completion.error
    return completion


def written(text: str, start: int, end: int) -> str:
    return str(regex.sub(r"\s+", " ", text[start:end]))


def check_entities(entities: tuple[FoundEntity, ...], text: str, schema: GraphSchema) -> None:
    for entity in entities:
        assert entity.type in {entity_type.name for entity_type in schema.entity_types}
        assert 0 < entity.confidence <= 1
        assert entity.spans
        for start, end in entity.spans:
            assert start < end
            assert written(text, start, end) == entity.name
    assert len({entity.name for entity in entities}) == len(entities)


_walks = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
_closing = st.sampled_from([0.03, 0.1, 0.3, None])


def extract_by_walking(
    text: str, schema: GraphSchema, seed: int, closing: float | None
) -> tuple[SpanLexicon, tuple[FoundEntity, ...]]:
    """Stage one by chance, checked; the entities for stage two."""
    lexicon = SpanLexicon(text, 10)
    grammar = entity_grammar(lexicon, schema, 3)
    if grammar is None:
        assert not regex.search(r"[\p{L}\p{N}]", text)
        return lexicon, ()
    completion = walk(grammar, text, seed, closing)
    read = read_entities(completion, lexicon, schema)
    check_entities(read.entities, text, schema)
    if completion.finish_reason == "stop":
        items = json.loads(entity_stage.OPENING + completion.text)["entities"]
        assert read.complete
        assert len(read.entities) + read.repeated == len(items)
        assert {entity.name for entity in read.entities} == {name for name, _ in items}
    return lexicon, read.entities


def entities_of_walks(
    text: str, schema: GraphSchema, seed: int, closing: float | None, walks: int = 4
) -> tuple[SpanLexicon, tuple[FoundEntity, ...]]:
    """What several walks found, once each and in reading order: one walk alone leaps over most of a text."""
    found: dict[str, FoundEntity] = {}
    for step in range(walks):
        lexicon, entities = extract_by_walking(text, schema, seed + step, closing)
        for entity in entities:
            found.setdefault(entity.name, entity)
    return lexicon, tuple(sorted(found.values(), key=lambda entity: entity.spans))


@_walks
@given(schemas(), _texts, st.integers(0, 1 << 30), _closing)
def test_every_fact_of_a_complete_walk_is_read_typed_and_grounded(
    schema: GraphSchema, text: str, seed: int, closing: float | None
) -> None:
    lexicon, entities = entities_of_walks(text, schema, seed, closing)
    named = [NamedEntity(entity.name, entity.type) for entity in entities]
    grammar = relation_grammar(named, lexicon, schema, relations_per_head=3, attributes_per_entity=2)
    possible = any(
        schema.allows(relation.name, head.type, tail.type)
        for relation in schema.relation_types
        for head in named
        for tail in named
        if head.name != tail.name
    ) or any(
        attribute.kind == "text" or value_spans(text, attribute.kind)
        for entity in named
        for attribute in schema.attributes_of(entity.type)
    )
    assert (grammar is not None) == possible
    if grammar is None:
        return
    completion = walk(grammar, text, seed, closing)
    read = read_relations(completion, entities, lexicon, schema)
    for relation in read.relations:
        head, tail = entities[relation.head], entities[relation.tail]
        assert head.name != tail.name
        assert schema.allows(relation.type, head.type, tail.type)
        assert 0 < relation.confidence <= head.confidence
    kinds = {attribute.name: attribute.kind for attribute in schema.attribute_types}
    for fact in read.attributes:
        assert fact.type in {a.name for a in schema.attributes_of(entities[fact.entity].type)}
        assert written(text, fact.start, fact.end) == fact.value
        if kinds[fact.type] != "text":
            assert (fact.start, fact.end) in value_spans(text, kinds[fact.type])[fact.value]
    if completion.finish_reason == "stop":
        answer = json.loads(relation_stage.OPENING + completion.text)
        of_itself = sum(head == tail for head, _, tail in answer["relations"])
        assert read.complete
        said = len(answer["relations"]) + len(answer["attributes"])
        assert len(read.relations) + len(read.attributes) + read.repeated + of_itself == said


def cuts(whole: Completion) -> Iterator[Completion]:
    """The completion cut before each of its tokens."""
    for kept in range(len(whole.tokens)):
        tokens = whole.tokens[:kept]
        text = "".join(token.text for token in tokens)
        yield replace(whole, text=text, tokens=tokens, finish_reason="length")


@_walks
@given(schemas(), _texts, st.integers(0, 1 << 30))
def test_wherever_a_walk_is_cut_its_complete_items_are_kept_and_it_is_called_incomplete(
    schema: GraphSchema, text: str, seed: int
) -> None:
    lexicon = SpanLexicon(text, 10)
    grammar = entity_grammar(lexicon, schema, 3)
    assume(grammar is not None)
    assert grammar is not None
    whole = walk(grammar, text, seed, 0.05)
    assume(whole.finish_reason == "stop")
    items = json.loads(entity_stage.OPENING + whole.text)["entities"]
    rows = [json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in items]
    ends = list(accumulate(len(row) + (place > 0) for place, row in enumerate(rows)))  # and a comma between
    for cut in cuts(whole):
        complete = [item for item, end in zip(items, ends, strict=True) if end <= len(cut.text)]
        read = read_entities(cut, lexicon, schema)
        assert [entity.name for entity in read.entities] == list(dict.fromkeys(name for name, _ in complete))
        assert len(read.entities) + read.repeated == len(complete)
        assert read.complete == (len(cut.text) > (ends[-1] if ends else 0))
        check_entities(read.entities, text, schema)


@_walks
@given(schemas(), _texts, st.integers(0, 1 << 30))
def test_wherever_a_second_walk_is_cut_its_complete_facts_are_kept_and_it_is_called_incomplete(
    schema: GraphSchema, text: str, seed: int
) -> None:
    lexicon, entities = entities_of_walks(text, schema, seed, 0.05)
    named = [NamedEntity(entity.name, entity.type) for entity in entities]
    grammar = relation_grammar(named, lexicon, schema, relations_per_head=3, attributes_per_entity=2)
    assume(grammar is not None)
    assert grammar is not None
    whole = walk(grammar, text, seed, 0.05)
    assume(whole.finish_reason == "stop")
    full = read_relations(whole, entities, lexicon, schema)
    for cut in cuts(whole):
        read = read_relations(cut, entities, lexicon, schema)
        assert read.complete == (len(cut.text) >= len(whole.text) - 1)  # all but the last brace
        assert read.relations == full.relations[: len(read.relations)]
        assert read.attributes == full.attributes[: len(read.attributes)]
        if relation_stage.BETWEEN in cut.text:
            assert read.relations == full.relations


@pytest.mark.parametrize("word", ["a" * 10_000, "字" * 1_000, "e\u0301" * 5_000, "👍🏽" * 2_000])
def test_a_huge_word_is_compiled_and_its_walk_ends_or_is_cut(word: str) -> None:
    schema = load_schema("general")
    lexicon, entities = extract_by_walking(f"Ada met {word} in Rome.", schema, 1, 0.2)
    assert all(entity.spans for entity in entities)
    assert lexicon.occurrences("Rome")


# The language of spans, against every run of words written out.

_SMALL = st.lists(
    st.sampled_from(
        [
            *("a", "bc", "St", "J", "Ada", "7", "25", "字", "林", "タ", "ไ", "é"),
            *(" ", " ", " ", "\n", "\n\n", ". ", ".", ",", "-", " - ", "'", "++", " & ", "(", '"', "\\", "%"),
        ]
    ),
    max_size=14,
).map("".join)


@settings(max_examples=300, deadline=None)
@given(_SMALL, st.integers(2, 8))
def test_the_rules_of_spans_accept_the_spans_of_the_text_and_nothing_else(text: str, max_words: int) -> None:
    lexicon = SpanLexicon(text, max_words)
    starts, rules = lexicon.rules("w")
    if not starts:
        assert not lexicon
        return
    info = vocabulary(embedded_model_directory()).info
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    compiled = compiler.compile_grammar("\n".join([f"root ::= {' | '.join(starts.values())}", *rules]))

    def accepts(candidate: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled)
        # A rule is of the written form within a JSON string, and of the quote that closes it.
        return bool(matcher.accept_string(f'{candidate}"') and matcher.is_completed())

    must, may = set(), set()
    words = lexicon.words
    for first, word in enumerate(words):
        if word.kind == "mark":
            continue
        unit = CHARACTERS_PER_WORD if word.kind == "unspaced" else 1
        for last in range(first, len(words)):
            if last > first and not words[last].joins:
                break
            name, length = lexicon.written(first, last), last - first + 1
            closed_by_mark = (word.start, words[last].end) in lexicon.occurrences(name)
            if words[last].kind == "mark" and not closed_by_mark:
                continue
            if length <= max_words * unit:
                may.add(name)
            if length <= max_words // 2 * unit:
                must.add(name)
    flat = regex.sub(r"\s+", " ", text)
    candidates = {flat[i:j] for i in range(len(flat)) for j in range(i, len(flat) + 1)}
    candidates |= {name + name for name in must} | {name + " " for name in must} | may
    accepted = {candidate for candidate in candidates if accepts(candidate)}
    assert must <= accepted <= may
    assert all(lexicon.occurrences(name) for name in accepted)


# Communities


@pytest.mark.parametrize("seed", range(12))
def test_a_complete_walk_through_the_naming_grammar_is_a_name_and_a_summary(seed: int) -> None:
    completion = walk(naming.FREE_GRAMMAR, "facts", seed, 0.4, max_tokens=1200)
    assert completion.finish_reason == "stop"
    read = naming.read_naming(completion.text)
    assert read is not None
    name, summary = read
    assert 1 <= len(name.split(" ")) <= 8
    assert 1 <= len(summary.split(" ")) <= 40
    cut = completion.text[: len(completion.text) // 2]
    assert naming.read_naming(cut) is None


@pytest.mark.data
@pytest.mark.skipif(not NAUGHTY.is_file(), reason=f"no evaluation data at {DATA} (set HORNBEAM_DATA)")
def test_naughty_strings_come_through_extraction_grounded() -> None:
    texts = dict(enumerate(json.loads(NAUGHTY.read_text("utf-8"))))
    schema = load_schema("general")
    extractor = Extractor(GrammarWalker(3, closing=0.1), schema, ExtractSettings())
    results = dict(extractor.run((str(key), text) for key, text in texts.items()))
    assert set(results) == {str(key) for key in texts}
    for key, result in results.items():
        assert result.state is ChunkState.DONE or not result.detail, (texts[int(key)], result.detail)
        check_entities(result.entities, texts[int(key)], schema)
    assert sum(bool(result.relations) for result in results.values())
