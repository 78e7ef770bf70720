"""What every local engine must do with a request: the same tests for vLLM and transformers, on a model of
random weights."""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xgrammar")
pytest.importorskip("transformers")

from hornbeam.llm.batch import run_requests
from hornbeam.llm.protocol import Completion, LanguageModel, Request
from hornbeam.settings import ModelSettings
from support.tiny_model import write_tiny_model

SETTINGS = ModelSettings(max_model_len=512, max_num_seqs=8, max_num_batched_tokens=2048, cpu_kv_cache_gib=1)
PREFIX = "A text that every prompt begins with, of more than a block of the cache. " * 4


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module", params=["transformers", pytest.param("vllm", marks=pytest.mark.model)])
def model(request: pytest.FixtureRequest, directory: Path) -> Iterator[LanguageModel]:
    opened: LanguageModel
    if request.param == "vllm":
        pytest.importorskip("vllm")
        from hornbeam.llm.vllm_engine import VllmModel

        opened = VllmModel(directory, SETTINGS, "cpu")
    else:
        from hornbeam.llm.transformers_engine import TransformersModel

        opened = TransformersModel(directory, SETTINGS, "cpu")
    yield opened
    opened.close()


def ask(model: LanguageModel, *requests: Request) -> list[Completion]:
    answers = {answer.request_id: answer for answer in run_requests(model, requests, len(requests))}
    assert len(answers) == len(requests)
    assert model.in_flight == 0
    return [answers[request.request_id] for request in requests]


def request(name: str, prompt: str = "The word is ", **more: Any) -> Request:
    return Request(name, prompt, **({"max_tokens": 24} | more))


def test_each_request_of_a_batch_keeps_to_its_own_grammar(model: LanguageModel) -> None:
    grammars = {
        "a": ('root ::= "yes" | "no"', r"yes|no"),
        "b": ("root ::= [a-c]{2,5} [0-9]", r"[a-c]{2,5}[0-9]"),
        "c": ('root ::= "[\\"" [a-z]{1,3} "\\"]"', r'\["[a-z]{1,3}"\]'),
        "d": ('root ::= "Čapek" | "字号"', r"Čapek|字号"),
    }
    asked = [request(name, grammar=grammar) for name, (grammar, _) in grammars.items()]
    for answer in ask(model, *asked):
        assert answer.finish_reason == "stop", answer
        assert re.fullmatch(grammars[answer.request_id][1], answer.text)


def test_probabilities_are_those_among_the_allowed_tokens(model: LanguageModel) -> None:
    forced, chosen = ask(
        model,
        request("forced", grammar='root ::= "fixed"', logprobs=True),
        request("chosen", grammar='root ::= "yes" | "no"', logprobs=True),
    )
    assert sum(token.logprob for token in forced.tokens) == pytest.approx(0, abs=1e-4)
    assert "".join(token.text for token in forced.tokens).startswith("fixed")
    # Of two tokens that may come, the likelier has at least half; all behind it is forced.
    assert math.log(0.5) - 1e-4 <= sum(token.logprob for token in chosen.tokens) <= 0


def test_scores_come_only_when_they_are_asked_for(model: LanguageModel) -> None:
    (answer,) = ask(model, request("r", grammar='root ::= "x"'))
    assert answer.tokens == ()


def test_a_cut_answer_says_so_and_has_as_many_tokens_as_it_may(model: LanguageModel) -> None:
    (answer,) = ask(model, request("r", grammar="root ::= [a-z]{40}", max_tokens=7, logprobs=True))
    assert (answer.finish_reason, answer.usage.output) == ("length", 7)
    assert re.fullmatch(r"[a-z]{7}", answer.text)
    assert "".join(token.text for token in answer.tokens) == answer.text


def test_an_answer_does_not_outgrow_the_context(model: LanguageModel) -> None:
    (answer,) = ask(model, request("r", "x" * 508, grammar="root ::= [a-z]{40}"))
    assert answer.finish_reason == "length"
    assert answer.usage.prompt + answer.usage.output <= 512


def test_usage_counts_prompt_and_output_as_the_tokenizer_does(model: LanguageModel) -> None:
    (answer,) = ask(model, request("r", "Грам mar 字", grammar='root ::= "abc"'))
    assert answer.usage.prompt == model.tokenizer.count("Грам mar 字")
    assert answer.usage.output in (3, 4)  # with the token that ends it, or without


def test_what_cannot_be_asked_fails_alone(model: LanguageModel) -> None:
    long, broken, well = ask(
        model,
        request("long", "x" * 600),
        request("broken", grammar="root ::= ("),
        request("well", grammar='root ::= "ok"'),
    )
    assert long.finish_reason == "error"
    assert "exceeds the context of 512" in long.error
    assert broken.finish_reason == "error"
    assert broken.error
    assert (well.finish_reason, well.text) == ("stop", "ok")


def test_company_in_the_batch_changes_no_greedy_answer(model: LanguageModel) -> None:
    asked = [
        request(f"r{n}", f"Prompt number {n} " * (1 + n % 4), grammar="root ::= [a-z ]{12}", max_tokens=16)
        for n in range(10)
    ]
    together = ask(model, *asked)
    alone = [ask(model, one)[0] for one in asked]
    assert [answer.text for answer in together] == [answer.text for answer in alone]
    assert len({answer.text for answer in together}) > 1


def test_a_common_beginning_is_read_once(model: LanguageModel) -> None:
    asked = [request(f"r{n}", f"{PREFIX} {n}", grammar="root ::= [a-z]{4}") for n in range(4)]
    first = ask(model, *asked)
    again = ask(
        model, *(request(f"s{n}", f"{PREFIX} {n} more", grammar="root ::= [a-z]{4}") for n in range(4))
    )
    assert sum(answer.usage.cached for answer in first) < sum(answer.usage.prompt for answer in first)
    assert all(128 <= answer.usage.cached < answer.usage.prompt for answer in again)


def test_text_that_was_read_before_gives_the_same_answer(model: LanguageModel) -> None:
    one = request("r", f"{PREFIX} the end", grammar="root ::= [a-z ]{12}", max_tokens=16)
    other = request("s", f"{PREFIX} another end", grammar="root ::= [a-z ]{12}", max_tokens=16)
    assert len({ask(model, one)[0].text, ask(model, one, other)[0].text, ask(model, one)[0].text}) == 1


def test_a_stop_string_ends_the_answer_and_is_no_part_of_it(model: LanguageModel) -> None:
    (answer,) = ask(model, request("r", grammar='root ::= "one, two"', stop=(",",)))
    assert (answer.text, answer.finish_reason) == ("one", "stop")


def test_sampling_is_repeated_by_the_seed(model: LanguageModel) -> None:
    asked = [request(f"r{n}", grammar="root ::= [a-z]{12}", temperature=1.5) for n in range(2)]
    greedy = ask(model, request("g", grammar="root ::= [a-z]{12}"))[0].text
    sampled = {answer.text for answer in (*ask(model, *asked), *ask(model, asked[0]))}
    assert len(sampled) == 1
    assert sampled != {greedy}


def test_a_stream_gives_the_pieces_and_then_the_whole(model: LanguageModel) -> None:
    *pieces, last = model.stream(request("s", grammar='root ::= "字号 and more"', max_tokens=40))
    assert isinstance(last, Completion)
    assert len(pieces) > 3
    assert "".join(str(piece) for piece in pieces) == last.text == "字号 and more"
    assert last.usage.output >= 13


def test_requests_beside_a_stream_are_not_lost(model: LanguageModel) -> None:
    model.submit(request("beside", grammar='root ::= "beside"'))
    *_, last = model.stream(request("s", grammar='root ::= "a long enough stream of text"', max_tokens=40))
    assert isinstance(last, Completion)
    beside: list[Completion] = []
    while model.in_flight:
        beside += model.poll()
    assert [answer.text for answer in beside] == ["beside"]


def test_a_stream_that_is_left_is_cancelled(model: LanguageModel) -> None:
    stream = model.stream(request("s", grammar='root ::= "a long enough stream of text"', max_tokens=40))
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert model.in_flight == 0
    assert ask(model, request("r", grammar='root ::= "after"'))[0].text == "after"


def test_a_stream_of_what_cannot_be_asked_is_one_error(model: LanguageModel) -> None:
    (answer,) = model.stream(request("s", "x" * 600))
    assert isinstance(answer, Completion)
    assert answer.finish_reason == "error"


def test_the_identity_tells_what_runs_it(model: LanguageModel) -> None:
    identity = model.identity
    assert "in process" in identity.backend
    assert "float32" in identity.fingerprint


@pytest.mark.model
def test_vllm_has_what_we_give_to_it() -> None:
    pytest.importorskip("vllm")
    locks = Path(__file__).resolve().parents[2] / "locks"
    specification = importlib.util.spec_from_file_location("gpu_check", locks / "check.py")
    assert specification is not None
    assert specification.loader is not None
    check = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(check)
    assert check.vllm_problems() == []
