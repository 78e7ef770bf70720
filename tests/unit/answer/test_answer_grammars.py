"""What an answer can be, whatever the model prefers: walks through its grammars by the worst possible one."""

from __future__ import annotations

import re

import pytest

from hornbeam.answer.events import AnswerText, Asked, Cited, EvidenceFound, Final
from hornbeam.answer.grammars import extract_rules, sentences_rules
from hornbeam.answer.loop import NO_EVIDENCE, answer_question
from hornbeam.errors import ModelError
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.protocol import Request
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.settings import AnswerSettings, RetrieveSettings
from support.version_by_hand import small_rows
from support.walker import GrammarWalker

TEXTS = {
    1: 'Marie Curie, born in "Warsaw" in 1867,\ndiscovered polonium.',
    4: "宋江在梁山泊遇见李逵。",
    7: "It costs 3.5 % [more] than C++ \\ R&D.",
}


def whole(rules: str) -> str:
    return f"root ::= answer\n{rules}"


@pytest.mark.parametrize("seed", range(20))
def test_an_extracted_answer_is_a_passage_of_the_piece_that_it_cites(seed: int) -> None:
    lexicons = {label: SpanLexicon(text, 10_000) for label, text in TEXTS.items()}
    walker = GrammarWalker(seed=seed)
    text = walker.complete(Request("a", "prompt", 200, grammar=whole(extract_rules(lexicons)))).text
    claim, label = re.fullmatch(r"(.+) \[(\d+)\]", text).groups()  # type: ignore[union-attr]
    assert claim in " ".join(TEXTS[int(label)].split())


@pytest.mark.parametrize("seed", range(10))
def test_every_sentence_cites_a_piece_that_was_shown(seed: int) -> None:
    walker = GrammarWalker(seed=seed, closing=0.3)
    completion = walker.complete(Request("a", "prompt", 2000, grammar=whole(sentences_rules([2, 5], 3))))
    assert completion.finish_reason == "stop"
    marks = re.findall(r"\[([^\]]*)\]", completion.text)
    assert 1 <= len(marks) <= 3
    assert set(marks) <= {"2", "5"}
    assert completion.text.endswith("]")


def events_of(kb: KnowledgeBase, walker: GrammarWalker, question: str, **answer: object) -> list[object]:
    settings = AnswerSettings().model_copy(update=answer)
    return list(
        answer_question(kb, walker, question, retrieve=RetrieveSettings(), answer=settings, style="extract")
    )


def test_citations_of_an_extract_give_the_characters_of_the_claim(kb: KnowledgeBase) -> None:
    texts = {document.document_id: document.text for document in small_rows()["documents"]}
    narrowed = 0
    for seed in range(12):
        events = events_of(kb, GrammarWalker(seed=seed), "What did Curie discover in Warsaw?")
        assert isinstance(events[0], Asked)
        assert isinstance(events[1], EvidenceFound)
        final = events[-1]
        assert isinstance(final, Final)
        assert final.answer == "".join(event.text for event in events if isinstance(event, AnswerText))
        (piece,) = (event.evidence for event in events if isinstance(event, Cited))
        assert final.citations == (piece,)
        if piece.kind == "chunk":
            assert piece.document_id is not None
            quoted = texts[piece.document_id][piece.start : piece.end]
            assert quoted == piece.quote
            narrowed += " ".join(quoted.split()) == final.answer.rpartition(" [")[0]
    assert narrowed


def test_without_evidence_the_model_is_not_asked(empty_kb: KnowledgeBase) -> None:
    walker = GrammarWalker()
    *_, final = events_of(empty_kb, walker, "What did Curie discover in Warsaw?")
    assert isinstance(final, Final)
    assert final.rejected
    assert final.answer == NO_EVIDENCE
    assert walker.calls == 0


def test_reject_mode_declines_below_the_threshold_and_does_not_write_an_answer(kb: KnowledgeBase) -> None:
    walker = GrammarWalker()
    *_, final = events_of(kb, walker, "Who discovered polonium?", mode="reject", answerable_threshold=1.0)
    assert isinstance(final, Final)
    assert final.rejected
    assert final.answer.startswith("The evidence found does not answer this question.")
    assert (final.answerable, final.threshold) != (None, None)
    assert walker.calls == 1


def test_a_model_that_fails_is_an_error_and_no_answer(kb: KnowledgeBase) -> None:
    walker = GrammarWalker(fail_when=lambda request: "the server is gone")
    with pytest.raises(ModelError, match="the server is gone"):
        events_of(kb, walker, "Who discovered polonium?")
