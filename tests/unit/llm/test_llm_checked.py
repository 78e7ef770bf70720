"""No grammar reaches the model before it was found to be good; the order of requests stays."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.llm.checked import GRAMMAR_REFUSED, CheckedModel
from hornbeam.llm.grammar_check import GrammarCheck
from hornbeam.llm.protocol import Request
from support.walker import GrammarWalker

try:
    WALKER = GrammarWalker()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)


class Waiting:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.verdicts: dict[str, Future[bool]] = {}

    def submit(self, grammar: str) -> Future[bool]:
        return self.verdicts.setdefault(grammar, Future())


def request(name: str, grammar: str | None) -> Request:
    return Request(name, "prompt", 8, grammar=grammar)


def test_requests_reach_the_model_in_order_whichever_grammar_is_ready_first() -> None:
    model, check = GrammarWalker(), Waiting()
    checked = CheckedModel(model, check)
    for name in "ab":
        checked.submit(request(name, f'root ::= "{name}"'))
    checked.submit(request("c", None))
    check.verdicts['root ::= "b"'].set_result(False)
    assert model.calls == 0
    assert checked.in_flight == 3
    check.verdicts['root ::= "a"'].set_result(False)
    assert [completion.text for completion in checked.poll()][:2] == ["a", "b"]
    assert [one.request_id for one in model.requests] == ["a", "b", "c"]
    assert checked.in_flight == 0


def test_a_refused_grammar_comes_back_as_an_error_and_never_reaches_the_model() -> None:
    model = GrammarWalker()
    check = GrammarCheck(model.tokenizer.directory, 60.0)
    checked = CheckedModel(model, check)
    checked.submit(request("bad", "root ::= ["))
    checked.submit(request("good", 'root ::= "yes" | "no"'))
    done = {}
    while checked.in_flight:
        done |= {completion.request_id: completion for completion in checked.poll()}
    assert done["bad"].finish_reason == "error"
    assert done["bad"].error.startswith(GRAMMAR_REFUSED)
    assert done["good"].text in ("yes", "no")
    assert [one.request_id for one in model.requests] == ["good"]
    assert checked.refused == 1
    assert checked.poll() == []
    check.close()
