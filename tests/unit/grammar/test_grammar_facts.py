"""The lines of guided facts: what the grammar allows and what is read back."""

from collections.abc import Sequence

import pytest

from hornbeam.grammar.facts import FactSlot, fact_grammar, halved_slots, line, read_facts
from hornbeam.llm.protocol import Completion, TokenScore, Usage

SLOTS = [
    FactSlot("birth date", {"July 10, 1989": ("Akeem Ayers",)}),
    FactSlot(
        "team", {"Tennessee Titans": ("Akeem Ayers",), "Akeem Ayers": ("Tennessee Titans", 'Say "yes"')}
    ),
]


def completion(text: str, logprob: float = -0.5) -> Completion:
    tokens = tuple(TokenScore(character, logprob) for character in text)
    return Completion("a", text, "stop", Usage(), tokens)


def accepts(grammar: str, text: str) -> bool:
    xgrammar = pytest.importorskip("xgrammar")
    compiled = xgrammar.GrammarCompiler(
        xgrammar.TokenizerInfo([chr(code) for code in range(128)]), cache_enabled=False
    ).compile_grammar(grammar)
    matcher = xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=True)
    return bool(matcher.accept_string(text)) and matcher.is_terminated()


def test_every_line_is_a_type_with_one_of_its_pairs_of_ends() -> None:
    grammar = fact_grammar(SLOTS)
    good = line("birth date", "Akeem Ayers", "July 10, 1989") + "\n"
    assert accepts(grammar, good + line("team", 'Say "yes"', "Akeem Ayers") + "\n")
    assert not accepts(grammar, good)
    assert not accepts(grammar, good + line("team", "Akeem Ayers", "Akeem Ayers") + "\n")
    assert not accepts(grammar, good + line("club", "Akeem Ayers", "Tennessee Titans") + "\n")


def test_no_slot_or_one_without_ends_is_refused() -> None:
    for slots in ([], [FactSlot("team", {})]):
        with pytest.raises(ValueError, match="at least one"):
            fact_grammar(slots)


def test_ends_are_read_with_the_log_probability_of_their_choice() -> None:
    text = "birth date: July 10, 1989 | Akeem Ayers\nteam: Tennessee Titans | Akeem Ayers\n"
    first, second = read_facts(completion(text), SLOTS)
    assert (first.slot, first.head, first.tail) == (0, "Akeem Ayers", "July 10, 1989")
    assert (second.slot, second.head, second.tail) == (1, "Akeem Ayers", "Tennessee Titans")
    assert first.head_logprob == pytest.approx(-0.5 * len("Akeem Ayers"))
    assert first.tail_logprob == pytest.approx(-0.5 * len("July 10, 1989 | "))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "birth date: July 10, 1989 | Akeem Ay",
        "birth date: 1 May | Akeem Ayers\n",
        "nonsense\n",
        "team: Tennessee Titans | Akeem Ayers\n",
    ],
)
def test_what_a_model_without_the_grammar_may_say_is_no_fact(text: str) -> None:
    assert read_facts(completion(text), SLOTS) == []


def test_halves_of_slots_offer_together_what_the_whole_does() -> None:
    def pairs(slots: Sequence[FactSlot]) -> set[tuple[str, str, str]]:
        return {
            (s.relation, tail, head) for s in slots for tail, heads in s.heads_of.items() for head in heads
        }

    whole = (FactSlot("a", {"x": ("h", "i", "j"), "y": ("h",), "z": ("i",)}), FactSlot("b", {"x": ("i",)}))
    waiting, seen = [whole], []
    while waiting:
        slots = waiting.pop()
        halves = halved_slots(slots)
        assert not halves or set().union(*map(pairs, halves)) == pairs(slots)
        assert sum(len(pairs(half)) for half in halves) in (0, len(pairs(slots)))
        waiting += halves
        seen += [] if halves else [slots]
    assert sorted(len(pairs(slots)) for slots in seen) == [1] * len(pairs(whole))
