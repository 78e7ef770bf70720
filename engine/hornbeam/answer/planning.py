"""Sub-questions asked and answered: those that rest on nothing unanswered are asked together."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from hornbeam.answer.events import Event, SubQuestionFinished, SubQuestionStarted
from hornbeam.answer.inquiry import Inquiry
from hornbeam.answer.plans import Level, SubQuestion, parse_plan, plan_grammar, put_in
from hornbeam.answer.writing import AnswerForm, AnswerReader
from hornbeam.llm.protocol import Completion
from hornbeam.retrieve.evidence import Evidence
from hornbeam.retrieve.search import ROUTES

_PLAN_TOKENS = 320
#: Of the retrieval routes, what each level looks through. Texts are part of all of them.
_ROUTES_OF: dict[Level, frozenset[str]] = {
    "node": frozenset(ROUTES) - {"community", "triple"},
    "triple": frozenset(ROUTES) - {"community"},
    "community": frozenset({"community", "chunk_dense", "chunk_bm25", "pagerank"}),
}


@dataclass(frozen=True, slots=True)
class Solved:
    """A sub-question with its answer."""

    sub_question: SubQuestion
    question: str  # with the answers that it rests on
    answer: str  # without mark; "" if there is none
    citation: Evidence | None
    evidence: tuple[Evidence, ...]  # that was found for it


def make_plan(inquiry: Inquiry) -> tuple[SubQuestion, ...]:
    """One sub-question, the question itself, where the model sees no more in it."""
    kb = inquiry.kb
    types = list(kb.entity_types) if inquiry.retrieve.asked_types else []
    limit = inquiry.answer.plan_questions
    prompt = inquiry.chat("plan", types=", ".join(types) or "none", question=inquiry.question)
    grammar = plan_grammar(inquiry.question, types, limit, any_words=inquiry.own_words)
    (completion,) = inquiry.complete("plan", [inquiry.request("plan", prompt, _PLAN_TOKENS, grammar=grammar)])
    plan = parse_plan(completion.text)[:limit]
    if len(plan) > 1:
        return plan
    first = plan[0] if plan else SubQuestion(1, "", "triple", (), ())
    return (SubQuestion(1, inquiry.question, first.level, first.types, ()),)


def solve(inquiry: Inquiry, plan: Sequence[SubQuestion]) -> Generator[Event, None, list[Solved]]:
    """Frontier by frontier: what rests on nothing unanswered goes to the model in one batch."""
    solved: dict[int, Solved] = {}
    while len(solved) < len(plan):
        frontier = [
            one for one in plan if one.number not in solved and all(rest in solved for rest in one.depends_on)
        ]
        asked = [_asked(one, solved) for one in frontier]
        for one, question in zip(frontier, asked, strict=True):
            yield SubQuestionStarted(one.number, question)
        found: list[tuple[Evidence, ...]] = []
        for one, question in zip(frontier, asked, strict=True):
            pieces, event = inquiry.find(
                question,
                _ROUTES_OF[one.level],
                tokens=inquiry.answer.evidence_tokens // 2,
                types=frozenset(one.types),
                sub_question=one.number,
            )
            yield event
            found.append(tuple(pieces))
        for one, question, evidence, answer in zip(
            frontier, asked, found, _answers(inquiry, asked, found), strict=True
        ):
            text, citation = answer
            solved[one.number] = Solved(one, question, text, citation, evidence)
            labels = (citation.label,) if citation else ()
            yield SubQuestionFinished(one.number, question, text, labels)
    return [solved[number] for number in sorted(solved)]


def _asked(one: SubQuestion, solved: dict[int, Solved]) -> str:
    """Where a question has no answer, its own words stand in: they are still what is looked for."""
    return put_in(
        one.text,
        {
            number: solved[number].answer or solved[number].question.rstrip("?？ ")
            for number in one.depends_on
        },
    )


def _answers(
    inquiry: Inquiry, questions: Sequence[str], found: Sequence[tuple[Evidence, ...]]
) -> Iterator[tuple[str, Evidence | None]]:
    """Each question's answer without its mark, and what it rests on; all are with the model at once."""
    forms = [
        AnswerForm(inquiry, pieces, question) if pieces else None
        for question, pieces in zip(questions, found, strict=True)
    ]
    requests = [
        inquiry.request("sub_questions", form.prompt, form.max_tokens, grammar=form.grammar)
        for form in forms
        if form is not None
    ]
    completions = iter(inquiry.complete("sub_questions", requests) if requests else ())
    for form in forms:
        yield ("", None) if form is None else _read(form, next(completions))


def _read(form: AnswerForm, completion: Completion) -> tuple[str, Evidence | None]:
    reader = AnswerReader(form)
    for _ in reader.take(completion.text):
        pass
    text = reader.text_without_marks
    return (text, reader.citations[0]) if reader.citations and text else ("", None)
