"""What is embedded and lexically indexed for each kind of thing.

entity      "Marie Curie (person). Polish physicist. birth year: 1867; field: physics"
triple      "Marie Curie born in Warsaw"; where the relation tells nothing, the sentence that states it
chunk       its text, after the document's title where the text does not start with it
community   "Radioactivity research. radium, polonium, Curie. <summary>"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from hornbeam.records import Attribute, Entity

#: Raise when anything here gives other texts: vectors of the old ones are then not taken over.
TEXTS_VERSION = "2"
#: Attributes in an entity's text; more of them would drown its name.
ATTRIBUTES_PER_ENTITY = 4
#: Characters of one attribute value and of a description; the embedder reads about a thousand.
VALUE_CHARACTERS = 80
DESCRIPTION_CHARACTERS = 400
#: Relations, in words, that say no more of two things than that they have to do with each other.
TELL_NOTHING = frozenset({"occurs with", "related to"})


@lru_cache(maxsize=1 << 12)
def relation_words(relation_type: str) -> str:
    """ "bornIn", "born_in", "born-in" → "born in"."""
    spaced = "".join(
        f" {letter.lower()}"
        if letter.isupper() and position and relation_type[position - 1].islower()
        else letter
        for position, letter in enumerate(relation_type)
    )
    return " ".join(spaced.replace("_", " ").replace("-", " ").split())


def entity_text(name: str, entity_type: str, description: str, attributes: Iterable[tuple[str, str]]) -> str:
    """`attributes` are (type, value), best first; the first few are used."""
    parts = [f"{name} ({relation_words(entity_type)})" if entity_type else name]
    if description:
        parts.append(description[:DESCRIPTION_CHARACTERS].rstrip(". "))
    stated = [
        f"{relation_words(kind)}: {value[:VALUE_CHARACTERS]}"
        for kind, value in list(attributes)[:ATTRIBUTES_PER_ENTITY]
    ]
    if stated:
        parts.append("; ".join(stated))
    return ". ".join(parts)


def entity_texts(entities: Iterable[Entity], attributes: Mapping[str, Sequence[Attribute]]) -> list[str]:
    """The texts of records, for a stage that needs the vectors before the tables are written.

    Args:
        entities: in the order of the `entities` table.
        attributes: of each entity id; the most confident come first in its text.

    Returns:
        one text per entity, equal to those that `build_indexes` embeds.
    """
    return [
        entity_text(
            entity.name,
            entity.type,
            entity.description,
            (
                (attribute.type, attribute.value)
                for attribute in sorted(
                    attributes.get(entity.entity_id, ()),
                    key=lambda attribute: (-attribute.confidence, attribute.attribute_id),
                )
            ),
        )
        for entity in entities
    ]


def triple_text(head: str, relation_type: str, tail: str, sentence: str = "") -> str:
    """What a fact says.

    Args:
        sentence: the fact's description. Where the relation tells nothing, it is what there is to know.
    """
    stated = f"{head} {relation_words(relation_type)} {tail}"
    if not sentence or not tells_nothing(relation_type):
        return stated
    return sentence if head in sentence and tail in sentence else f"{stated}. {sentence}"


def tells_nothing(relation_type: str) -> bool:
    return relation_words(relation_type).lower() in TELL_NOTHING


def chunk_text(title: str, source: str, text: str) -> str:
    """A chunk from the middle of a document rarely says what it is about; its title does.

    A title that is only the file's name, or that the text starts with, is left out.
    """
    title = title.strip()
    path = PurePosixPath(source.partition("#")[0])
    if not title or title in (source, path.name, path.stem) or text.lstrip().startswith(title):
        return text
    return f"{title}\n{text}"


def community_text(name: str, keywords: Sequence[str], summary: str) -> str:
    return ". ".join(part.rstrip(". ") for part in (name, ", ".join(keywords), summary) if part.strip())
