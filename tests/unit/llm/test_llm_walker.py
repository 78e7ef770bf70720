"""The test's own model: what other tests rely on."""

from __future__ import annotations

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Completion, Request
from support.walker import GrammarWalker

try:
    embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)

GRAMMAR = 'root ::= ("a" | "字" | "👍🏽"){1,9} "]"'


def request(name: str, prompt: str = "prompt", **more: object) -> Request:
    return Request(name, prompt, 64, grammar=GRAMMAR, logprobs=True, **more)  # type: ignore[arg-type]


def test_a_walk_depends_on_seed_prompt_and_grammar_and_not_on_company() -> None:
    alone = GrammarWalker(1)
    alone.submit(request("x"))
    (completion,) = alone.poll()
    company = GrammarWalker(1)
    for i in range(5):
        company.submit(request(f"other {i}", f"prompt {i}"))
    company.submit(request("x"))
    assert completion in company.poll()
    texts = {GrammarWalker(seed).complete(request("x")).text for seed in range(8)}
    assert len(texts) > 1
    assert len({company.complete(request("x", f"p{i}")).text for i in range(8)}) > 1


def test_tokens_spell_the_text_and_are_counted_with_the_stop_token() -> None:
    for seed in range(8):
        completion = GrammarWalker(seed).complete(request("x"))
        assert completion.finish_reason == "stop"
        assert "".join(token.text for token in completion.tokens) == completion.text
        assert all(token.logprob <= 0 for token in completion.tokens)
        assert completion.usage.output == len(completion.tokens)
        assert set(completion.text.removesuffix("]")) <= set("a字👍🏽")


def test_a_walk_that_meets_the_limit_is_cut() -> None:
    short = Request("x", "prompt", 3, grammar='root ::= "[" [0-9]* "]"')
    completion = GrammarWalker(1, closing=0.0).complete(short)
    assert completion.finish_reason == "length"
    assert completion.usage.output == 3
    assert completion.tokens == ()


def test_closing_decides_how_long_lists_get() -> None:
    grammar = 'root ::= "[" ("\\"" [a-z]{1,3} "\\"" ","?){0,40} "]"'
    lengths = [
        sum(
            len(GrammarWalker(s, closing=c).complete(Request("x", "p", 200, grammar=grammar)).text)
            for s in range(5)
        )
        for c in (0.9, 0.02)
    ]
    assert lengths[0] < lengths[1]


def test_calls_failures_and_hooks_are_the_tests_to_set() -> None:
    polls: list[int] = []
    model = GrammarWalker(
        per_poll=1,
        before_poll=lambda: polls.append(1),
        fail_when=lambda asked: "broken" if asked.request_id == "bad" else None,
    )
    model.submit(request("bad"))
    model.submit(request("good"))
    assert (model.calls, model.in_flight, model.peak) == (2, 2, 2)
    (bad,) = model.poll()
    assert (bad.finish_reason, bad.error) == ("error", "broken")
    (good,) = model.poll()
    assert good.finish_reason == "stop"
    assert len(polls) == 2
    assert model.poll() == []


def test_a_stream_gives_the_pieces_of_the_same_walk() -> None:
    model = GrammarWalker(1)
    *pieces, last = model.stream(request("x"))
    assert isinstance(last, Completion)
    assert "".join(str(piece) for piece in pieces) == last.text
    assert last == model.complete(request("x"))
    assert model.calls == 1


def test_a_request_without_grammar_is_answered_with_text() -> None:
    completion = GrammarWalker(1).complete(Request("x", "prompt", 64))
    assert completion.finish_reason == "stop"
    assert completion.text
    assert completion == GrammarWalker(1).complete(Request("x", "prompt", 64))


def test_a_grammar_that_does_not_parse_and_a_prompt_too_long_come_back_as_errors() -> None:
    model = GrammarWalker(max_model_len=8)
    assert model.complete(Request("x", "p", 4, grammar="root ::= (")).finish_reason == "error"
    assert "exceeds the context" in model.complete(Request("x", "p " * 20, 4)).error
