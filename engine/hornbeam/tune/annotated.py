"""Texts whose facts are known, under a schema: what an adapter is trained on.

DIR     a set that `hornbeam evaluate text2kg` reads: what it counts as known, never what it asks about
FILE    worked examples as `extract.example_file` has them, in the types of a schema
INDEX   the promoted version of an index that a person has checked: its chunks with their facts
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import regex

from hornbeam.errors import UsageError
from hornbeam.evaluate.fact_sets import GoldSentence, Split, read_fact_sets
from hornbeam.extract.examples import read_examples
from hornbeam.extract.known_facts import Fact
from hornbeam.schema.load import load_schema
from hornbeam.schema.model import GraphSchema

_WORDS = regex.compile(r"(?<=\p{Ll})(?=\p{Lu})|[_\s]+")


@dataclass(frozen=True, slots=True)
class AnnotatedText:
    """
    Args:
        facts: head, relation or attribute type, tail or value.
        entities: names with their types in reading order; empty where they are not known.
    """

    text: str
    facts: tuple[Fact, ...]
    entities: tuple[tuple[str, str], ...] = ()

    @property
    def subject(self) -> str:
        """The head of most of its facts, the first of several."""
        return Counter(head for head, _, _ in self.facts).most_common(1)[0][0]


@dataclass(frozen=True, slots=True)
class AnnotatedSet:
    name: str
    schema: GraphSchema
    texts: tuple[AnnotatedText, ...]


def read_annotated(source: Path, schema: str | None) -> list[AnnotatedSet]:
    """
    Args:
        schema: a schema file or the name of a seed schema; for FILE alone.

    Raises:
        UsageError: the source is of none of the forms, or has no facts.
    """
    if (source / "CURRENT").is_file():
        from hornbeam.tune.checked_index import read_checked_index

        sets = [read_checked_index(source)]
    elif source.is_dir():
        sets = _of_fact_sets(source)
    elif source.is_file():
        sets = [_of_examples(source, schema)]
    else:
        raise UsageError(f"{source} is no folder of annotated texts, file of examples or index")
    sets = [one for one in sets if one.texts]
    if not sets:
        raise UsageError(f"{source}: no text with a fact")
    return sets


def renamed(one: AnnotatedSet, style: str) -> AnnotatedSet:
    """The set with its relation and attribute types written in another style, so that a model does not learn
    by heart what it is to read.

    Args:
        style: words, camel or snake.
    """
    types = (*one.schema.relation_types, *one.schema.attribute_types)
    named = {item.name: _styled(item.name, style) for item in types}
    if len(set(named.values())) < len(named):
        return one  # two types would become one
    schema = one.schema.model_copy(
        update={
            "relation_types": tuple(
                item.model_copy(update={"name": named[item.name]}) for item in one.schema.relation_types
            ),
            "attribute_types": tuple(
                item.model_copy(update={"name": named[item.name]}) for item in one.schema.attribute_types
            ),
        }
    )
    texts = tuple(
        replace(text, facts=tuple((head, named[name], tail) for head, name, tail in text.facts))
        for text in one.texts
    )
    return AnnotatedSet(one.name, schema, texts)


def _styled(name: str, style: str) -> str:
    words = [word for word in _WORDS.split(name) if word]
    if style == "camel":
        return "".join([words[0].lower(), *(word[:1].upper() + word[1:] for word in words[1:])])
    return ("_" if style == "snake" else " ").join(word.lower() for word in words)


def _of_fact_sets(folder: Path) -> list[AnnotatedSet]:
    """The known sentences of both splits; of sets that publish no test here, those that a held-out split asks
    about as well: nothing reports on them."""
    sets: dict[str, AnnotatedSet] = {}
    splits: tuple[Split, ...] = ("test", "held-out")
    for split in splits:
        try:
            found = read_fact_sets(folder, None, split)
        except UsageError:
            if split == "test":  # of no known form; a set may well have nothing to hold out
                raise
            continue
        for one in found:
            gold = [*one.known_gold, *(one.asked if split == "held-out" else ())]
            sets[one.name] = AnnotatedSet(one.name, one.schema, _texts(gold, one.schema))
    return list(sets.values())


def _texts(gold: Iterable[GoldSentence], schema: GraphSchema) -> tuple[AnnotatedText, ...]:
    known = {item.name for item in (*schema.relation_types, *schema.attribute_types)}
    return tuple(
        AnnotatedText(sentence.text, facts, sentence.entities)
        for sentence in gold
        if (facts := tuple(fact for fact in sentence.triples if fact[1] in known))
    )


def _of_examples(file: Path, schema: str | None) -> AnnotatedSet:
    if schema is None:
        raise UsageError(f"{file}: name the schema of its types with --schema")
    loaded = load_schema(schema)
    return AnnotatedSet(
        file.stem,
        loaded,
        tuple(
            AnnotatedText(example.text, (*example.relations, *example.attributes), example.entities)
            for example in read_examples(file, loaded)
            if example.relations or example.attributes
        ),
    )
