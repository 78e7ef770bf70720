"""Lines of facts that end with a judgement."""

import math

import pytest

from hornbeam.grammar.facts import FactSlot, fact_grammar, line, read_facts
from hornbeam.llm.protocol import Completion, TokenScore, Usage

SLOTS = [FactSlot("team", {"Titans": ("Ayers", "Yes | no")}), FactSlot("born in", {"LA": ("Ayers",)})]


def test_every_line_ends_with_yes_or_no() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    compiled = xgrammar.GrammarCompiler(
        xgrammar.TokenizerInfo([chr(code) for code in range(128)]), cache_enabled=False
    ).compile_grammar(fact_grammar(SLOTS, judged=True))

    def accepts(text: str) -> bool:
        matcher = xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=True)
        return bool(matcher.accept_string(text)) and matcher.is_terminated()

    last = line("born in", "Ayers", "LA", False) + "\n"
    assert accepts(line("team", "Ayers", "Titans", True) + "\n" + last)
    assert accepts(line("team", "Yes | no", "Titans", False) + "\n" + last)
    assert not accepts(line("team", "Ayers", "Titans") + "\n" + last)
    assert not accepts("team: Titans | Ayers | maybe\n" + last)


@pytest.mark.parametrize(("judgement", "stated"), [("yes", 0.8), ("no", 0.2)])
def test_a_judgement_is_read_as_the_probability_of_yes(judgement: str, stated: float) -> None:
    written = [("team: Titans |", -0.5), (" Yes | no", -0.25), (" |", 0.0), (f" {judgement}", math.log(0.8))]
    tokens = tuple(TokenScore(text, logprob) for text, logprob in (*written, ("\n", 0.0)))
    text = "".join(token.text for token in tokens)
    (fact,) = read_facts(Completion("a", text, "stop", Usage(), tokens), SLOTS, judged=True)
    assert (fact.head, fact.tail) == ("Yes | no", "Titans")
    assert fact.stated == pytest.approx(stated)
    assert fact.head_logprob == pytest.approx(-0.25)


def test_a_line_that_was_cut_before_its_judgement_is_not_read() -> None:
    text = "team: Titans | Ayers\nborn in: LA | Ayers | yes\n"
    read = read_facts(Completion("a", text, "stop", Usage()), SLOTS, judged=True)
    assert [fact.slot for fact in read] == [1]


def test_without_judgements_nothing_is_said_of_them() -> None:
    (fact,) = read_facts(Completion("a", "team: Titans | Ayers\n", "stop", Usage()), SLOTS)
    assert fact.stated is None
