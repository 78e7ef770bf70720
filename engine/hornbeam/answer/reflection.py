"""The loop of looking again: at every step the model answers, or searches for what it lacks.

The question stays the same throughout; a search adds evidence and takes none away from the question's own
half of the budget. The loop ends with an answer, after `answer.max_steps`, when a query repeats, when a
search brings nothing new, or at the deadline.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from hornbeam.answer.answerability import answerable, missing_terms, refusal
from hornbeam.answer.draft import Draft
from hornbeam.answer.events import Event, Final, Stepped
from hornbeam.answer.grammars import phrase_rules
from hornbeam.answer.inquiry import Inquiry
from hornbeam.answer.names import names_in
from hornbeam.answer.planning import Solved
from hornbeam.answer.selection import choose_pieces
from hornbeam.answer.writing import AnswerForm, AnswerReader, write_answer
from hornbeam.grammar.spans import split_words
from hornbeam.index.tokens import tokenise
from hornbeam.llm.protocol import Completion
from hornbeam.retrieve.evidence import Evidence
from hornbeam.retrieve.search import ROUTES

_ANSWER, _SEARCH = "answer: ", "search: "
_QUERY_WORDS = 12
_QUERY_TOKENS = 64
#: Names of the evidence that a query may be made of.
_NAMES = 60


def reflect(
    inquiry: Inquiry, draft: Draft, first: Sequence[Evidence], solved: Sequence[Solved]
) -> Generator[Event, None, Final]:
    """
    Args:
        first: found for the question itself.
        solved: its sub-questions, if it has been taken apart.
    """
    settings = inquiry.answer
    count = inquiry.model.tokenizer.count
    cited = [one.citation for one in solved if one.citation is not None]
    pieces = {piece.label: piece for piece in inquiry.evidence}
    whole = [pieces[piece.label] for piece in cited]  # a citation may be cut to the claim
    others: list[Sequence[Evidence]] = [one.evidence for one in solved]
    asked = {frozenset(tokenise(text)) for text in (inquiry.question, *(one.question for one in solved))}
    searching = settings.max_steps > 1
    for number in range(1, settings.max_steps + 1):
        searching = searching and number < settings.max_steps
        draft.evidence = choose_pieces(first, whole, others, settings.evidence_tokens, count)
        answering = True
        if settings.mode == "reject":
            draft.probability = answerable(inquiry, draft.evidence)
            answering = draft.probability >= settings.answerable_threshold
            if not answering and not searching:
                missing = missing_terms(inquiry.question, draft.evidence)
                yield Stepped(number, "stop", "", 0, "the evidence does not answer")
                return Final(refusal(missing), True, draft.probability, (), missing=missing)
            searching = searching and not answering
        form = AnswerForm(inquiry, draft.evidence)
        draft.reader = AnswerReader(form)
        if not searching:
            yield Stepped(number, "answer", "", 0, "no more searches" if number > 1 else "one step")
            yield from write_answer(inquiry, form, draft.reader)
            break
        query = yield from _step(inquiry, draft.reader, form, solved, number, answering=answering)
        if query is None:
            break
        words = frozenset(tokenise(query))
        if not words or words in asked:
            yield Stepped(number, "stop", query, 0, "the query repeats")
            searching = False
            continue
        asked.add(words)
        before = len(inquiry.evidence)
        found, event = inquiry.find(
            query, frozenset(ROUTES), tokens=settings.evidence_tokens // 2, step=number
        )
        others.append(found)
        new = len(inquiry.evidence) - before
        yield event
        yield Stepped(number, "search", query, new, "the model asked for it")
        if not new:
            yield Stepped(number, "stop", query, 0, "nothing new was found")
            searching = False
    assert draft.reader is not None
    reader = draft.reader
    return Final(reader.text, False, draft.probability, reader.citations, cut=reader.cut)


def _step(
    inquiry: Inquiry,
    reader: AnswerReader,
    form: AnswerForm,
    solved: Sequence[Solved],
    number: int,
    *,
    answering: bool,
) -> Generator[Event, None, str | None]:
    """One reply of the model: the answer, streamed into `reader` (then None), or a query."""
    known = "; ".join(f"{one.question} {one.answer}" for one in solved if one.answer)
    prompt = inquiry.chat("step", evidence=form.evidence, found=known or "nothing", question=inquiry.question)
    words = None if inquiry.own_words else list(_words(inquiry.question, form.shown))
    rules = [f'root ::= "{_SEARCH}" query', phrase_rules("query", words, _QUERY_WORDS)]
    if answering:
        rules = [f'root ::= "{_ANSWER}" answer | "{_SEARCH}" query', *rules[1:], form.rules]
    tokens = max(form.max_tokens, _QUERY_TOKENS) if answering else _QUERY_TOKENS
    request = inquiry.request("step", prompt, tokens, grammar="\n".join(rules))
    said, passed = "", 0
    with inquiry.meter.timed("step"):
        for part in inquiry.model.stream(request):
            if isinstance(part, Completion):
                inquiry.check("step", part)
                inquiry.meter.called("step", part.usage)
                reader.cut = part.finish_reason == "length"
                break
            said += part
            if said.startswith(_ANSWER) and len(said) > len(_ANSWER):
                if not passed:
                    inquiry.meter.first_token()
                    yield Stepped(number, "answer", "", 0, "the evidence suffices")
                    passed = len(_ANSWER)
                yield from reader.take(said[passed:])
                passed = len(said)
    if passed:
        return None
    reader.cut = False
    return said.removeprefix(_SEARCH).strip()


def _words(question: str, evidence: Sequence[Evidence]) -> Iterator[str]:
    """Of the question, and of the names in the evidence; each once, at least one."""
    names = [name for piece in evidence for name in names_in(piece.text)]
    texts = [question, *list(dict.fromkeys(names))[:_NAMES]]
    words = dict.fromkeys(word.text for text in texts for word in split_words(text) if word.kind != "mark")
    yield from words or ["?"]
