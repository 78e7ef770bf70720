"""Sentences whose facts are known, and what they say of a new sentence.

One JSON object a line: `{"text": "…", "facts": [["head", "relation or attribute type", "tail or value"],
…]}`.

Nearest are sentences of like wording and, twice as important, of like frame (the sentence without its names:
`argument_spans.frame`).
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import regex
from numpy.typing import NDArray

from hornbeam.errors import UsageError
from hornbeam.extract.argument_spans import ArgumentSpan, argument_spans, frame
from hornbeam.extract.han_names import HanNames
from hornbeam.extract.value_forms import same_value
from hornbeam.schema.model import GraphSchema

Fact = tuple[str, str, str]  # head, type, tail

#: Raise when other spans of a text can be ends.
_SPANS_VERSION = "2"
#: Weight of likeness in wording beside that of frames, which is 1.
_WORDING = 0.5
#: Known sentences that propose relation types.
_VOTERS = 12
#: Likeness in which a vote falls to 1/e of the nearest one's.
_VOTE_SCALE = 0.05
#: What a type has whose words all stand in the sentence; as much as the threshold of a proposal.
_NAMED = 0.3
#: Letters in which two forms of a word agree ("discovered", "discoverer").
_STEM = 5
#: Known ends that a span is compared with: the nearest of those of a type.
_NEAREST_ENDS = 3
#: Likeness of a span to the ends of a type that no known sentence has.
_UNKNOWN_LIKENESS = 0.3

_BRACKETS = regex.compile(r"\s*\([^()]*\)")
_CAMEL = regex.compile(r"(?<=\p{Ll})(?=\p{Lu})|[_/\s]+")
_WORD = regex.compile(r"\w+")


class Encoder(Protocol):
    @property
    def fingerprint(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, one row a text."""
        ...


@dataclass(frozen=True, slots=True)
class KnownSentence:
    text: str
    facts: tuple[Fact, ...]


def read_known_sentences(file: Path) -> list[KnownSentence]:
    """
    Raises:
        UsageError: the file cannot be read, or a line is not of the form; it is named.
    """
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"known facts {file}: {error}") from error
    sentences = []
    for number, written in enumerate(lines, start=1):
        if not written.strip():
            continue
        try:
            entry = json.loads(written)
            facts = tuple((str(head), str(name), str(tail)) for head, name, tail in entry["facts"])
            text = entry["text"]
            if not isinstance(text, str):
                raise TypeError("text is no string")
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f'known facts {file}, line {number}: not {{"text": …, "facts": [[head, type, tail], …]}} '
                f"({error})"
            ) from error
        sentences.append(KnownSentence(text, facts))
    return sentences


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with what can be an end of a fact in it, as vectors."""

    text: str
    spans: tuple[ArgumentSpan, ...]
    vector: NDArray[np.float32]
    frame: NDArray[np.float32]
    ends: Mapping[str, NDArray[np.float32]]  # by written form


class KnownFacts:
    """A store of known sentences in the types of one schema.

    Args:
        sentences: facts with a type that the schema lacks are left out.
        max_words: of a name.
    """

    def __init__(
        self, sentences: Iterable[KnownSentence], schema: GraphSchema, encoder: Encoder, max_words: int
    ) -> None:
        known = {item.name for item in (*schema.relation_types, *schema.attribute_types)}
        self._types = {name: _stems(_CAMEL.split(name)) for name in sorted(known)}
        self._encoder = encoder
        self._max_words = max_words
        self._sentences = [
            KnownSentence(sentence.text, facts)
            for sentence in sentences
            if (facts := tuple(fact for fact in sentence.facts if fact[1] in known))
        ]
        self._han_names = HanNames(
            ((sentence.text, _ends_of(sentence)) for sentence in self._sentences), max_words
        )
        read = self.read([sentence.text for sentence in self._sentences])
        self._grounded = [
            grounded(sentence, spans.spans) for sentence, spans in zip(self._sentences, read, strict=True)
        ]
        dimension = encoder.encode([""]).shape[1]
        self._vectors = np.stack([s.vector for s in read]) if read else np.zeros((0, dimension), np.float32)
        self._frames = np.stack([s.frame for s in read]) if read else np.zeros((0, dimension), np.float32)
        self._ends = self._encode_ends()

    def __len__(self) -> int:
        return len(self._sentences)

    @property
    def version(self) -> str:
        """Of what is proposed: part of the key of stored results."""
        digest = hashlib.sha256(f"{_SPANS_VERSION}\n{self._encoder.fingerprint}".encode())
        for sentence in self._sentences:
            digest.update(json.dumps([sentence.text, sentence.facts]).encode())
        return digest.hexdigest()[:16]

    def read(self, texts: Sequence[str]) -> list[Sentence]:
        """Spans and vectors of sentences, everything encoded at once."""
        spans = [tuple(argument_spans(text, self._max_words, self._han_names)) for text in texts]
        frames = [frame(text, some) for text, some in zip(texts, spans, strict=True)]
        wanted = list(dict.fromkeys([*texts, *frames, *(span.text for some in spans for span in some)]))
        if not wanted:
            return []
        vector_of = dict(zip(wanted, self._encoder.encode(wanted), strict=True))
        return [
            Sentence(text, some, vector_of[text], vector_of[form], {s.text: vector_of[s.text] for s in some})
            for text, some, form in zip(texts, spans, frames, strict=True)
        ]

    def nearest(self, sentence: Sentence) -> list[int]:
        """Indices of the known sentences, the likest first."""
        return [int(index) for index in np.argsort(-self._likeness(sentence), kind="stable")]

    def example(self, index: int) -> tuple[str, tuple[Fact, ...]]:
        """A known sentence and those of its facts whose ends stand in it, in the order of their tails."""
        return self._sentences[index].text, self._grounded[index]

    def proposals(self, sentence: Sentence) -> dict[str, float]:
        """Types by how much speaks for the sentence stating one: votes of the nearest known sentences (1 in
        sum for a type that all of them have) and the type's own words in the text."""
        scores: dict[str, float] = dict.fromkeys(self._types, 0.0)
        likeness = self._likeness(sentence)
        voters = np.argsort(-likeness, kind="stable")[:_VOTERS]
        if len(voters):
            weights = np.exp((likeness[voters] - likeness[voters[0]]) / _VOTE_SCALE)
            for voter, weight in zip(voters, weights / weights.sum(), strict=True):
                for name in sorted({name for _, name, _ in self._sentences[voter].facts}):
                    scores[name] += float(weight)
        stems = set(_stems(_WORD.findall(sentence.text)))
        for name, own in self._types.items():
            scores[name] += _NAMED * sum(stem in stems for stem in own) / max(1, len(own))
        return scores

    def likeness_to_ends(self, name: str, side: int, vector: NDArray[np.float32]) -> float:
        """Mean cosine of a span and the nearest known heads (side 0) or tails (1) of a type."""
        ends = self._ends.get((name, side))
        if ends is None:
            return _UNKNOWN_LIKENESS
        return float(np.sort(ends @ vector)[-_NEAREST_ENDS:].mean())

    def written_values(self, name: str) -> list[str]:
        """The tails of a type as the known facts write them."""
        return [tail for s in self._sentences for _, known, tail in s.facts if known == name]

    def _likeness(self, sentence: Sentence) -> NDArray[np.float32]:
        """float32 [known sentences]: weighted mean of two cosines."""
        likeness: NDArray[np.float32] = _WORDING * (self._vectors @ sentence.vector)
        likeness += self._frames @ sentence.frame
        return likeness / np.float32(1 + _WORDING)

    def _encode_ends(self) -> dict[tuple[str, int], NDArray[np.float32]]:
        names: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
        for sentence in self._sentences:
            for head, name, tail in sentence.facts:
                names[name, 0].add(plain_name(head))
                names[name, 1].add(plain_name(tail))
        every = sorted(set().union(*names.values()))
        vectors = dict(zip(every, self._encoder.encode(every), strict=True)) if every else {}
        return {key: np.stack([vectors[name] for name in sorted(some)]) for key, some in names.items()}


def _ends_of(sentence: KnownSentence) -> list[str]:
    """Every name at its longest form that the text has."""
    return [
        form
        for head, _, tail in sentence.facts
        for name in (head, tail)
        for form in [next((f for f in (name.strip('"'), plain_name(name)) if f in sentence.text), "")]
        if form
    ]


def plain_name(name: str) -> str:
    """A name as a text would give it: no underscores, outer quotes or explanation in brackets."""
    bare = name.replace("_", " ").strip().strip('"')
    return _BRACKETS.sub("", bare).strip() or bare


def grounded(sentence: KnownSentence, spans: Sequence[ArgumentSpan]) -> tuple[Fact, ...]:
    """The facts with their ends as the text writes them, in the order of the tails; others are left out."""
    found: list[tuple[int, Fact]] = []
    folded = sentence.text.casefold()
    same_length = len(folded) == len(sentence.text)  # else places would not fit ("İ", "ß")

    def place(name: str, *, value: bool) -> tuple[int, str] | None:
        for form in (name.replace("_", " ").strip().strip('"'), plain_name(name)):
            start = folded.find(form.casefold()) if same_length and form else -1
            if start >= 0:
                return start, sentence.text[start : start + len(form)]
        for span in spans if value else ():
            if span.kind in ("number", "date", "year") and same_value(span.text, name.strip('"')):
                return span.start, span.text
        return None

    for head, name, tail in sentence.facts:
        owner, end = place(head, value=False), place(tail, value=True)
        if owner and end and owner[1] != end[1]:
            found.append((end[0], (owner[1], name, end[1])))
    return tuple(fact for _, fact in sorted(found))


def _stems(words: Iterable[str]) -> list[str]:
    return [word.casefold()[:_STEM] for word in words if word]
