"""The fast tier: extraction without a model, noun-like spans that share a sentence.

As E²GraphRAG and LinearRAG index: no call, no relation types. It fills the seed schema `cooccurrence`, so a
huge corpus has a graph within minutes; a later run with a model extracts the same chunks with types.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from hornbeam.corpus.boundaries import segment
from hornbeam.errors import SchemaError
from hornbeam.extract.noun_spans import NounSpan, noun_spans
from hornbeam.extract.result import ChunkExtraction, ChunkText, FoundEntity, FoundRelation
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.schema.model import GraphSchema, fold
from hornbeam.settings import ExtractSettings

SCHEMA = "cooccurrence"
#: What stands in the seed schema of that name.
TERM, OCCURS_WITH = "term", "occurs_with"
#: Part of the key of a stored result: raise it when other spans or pairs are found.
FAST_VERSION = "fast 1"
#: Terms behind a term in its sentence that it is paired with: a list of a hundred names makes no 4,950 pairs.
NEXT_TERMS = 5
#: Confidence that two terms of one sentence have to do with each other; repeated in other chunks it rises.
PAIRED = 0.5
#: Chunks read before their results are given out: one transaction each time.
_CHUNKS_AT_ONCE = 256


class CooccurrenceExtractor:
    """Extracts chunks by shape, repetition and sentences; what a chunk gives follows from its text alone."""

    versions: Mapping[str, str] = {"": FAST_VERSION}

    def __init__(self, schema: GraphSchema, settings: ExtractSettings) -> None:
        """
        Raises:
            SchemaError: the schema cannot hold what is found.
        """
        if not any(t.name == TERM for t in schema.entity_types) or not schema.allows(OCCURS_WITH, TERM, TERM):
            raise SchemaError(
                f"the fast tier finds {TERM} and {OCCURS_WITH}, which schema '{schema.name}' has not: "
                f"use the seed schema '{SCHEMA}'"
            )
        self._settings = settings

    def check_room(self, max_chunk_tokens: int) -> None:
        """Any chunk will do: there is no prompt."""

    def run(
        self,
        chunks: Iterable[ChunkText],
        on_progress: Callable[[int], None] = lambda in_flight: None,
    ) -> Iterator[tuple[str, ChunkExtraction]]:
        """As `Extractor.run`, in the order of the chunks."""
        source = iter(chunks)
        while some := list(islice(source, _CHUNKS_AT_ONCE)):
            for key, text, *_ in some:
                yield key, self.extract(text)
            on_progress(0)

    def extract(self, text: str) -> ChunkExtraction:
        """The terms of a text and which of them share a sentence."""
        lexicon = SpanLexicon(text, self._settings.max_name_words)
        starts = [unit.start for unit in segment(text)]
        terms = noun_spans(lexicon, starts, self._settings.max_name_words)
        return ChunkExtraction(
            entities=tuple(
                FoundEntity(name=term.name, type=TERM, confidence=term.score, spans=term.places)
                for term in terms
            ),
            relations=tuple(
                FoundRelation(
                    head=head,
                    type=OCCURS_WITH,
                    tail=tail,
                    confidence=round(PAIRED * terms[head].score * terms[tail].score, 3),
                )
                for head, tail in _pairs(terms, starts)
            ),
        )


def _pairs(terms: Sequence[NounSpan], sentence_starts: Sequence[int]) -> list[tuple[int, int]]:
    # Pairs of terms, each once, sorted. The relation is symmetric: whatever the order in the text, the head
    # is the one whose name sorts first, so that all chunks that state a pair state the same fact.
    mentions = sorted((place, number) for number, term in enumerate(terms) for place in term.places)
    sentences: dict[int, dict[int, None]] = {}
    for (start, _), number in mentions:
        sentences.setdefault(bisect_right(sentence_starts, start), {})[number] = None
    found: set[tuple[int, int]] = set()
    for ordered in sentences.values():
        numbers = list(ordered)
        for at, number in enumerate(numbers):
            for other in numbers[at + 1 : at + 1 + NEXT_TERMS]:
                head, tail = sorted((number, other), key=lambda one: (fold(terms[one].name), one))
                found.add((head, tail))
    return sorted(found)
