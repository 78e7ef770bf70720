"""A corpus of any size and what a model would have found in it: an index without a model.

Sentences say "NAME relation NAME.", names are drawn from topics with a long tail, so that entities have
neighbourhoods and some are hubs. What is found is read off the sentences. Everything follows from the seed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from hornbeam.build import Build
from hornbeam.extract.result import ChunkExtraction, ChunkText, FoundEntity, FoundRelation
from hornbeam.index.hashed_embedder import HashedEmbedder
from hornbeam.index.texts import relation_words
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Completion, ModelIdentity, Request
from hornbeam.llm.tokenizer import DirectoryTokenizer
from hornbeam.pipeline.executing import Extraction, LocalExecutor
from hornbeam.progress import Progress
from hornbeam.schema import GraphSchema, load_schema
from hornbeam.settings import Settings

SCHEMA = "general"
#: A chunk holds about two paragraphs.
SETTINGS = Settings.model_validate(
    {"chunk": {"max_tokens": 160, "overlap_tokens": 0}, "organise": {"namer": "facts"}, "device": "cpu"}
)
SENTENCES = 4  # of a paragraph
PARAGRAPHS = 4  # of a document
CHUNKS = 2  # of a document
ENTITIES_PER_CHUNK = 2  # new ones; the others were there before
TOPIC = 400  # entities that are spoken of together
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "el", "or")]
_MENTION = re.compile(r"[A-Z][a-z]+ [A-Z][a-z]+")


class World:
    """Names with types, and the sentences about them.

    Args:
        chunks: about how many the corpus will have.
    """

    def __init__(self, chunks: int, seed: int = 42) -> None:
        self.schema: GraphSchema = load_schema(SCHEMA)
        self._chance = np.random.default_rng(seed)
        self._count = max(TOPIC, ENTITIES_PER_CHUNK * chunks)
        self._types = [entity_type.name for entity_type in self.schema.entity_types]
        self._relations = {
            kind: [
                (relation.name, tails)
                for relation in self.schema.relation_types
                if kind in self.schema.head_types(relation.name)
                and (tails := sorted(self.schema.tail_types(relation.name)))
            ]
            for kind in self._types
        }
        self._relation_of_words = {
            relation_words(relation.name): relation.name for relation in self.schema.relation_types
        }

    def text(self, first_paragraph: int) -> str:
        """A document of `PARAGRAPHS` paragraphs."""
        return "\n\n".join(self._paragraph(first_paragraph + number) for number in range(PARAGRAPHS))

    def read(self, text: str) -> ChunkExtraction:
        """What is said in a chunk."""
        entities: dict[str, list[tuple[int, int]]] = {}
        for match in _MENTION.finditer(text):
            entities.setdefault(match.group(), []).append(match.span())
        places = {name: place for place, name in enumerate(entities)}
        relations: dict[tuple[int, str, int], None] = {}
        for sentence in re.split(r"[.\n]+", text):
            names = _MENTION.findall(sentence)
            words = _MENTION.sub("", sentence).strip()
            if len(names) == 2 and words in self._relation_of_words:
                relations[places[names[0]], self._relation_of_words[words], places[names[1]]] = None
        return ChunkExtraction(
            entities=tuple(
                FoundEntity(name=name, type=self._type(name), confidence=0.9, spans=tuple(spans))
                for name, spans in entities.items()
            ),
            relations=tuple(
                FoundRelation(head=head, type=kind, tail=tail, confidence=0.8)
                for head, kind, tail in relations
            ),
        )

    def _paragraph(self, number: int) -> str:
        return " ".join(self._sentence(number) for _ in range(SENTENCES))

    def _sentence(self, paragraph: int) -> str:
        topic = TOPIC * int(self._chance.integers(0, self._count // TOPIC)) if paragraph % 8 else 0
        while True:
            head = _name(topic + self._member())
            choices = self._relations[self._type(head)]
            if choices:
                break
        relation, tails = choices[int(self._chance.integers(0, len(choices)))]
        while True:
            tail = _name(topic + self._member())
            if self._type(tail) in tails and tail != head:
                return f"{head} {relation_words(relation)} {tail}."

    def _member(self) -> int:
        """Of a topic: the first are spoken of most."""
        return int(TOPIC * self._chance.random() ** 2)

    def _type(self, name: str) -> str:
        return self._types[sum(name.encode()) % len(self._types)]


def _name(number: int) -> str:
    """Two capitalised words that tell the number."""
    digits = []
    for _ in range(4):
        number, digit = divmod(number, len(_SYLLABLES))
        digits.append(_SYLLABLES[digit])
    return f"{(digits[0] + digits[1]).capitalize()} {(digits[2] + digits[3]).capitalize()}"


class SilentModel:
    """A `LanguageModel` that is never asked: its tokenizer cuts the chunks."""

    max_model_len = 8192
    in_flight = 0
    identity = ModelIdentity("replayed", "replayed-1", "replay", "what it would say is known")

    def __init__(self) -> None:
        self.tokenizer = DirectoryTokenizer(embedded_model_directory())

    def chat_prompt(self, system: str, user: str) -> str:
        return self.tokenizer.chat_prompt(system, user)

    def neutralise(self, text: str) -> str:
        return self.tokenizer.neutralise(text)

    def submit(self, request: Request) -> None:
        raise AssertionError(f"nobody answers {request.request_id}")

    def poll(self) -> list[Completion]:
        return []

    def stream(self, request: Request) -> Iterator[str | Completion]:
        raise AssertionError(f"nobody answers {request.request_id}")

    def close(self) -> None:
        return


class Replay:
    """A `ChunkExtractor` that knows the answers."""

    version = "replayed-1"
    versions: Mapping[str, str] = {"": version}

    def __init__(self, world: World) -> None:
        self._world = world

    def check_room(self, max_chunk_tokens: int) -> None:
        """Nobody reads the chunks."""

    def run(
        self, chunks: Iterable[ChunkText], on_progress: Callable[[int], None]
    ) -> Iterator[tuple[str, ChunkExtraction]]:
        for key, text, *_ in chunks:
            yield key, self._world.read(text)


class ReplayedBuild(Build):
    """A build whose chunks are answered from the world that wrote them."""

    def __init__(self, index: Path, world: World, settings: Settings = SETTINGS) -> None:
        replay = Replay(world)
        super().__init__(
            index,
            settings,
            world.schema,
            SilentModel(),
            HashedEmbedder(),
            Progress(quiet=True),
            executor=lambda recipe: LocalExecutor(settings.corpus, Extraction(replay, None, recipe)),
        )
        self._extractor = replay  # asked for the room of its prompts


def write_corpus(folder: Path, world: World, documents: Iterable[int]) -> list[Path]:
    """Returns the folder, as the paths of a build."""
    for number in documents:
        place = folder / f"{number // 1000:04d}" / f"{number:07d}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(world.text(number * PARAGRAPHS), "utf-8")
    return [folder]
