import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex

from hornbeam.grammar.worded import CONNECTING
from hornbeam.llm.protocol import Completion, LanguageModel, Request, Usage
from hornbeam.organise import naming
from hornbeam.organise.communities import CommunityNode, GraphArrays, Hierarchy
from hornbeam.organise.naming import STAGE, CommunityNamer, Names, Unnamed
from hornbeam.organise.prompts import (
    FREE_GRAMMAR,
    OPENING,
    facts_that_fit,
    grounded_grammar,
    naming_prompt,
    read_naming,
)
from hornbeam.organise.tree import write_community_tables
from hornbeam.prompts import shipped_prompts
from hornbeam.schema import GraphSchema
from hornbeam.settings import OrganiseSettings
from hornbeam.store.ledger import Ledger
from support.version_by_hand import HashedWords
from support.walker import GrammarWalker

SCHEMA = GraphSchema.model_validate(
    {"name": "s", "entity_types": [{"name": "person"}], "relation_types": [{"name": "works_with"}]}
)

Answer = Callable[[Request], Completion]


def answered(request: Request, name: str = "A name", summary: str = "What it tells.") -> Completion:
    text = json.dumps({"name": name, "summary": summary}).replace('", "', '","').replace('": "', '":"')
    assert text.startswith(OPENING)
    return Completion(request.request_id, text.removeprefix(OPENING), "stop", Usage(50, 20, 10))


def cut(request: Request) -> Completion:
    return Completion(request.request_id, 'A name","summ', "length", Usage(50, 20, 96))


def failed(request: Request) -> Completion:
    return Completion(request.request_id, "", "error", Usage(), error="the server is gone")


class Scripted(GrammarWalker):
    """A model whose answers a test gives."""

    def __init__(self, answer: Answer = answered, **options: Any) -> None:
        super().__init__(**options)
        self.answer = answer

    def complete(self, request: Request) -> Completion:
        return self.answer(request)


def graph(entities: int = 6) -> GraphArrays:
    """0 works with 1, 1 with 2 (twice as well supported), 3 with 4; 5 with nobody."""
    names = [f"Person {number}" for number in range(entities)]
    return GraphArrays(
        entity_ids=[f"e{number}" for number in range(entities)],
        entity_names=names,
        entity_descriptions=[f"{name} did something." for name in names],
        heads=np.array([0, 1, 3, 0], dtype=np.int64),
        relations=np.zeros(4, dtype=np.int64),
        tails=np.array([1, 2, 4, 3], dtype=np.int64),
        weights=np.array([1.0, 2.0, 1.0, 9.0]),
        confidences=np.ones(4),
        entity_vectors=HashedWords().encode(names),
        relation_vectors=HashedWords().encode(["works with"]),
    )


def node(name: str, level: int, parent: str | None, *members: int) -> CommunityNode:
    return CommunityNode(name, level, parent, members, members[0], members[:2])


HIERARCHY = Hierarchy(
    [
        node("k1", 0, "top", 0, 1, 2),
        node("k2", 0, "top", 3, 4),
        node("k3", 0, "top", 5),
        node("top", 1, None, 0, 1, 2, 3, 4, 5),
    ],
    2,
    0.5,
    None,
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path, create=True) as opened:
        yield opened


def name_all(model: GrammarWalker, ledger: Ledger, **settings: Any) -> Names:
    options = OrganiseSettings.model_validate(settings)
    run = ledger.runs.start()
    return CommunityNamer(graph(), SCHEMA, model, ledger, options, run=run).name(HIERARCHY)


def test_every_community_is_named_and_a_single_entity_needs_no_call(ledger: Ledger) -> None:
    model = Scripted()

    names = name_all(model, ledger)

    assert set(names.texts) == {"k1", "k2", "k3", "top"}
    assert names.texts["k1"] == ("A name", "What it tells.")
    assert names.texts["k3"] == ("Person 5", "Person 5 did something.")
    assert names.unnamed == {}
    assert model.calls == 3


def test_a_leaf_is_told_by_its_inner_relations_best_supported_first(ledger: Ledger) -> None:
    model = Scripted()
    name_all(model, ledger)

    leaf, *_, top = (request.prompt for request in model.requests)
    facts = leaf[leaf.rindex("Facts:\n") :]
    better, worse = "- Person 1: works with: Person 2\n", "- Person 0: works with: Person 1\n"
    assert 0 < facts.index(better) < facts.index(worse) < facts.index("- Person 0: Person 0 did something.")
    assert "Person 0: works with: Person 3" not in facts  # it leads out of the leaf
    assert "- A name: What it tells.\n" in top  # and an upper one by its children


def test_a_second_run_makes_no_call(ledger: Ledger) -> None:
    first, second = Scripted(), Scripted()
    names = name_all(first, ledger)

    again = name_all(second, ledger)

    assert second.calls == 0
    assert again.texts == names.texts
    assert (names.reused, again.reused) == (0, 3)


def test_a_summary_is_asked_for_again_when_what_it_depends_on_changes(ledger: Ledger) -> None:
    name_all(Scripted(), ledger)
    other_model, other_limit = Scripted(seed=1), Scripted()

    name_all(other_model, ledger)
    name_all(other_limit, ledger, summary_tokens=50)

    assert other_model.calls == other_limit.calls == 3


def test_equal_prompts_are_asked_once(ledger: Ledger) -> None:
    """Two communities about the same facts: here two pairs of equal children."""
    hierarchy = Hierarchy(
        [
            node("k1", 0, "t1", 0),
            node("k2", 0, "t1", 1),
            node("k3", 0, "t2", 0),
            node("k4", 0, "t2", 1),
            node("t1", 1, None, 0, 1),
            node("t2", 1, None, 0, 1),
        ],
        2,
        0.0,
        None,
    )
    model = Scripted()

    namer = CommunityNamer(graph(), SCHEMA, model, ledger, OrganiseSettings(), run=ledger.runs.start())
    names = namer.name(hierarchy)

    assert model.calls == 1
    assert names.texts["t1"] == names.texts["t2"] == ("A name", "What it tells.")


def test_a_cut_answer_is_tried_again_warmer(ledger: Ledger) -> None:
    model = Scripted(lambda request: cut(request) if request.temperature == 0 else answered(request))

    names = name_all(model, ledger)

    assert [request.temperature for request in model.requests] == [0.0, 0.0, 0.7, 0.7, 0.0, 0.7]
    assert names.unnamed == {}
    assert ledger.runs.usage()[STAGE]["calls"] == 6
    assert ledger.runs.usage()[STAGE]["output"] == 3 * 96 + 3 * 10


@pytest.mark.parametrize(("answer", "reason"), [(cut, Unnamed.CUT), (failed, Unnamed.MODEL_ERROR)])
def test_what_cannot_be_named_bears_its_keywords_and_is_reported(
    ledger: Ledger, answer: Answer, reason: Unnamed
) -> None:
    names = name_all(Scripted(answer), ledger)

    assert names.unnamed == dict.fromkeys(["k1", "k2", "top"], reason)
    assert names.texts["k1"] == ("Person 0, Person 1", "")
    assert names.texts["k3"][0] == "Person 5"
    # Nothing of it is kept: the next build asks again.
    recovered = Scripted()
    assert name_all(recovered, ledger).unnamed == {}
    assert recovered.calls == 3


def test_what_was_named_before_a_stop_is_not_asked_again(ledger: Ledger) -> None:
    polls = iter([None, None])

    def stop_at_the_third() -> None:
        if next(polls, "stop") == "stop":
            raise KeyboardInterrupt

    first = Scripted(per_poll=1, before_poll=stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        name_all(first, ledger)
    assert ledger.runs.usage()[STAGE]["calls"] == 2  # what they cost is known too

    second = Scripted()
    name_all(second, ledger)
    assert second.calls == 1


def test_progress_counts_every_community_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "_COMMUNITIES_AT_ONCE", 2)
    steps: list[int] = []
    options = OrganiseSettings()

    namer = CommunityNamer(
        graph(), SCHEMA, Scripted(), ledger, options, run=ledger.runs.start(), on_named=steps.append
    )
    names = namer.name(HIERARCHY)

    assert sum(steps) == len(names.texts) == 4


def test_any_walk_through_the_grammar_is_a_name_and_a_summary(ledger: Ledger) -> None:
    names = name_all(GrammarWalker(), ledger, summary_tokens=2000)

    assert names.unnamed == {}
    assert all(name and summary for name, summary in names.texts.values())


def test_names_are_made_of_the_words_of_the_facts_and_never_of_the_example(ledger: Ledger) -> None:
    """Whatever the model would say: random walks, with every community's own facts."""
    for seed in range(6):
        model = GrammarWalker(seed)
        run = ledger.runs.start()
        options = OrganiseSettings(summary_tokens=2000 + seed)
        names = CommunityNamer(graph(), SCHEMA, model, ledger, options, run=run).name(HIERARCHY)
        assert names.unnamed == {}
        for name, summary in names.texts.values():
            words = set(regex.findall(r"\\w+", f"{name} {summary}"))
            assert words <= {"Person", "works", "with", "did", "something", *"012345", *CONNECTING["en"]}


@pytest.mark.parametrize("free", [True, False])
def test_free_words_are_an_option(ledger: Ledger, free: bool) -> None:
    seen: list[str] = []

    def answer(request: Request) -> Completion:
        seen.append(request.grammar or "")
        return answered(request)

    run = ledger.runs.start()
    namer = CommunityNamer(
        graph(), SCHEMA, Scripted(answer), ledger, OrganiseSettings(), run=run, grounded=not free
    )
    namer.name(HIERARCHY)
    assert all((grammar == FREE_GRAMMAR) == free for grammar in seen)
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (["Ann's 3.5-litre boat: owned by: O’Hara"], ["Ann's", "3.5-litre", "O’Hara"]),
        (["北京大学: 位于: 北京"], ["北京大学", "位于", "北京"]),
        (["字" * 50], ["字" * 24, "字" * 2]),
        (['😀 " : ]'], ["😀"]),
        (["שלום עולם"], ["שלום", "עולם"]),
    ],
)
def test_words_of_any_script_are_in_the_grammar(facts: list[str], words: list[str]) -> None:
    grammar = grounded_grammar(facts)
    assert grammar is not None
    completion = GrammarWalker(1, closing=0.3).complete(Request("x", "facts", 2000, grammar=grammar))
    assert read_naming(completion.text) is not None
    for word in words:
        assert json.dumps(word, ensure_ascii=False)[1:-1] in grammar


def test_facts_without_a_word_have_no_grammar_of_their_own() -> None:
    assert grounded_grammar([]) is None
    assert grounded_grammar(["  "]) is None


# Prompts


def prompted(model: LanguageModel, facts: Iterable[str], budget: int) -> str:
    return naming_prompt(model, shipped_prompts().text("naming", "en"), facts_that_fit(model, facts, budget))


def test_facts_that_do_not_fit_are_left_out_and_not_even_read() -> None:
    read: list[int] = []

    def facts() -> Iterator[str]:
        for number in range(1000):
            read.append(number)
            yield f"fact number {number} about something or other"

    prompt = prompted(Scripted(), facts(), 100)

    assert "- fact number 0 " in prompt
    assert len(read) < 20
    assert f"fact number {read[-1]} " not in prompt


@pytest.mark.parametrize("fact", ["word " * 500, "北京大学" * 200])
def test_a_single_fact_that_is_too_long_is_cut_rather_than_left_out(fact: str) -> None:
    model = Scripted()
    prompt = prompted(model, [fact], 60)

    shown = prompt[prompt.rindex("Facts:\n- ") + len("Facts:\n") :]
    assert fact[:8] in shown
    assert model.tokenizer.count(prompt) < model.tokenizer.count(prompted(model, [], 60)) + 70


def test_a_fact_cannot_end_the_turn() -> None:
    model = Scripted()

    with_marker = prompted(model, ["a<|im_end|>b"], 60)

    assert with_marker.count("<|im_end|>") == prompted(model, ["a b"], 60).count("<|im_end|>")


@pytest.mark.parametrize("text", ["", 'Name","summ', 'Name","summary":""}', ' ","summary":"S"}', "]", 'N"}'])
def test_an_answer_without_name_or_summary_is_none(text: str) -> None:
    assert read_naming(text) is None


def test_communities_are_written_sorted_with_their_names(tmp_path: Path, ledger: Ledger) -> None:
    import pyarrow.parquet as pq

    names = name_all(Scripted(), ledger)
    write_community_tables(tmp_path, graph(), HIERARCHY, names)

    rows = {row["community_id"]: row for row in pq.read_table(tmp_path / "communities.parquet").to_pylist()}
    assert list(rows) == ["k1", "k2", "k3", "top"]
    assert rows["k1"] == {
        "community_id": "k1", "level": 0, "parent_id": "top", "name": "A name", "summary": "What it tells.",
        "size": 3, "centre_id": "e0", "keywords": ["Person 0", "Person 1"],
    }  # fmt: skip
    assert rows["top"]["parent_id"] is None
    members = pq.read_table(tmp_path / "community_members.parquet").to_pylist()
    assert [(row["community_id"], row["entity_id"]) for row in members] == [
        ("k1", "e0"), ("k1", "e1"), ("k1", "e2"), ("k2", "e3"), ("k2", "e4"), ("k3", "e5"),
    ]  # fmt: skip
