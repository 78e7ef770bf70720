"""Two tasks on an anonymised corpus.

    tag         a fact of the index with one end left out, both ends anonymised: "Which one: [PERSON#3], born
                in, …?" The answer is a tag; only the corpus can tell.
    reversion   "Which real name stands behind [PERSON#3]?", with what the corpus says of it. The corpus
                cannot tell: who answers rightly knows it from elsewhere (a model that has read the book), who
                may decline should.

Facts are those with one answer in the index: no other entity has the same relation to the end that is given.
Where an index has too few (one relation type for all, as without a model), sentences with a gap make up the
number.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hornbeam.evaluate.anonymised import TAG, Anonymiser, Tagged
from hornbeam.index.texts import relation_words
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.sentences import sentence_spans

Task = Literal["tag", "reversion"]
#: Characters of a sentence that is shown.
_SENTENCE = (20, 300)
_CLUES = 2

_WORDING = {
    "en": {
        "fact": "Which {kind} is it: {given} — {relation} — ? Answer with its tag.",
        "fact_of": "Which {kind} is it: ? — {relation} — {given}. Answer with its tag.",
        "gap": "Which tag stands in the gap? {sentence}",
        "reversion": "What is the real name behind {tag}? What is said of it: {clues}",
    },
    "zh": {
        "fact": "这是哪个{kind}：{given}——{relation}——？请用标签回答。",
        "fact_of": "这是哪个{kind}：？——{relation}——{given}。请用标签回答。",
        "gap": "空格处是哪个标签？{sentence}",
        "reversion": "{tag}的真实名字是什么？文中说：{clues}",
    },
}


@dataclass(frozen=True, slots=True)
class TaskQuestion:
    task: Task
    question: str
    answer: str  # a tag, or a name
    aliases: tuple[str, ...]  # of a name

    def to_json(self, number: int) -> dict[str, Any]:
        return {
            "id": f"{self.task}-{number}",
            "task": self.task,
            "question": self.question,
            "answer": self.answer,
            "aliases": list(self.aliases),
            # The corpus holds the answer to the one and not to the other.
            "answerable": self.task == "tag",
        }


def make_tasks(kb: KnowledgeBase, tagged: Sequence[Tagged], count: int, seed: int) -> list[TaskQuestion]:
    """At most `count` questions of each task."""
    chance = random.Random(seed)
    anonymiser = Anonymiser(tagged)
    wording = _WORDING["zh" if _is_chinese(kb) else "en"]
    sentences = _Sentences(kb, anonymiser)
    facts = _facts(kb, tagged, wording)
    chance.shuffle(facts)
    known = facts[:count]
    if len(known) < count:
        gaps = [gap for one in tagged if (gap := sentences.gap(one, wording)) is not None]
        chance.shuffle(gaps)
        known += gaps[: count - len(known)]
    hidden = []
    for one in chance.sample(list(tagged), len(tagged)):
        if clues := sentences.clues(one):
            text = wording["reversion"].format(tag=one.tag, clues=" ".join(clues))
            hidden.append(TaskQuestion("reversion", text, one.name, one.forms[1:]))
    return known + hidden[:count]


def _facts(kb: KnowledgeBase, tagged: Sequence[Tagged], wording: dict[str, str]) -> list[TaskQuestion]:
    by_row = {one.row: one for one in tagged}
    ends = [
        (int(kb.heads[row]), kb.relations.text("type", row), int(kb.tails[row]))
        for row in range(len(kb.relations))
    ]
    tails = Counter((head, kind) for head, kind, _ in ends)
    heads = Counter((kind, tail) for _, kind, tail in ends)
    found = []
    for head, kind, tail in ends:
        if head == tail or head not in by_row or tail not in by_row:
            continue
        words = relation_words(kind)
        if tails[head, kind] == 1:
            given, wanted, form = by_row[head], by_row[tail], wording["fact"]
        elif heads[kind, tail] == 1:
            given, wanted, form = by_row[tail], by_row[head], wording["fact_of"]
        else:
            continue
        question = form.format(kind=wanted.type.lower(), given=given.tag, relation=words)
        found.append(TaskQuestion("tag", question, wanted.tag, ()))
    return found


class _Sentences:
    """Anonymised sentences of the corpus that speak of an entity."""

    def __init__(self, kb: KnowledgeBase, anonymiser: Anonymiser) -> None:
        self._kb = kb
        self._anonymiser = anonymiser

    def of(self, one: Tagged) -> list[str]:
        """With its tag, in the order of the chunks, none twice."""
        found: dict[str, None] = {}
        for chunk in dict.fromkeys(self._kb.mentions.of(one.row).tolist()):
            text = self._kb.chunks.text("text", chunk)
            for start, end in sentence_spans(text):
                if not _SENTENCE[0] <= end - start <= _SENTENCE[1]:
                    continue
                said = " ".join(self._anonymiser.text(text[start:end]).split())
                if one.tag in said:
                    found.setdefault(said)
        return list(found)

    def clues(self, one: Tagged) -> list[str]:
        return self.of(one)[:_CLUES]

    def gap(self, one: Tagged, wording: dict[str, str]) -> TaskQuestion | None:
        """Of a sentence that names another entity, too: else nothing says which sentence it is."""
        for said in self.of(one):
            if set(TAG.findall(said)) - {one.tag}:
                question = wording["gap"].format(sentence=said.replace(one.tag, "____"))
                return TaskQuestion("tag", question, one.tag, ())
        return None


def _is_chinese(kb: KnowledgeBase) -> bool:
    """Whether most letters of the first chunks are Han."""
    letters = [
        character
        for row in range(min(len(kb.chunks), 20))
        for character in kb.chunks.text("text", row)
        if character.isalpha()
    ]
    han = sum("\u4e00" <= character <= "\u9fff" for character in letters)
    return 2 * han > len(letters)
