"""Is it so? A yes or no of the model about every fact that was found in a chunk.

The question follows the same prompt, up to and including the chunk, that the fact came from, so that only
the statement is read anew. A grammar leaves two answers; P(yes) comes from the probabilities of what was
answered. A call that fails leaves its fact unverified.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from hornbeam.extract.result import ChunkExtraction, ChunkVerification, StageUsage
from hornbeam.extract.stages import Extractor
from hornbeam.llm.conversations import Conversation, run_conversations
from hornbeam.llm.protocol import Completion, Request
from hornbeam.prompts import Prompts, shipped_prompts
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import ExtractSettings

#: What becomes of a chunk.
Outcome = ChunkExtraction | ChunkVerification

TASK = STAGE = "verification"
GRAMMAR = 'root ::= "yes" | "no"'
#: "yes" and "no" are a token or two, and one ends the answer.
_ANSWER_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk to extract, or one whose facts alone are to be verified."""

    key: str
    text: str
    extraction: ChunkExtraction | None = None
    document_id: str = ""  # the first that has this text
    language: str = ""


class Verifier:
    """Asks about the facts of chunks, with the model and the prompt that an extractor found them with."""

    def __init__(
        self,
        extractor: Extractor,
        schema: GraphSchema,
        settings: ExtractSettings,
        prompts: Prompts | None = None,
    ) -> None:
        self._extractor = extractor
        self._settings = settings
        self._prompts = prompts or shipped_prompts()
        self._descriptions = {
            item.name: item.description for item in (*schema.relation_types, *schema.attribute_types)
        }
        #: part of the key of a stored verification
        self.version = self._version()

    def run(
        self, chunks: Iterable[Chunk], on_progress: Callable[[int], None] = lambda in_flight: None
    ) -> Iterator[tuple[str, Outcome]]:
        """Extract chunks and verify what was found, lazily, in one window with the extractor.

        Yields:
            `(key, result)`: of every chunk its extraction, unless it came with one, and then its verification
            if there are facts in it.
        """
        source = iter(chunks)
        found: deque[Chunk] = deque()  # whose facts are to be verified
        extracting: dict[str, Chunk] = {}

        def following() -> Conversation[tuple[str, Outcome]] | None:
            if not found:
                chunk = next(source, None)
                if chunk is None:
                    return None
                if chunk.extraction is None:
                    extracting[chunk.key] = chunk
                    return self._extractor.extract(chunk.key, chunk.text, chunk.language)
                found.append(chunk)
            known = found.popleft()
            return self.verify(known.key, known.text, known.extraction or ChunkExtraction(), known.language)

        for key, outcome in run_conversations(
            self._extractor.model, following, self._settings.window, on_progress
        ):
            yield key, outcome
            if isinstance(outcome, ChunkExtraction):
                chunk = extracting.pop(key)
                if outcome.facts:
                    found.append(replace(chunk, extraction=outcome))

    def verify(
        self, key: str, text: str, extraction: ChunkExtraction, language: str = ""
    ) -> Conversation[tuple[str, ChunkVerification]]:
        """One call for each relation and attribute, all at once; those that fail again, up to the retries."""
        statements = [
            *(
                (extraction.entities[fact.head].name, fact.type, extraction.entities[fact.tail].name)
                for fact in extraction.relations
            ),
            *(
                (extraction.entities[fact.entity].name, fact.type, fact.value)
                for fact in extraction.attributes
            ),
        ]
        prompt, asking = self._extractor.prompts.of(text, language), self._prompts.text(TASK, language)

        def request(place: int) -> Request:
            question = asking.ask(statement=self._statement(*statements[place]))
            return Request(
                f"{key}/{place}",
                prompt.question(text, question),
                _ANSWER_TOKENS,
                grammar=GRAMMAR,
                logprobs=True,
            )

        answers: list[float | None] = [None] * len(statements)
        usage = StageUsage()
        detail = ""
        asked = list(range(len(statements)))
        for _ in range(1 + self._settings.retries):
            if not asked:
                break
            completions = yield [request(place) for place in asked]
            failed = []
            for place, completion in zip(asked, completions, strict=True):
                spent = completion.usage
                usage += StageUsage(calls=1, prompt=spent.prompt, cached=spent.cached, output=spent.output)
                answers[place] = probability_of_yes(completion)
                if answers[place] is None:
                    failed.append(place)
                    detail = completion.error or f"the answer was {completion.text[:40]!r}"
            asked = failed
        relations = len(extraction.relations)
        return key, ChunkVerification(
            relations=tuple(answers[:relations]),
            attributes=tuple(answers[relations:]),
            detail=detail[:500] if None in answers else "",
            usage={STAGE: usage} if usage.calls else {},
        )

    def _statement(self, subject: str, predicate: str, value: str) -> str:
        # An import has types of its own.
        description = self._descriptions.get(predicate, "")
        meaning = f" ({description})" if description else ""
        return f"{subject} {predicate.replace('_', ' ')} {value}{meaning}"

    def _version(self) -> str:
        digest = hashlib.sha256(GRAMMAR.encode())
        for language, version in sorted(self._extractor.versions.items()):
            digest.update(f"{language} {version} {self._prompts.text(TASK, language).content}".encode())
        return digest.hexdigest()[:16]


def probability_of_yes(completion: Completion) -> float | None:
    """None: it did not answer. Rounded like a confidence.

    The product of the answer's token probabilities, each among the tokens that the grammar allows; of a "no"
    what is left. The few tokens that only begin one of the words are taken for the other one.
    """
    if completion.finish_reason == "error":
        return None
    said = completion.text.strip()
    if said not in ("yes", "no"):
        return None
    probability = math.exp(min(0.0, sum(token.logprob for token in completion.tokens)))
    return round(probability if said == "yes" else 1.0 - probability, 3)
