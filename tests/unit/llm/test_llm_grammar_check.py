"""Grammars that an engine could not compile in time are told apart, by size and by trial."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.grammar_check import MOST_RULES, SAFE_RULES, SAFE_SECONDS, GrammarCheck

try:
    TOKENIZER = embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)


def chain(rules: int) -> str:
    """So many rules, each a word and the next."""
    body = [f'w{i} ::= "word{i}" (" " w{i + 1})?' for i in range(rules - 2)]
    return "\n".join(["root ::= w0", *body, f'w{rules - 2} ::= "end"'])


def test_small_plain_grammars_pass_untried_and_huge_ones_are_refused_untried() -> None:
    check = GrammarCheck(TOKENIZER, 60.0)
    grammars = (chain(300), 'root ::= "a [b]{1,2}\\"*" | "+" (name)?\nname ::= "/x"', chain(MOST_RULES + 1))
    verdicts = [check.submit(grammar) for grammar in grammars]
    assert [verdict.result(120) for verdict in verdicts] == [False, False, True]
    assert (check.tried, check.compiled) == (0, 0)
    check.close()


@pytest.mark.parametrize(
    ("grammar", "refused"),
    [
        ('root ::= "a" [^"]* "b"', False),
        ('root ::= ("a" | "b"){1,3}', False),
        ('root ::= "a"+', False),
        ("root ::= [", True),
        ('root ::= "open', True),
    ],
)
def test_a_small_grammar_that_says_more_than_its_size_is_compiled_here(grammar: str, refused: bool) -> None:
    check = GrammarCheck(TOKENIZER, 60.0)
    assert check.submit(grammar).result(120) is refused
    assert check.compiled == 1
    check.close()


def test_below_what_is_known_of_small_grammars_each_is_compiled_here() -> None:
    check = GrammarCheck(TOKENIZER, SAFE_SECONDS / 2)
    assert not check.too_large(chain(20))
    assert check.compiled == 1
    check.close()


def test_a_small_grammar_that_takes_too_long_is_refused() -> None:
    hasty = GrammarCheck(TOKENIZER, 1e-9)
    assert hasty.too_large(chain(300))
    hasty.close()


def test_where_no_compiler_answers_a_large_grammar_is_too_large(tmp_path: Path) -> None:
    check = GrammarCheck(tmp_path / "no tokenizer", 1.0)
    assert check.too_large(chain(SAFE_RULES + 1))
    assert check.tried == 1
    check.close()


def test_large_grammars_are_compiled_within_a_limit_or_refused() -> None:
    patient = GrammarCheck(TOKENIZER, 120.0)
    assert not patient.too_large(chain(2_000))
    assert not patient.too_large(chain(1_900))  # no larger than one that was compiled
    assert patient.tried == 1
    assert patient.too_large(chain(2_100) + "\nfaulty ::= (")
    assert not patient.too_large(chain(2_001))  # it still works
    patient.close()

    hasty = GrammarCheck(TOKENIZER, 0.001)
    assert hasty.too_large(chain(4_000))
    hasty.close()
