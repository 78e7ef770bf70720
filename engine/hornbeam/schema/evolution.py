"""From a schema and proposals to its next version: which proposals may pass, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import regex

from hornbeam.errors import SchemaError
from hornbeam.schema.model import AttributeType, EntityType, GraphSchema, RelationType, fold
from hornbeam.schema.proposals import Proposal, TypeKind
from hornbeam.schema.type_names import name_key

#: Examples that a new entity type's description names.
_NAMED_EXAMPLES = 3
#: What a description may quote of a document: it stands in every prompt of every chunk, so nothing that could
#: be markup or an instruction.
_QUOTABLE = regex.compile(r"[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N} .'’\-]{1,39}")


@dataclass(frozen=True, slots=True)
class ProposalGates:
    """What a proposal must reach."""

    min_confidence: float  # μ
    min_support: int  # distinct documents (of very few: chunks)
    duplicate_similarity: float  # to an existing type: from here on it is the same


def type_names(schema: GraphSchema, kind: TypeKind) -> list[str]:
    if kind == "entity":
        return [item.name for item in schema.entity_types]
    if kind == "relation":
        return [item.name for item in schema.relation_types]
    return [item.name for item in schema.attribute_types]


def same_type(schema: GraphSchema | None, kind: TypeKind, name: str) -> str | None:
    """The schema's type whose name is the same in another form."""
    if schema is None:
        return None
    key = name_key(name)
    return next((known for known in type_names(schema, kind) if name_key(known) == key), None)


def objections(proposal: Proposal, schema: GraphSchema | None, gates: ProposalGates) -> list[str]:
    """Why a proposal does not pass; [] when it does. Without a schema nothing is a duplicate."""
    found = []
    names = (proposal.name, *proposal.also)
    same = next((known for name in names if (known := same_type(schema, proposal.kind, name))), None)
    if same is not None:
        found.append(f"says the same as '{same}'")
    elif proposal.nearest is not None and proposal.similarity >= gates.duplicate_similarity:
        found.append(
            f"near-duplicate of '{proposal.nearest}' "
            f"(similarity {proposal.similarity:.2f}, bound {gates.duplicate_similarity:.2f})"
        )
    if proposal.confidence < gates.min_confidence:
        found.append(f"confidence {proposal.confidence:.2f} below {gates.min_confidence:.2f}")
    if proposal.support < gates.min_support:
        found.append(f"support {proposal.support} below {gates.min_support}")
    return found


def extended(schema: GraphSchema, proposals: Iterable[Proposal], *, version: int) -> GraphSchema:
    """The schema with the proposed types at the end of its lists: a new version that knows its parent.

    Raises:
        SchemaError: a name is taken, or a domain or range names a type that the schema does not have.
    """
    entities, relations, attributes = (
        list(schema.entity_types),
        list(schema.relation_types),
        list(schema.attribute_types),
    )
    changes = []
    for proposal in sorted(proposals, key=lambda each: each.kind != "entity"):  # endpoints first
        taken = {fold(name): name for name in type_names(schema, proposal.kind)}
        if fold(proposal.name) in taken:
            raise SchemaError(
                f"{proposal.kind} type '{proposal.name}' is in schema '{schema.name}' version "
                f"{schema.version} already, as '{taken[fold(proposal.name)]}'"
            )
        if proposal.kind == "entity":
            entities.append(new_entity_type(proposal))
        elif proposal.kind == "relation":
            relations.append(RelationType(name=proposal.name, domain=proposal.domain, range=proposal.range))
        else:
            attributes.append(
                AttributeType(name=proposal.name, domain=proposal.domain, kind=proposal.value_kind)
            )
        changes.append(_change(proposal))
    return GraphSchema(
        name=schema.name,
        version=version,
        entity_types=tuple(entities),
        relation_types=tuple(relations),
        attribute_types=tuple(attributes),
        parent=schema.hash(),
        changes=tuple(changes),
    )


def new_entity_type(proposal: Proposal) -> EntityType:
    """Described by some of its examples."""
    surfaces = dict.fromkeys(" ".join(example.places[0].surface.split()) for example in proposal.examples)
    fit = [surface for surface in surfaces if _QUOTABLE.fullmatch(surface)]
    description = f"such as {', '.join(fit[:_NAMED_EXAMPLES])}" if fit else ""
    return EntityType(name=proposal.name, description=description)


def _change(proposal: Proposal) -> str:
    also = f", also said as {', '.join(proposal.also)}" if proposal.also else ""
    return (
        f"added {proposal.kind} type {proposal.name} (support {proposal.support}, "
        f"confidence {proposal.confidence:.2f}{also})"
    )


@dataclass(frozen=True, slots=True)
class NewType:
    """What a schema can hold that an older one cannot."""

    kind: TypeKind
    name: str
    description: str = ""
    heads: frozenset[str] = frozenset()  # entity types of heads or owners; of an entity type: none
    tails: frozenset[str] = frozenset()


def added_types(older: GraphSchema, newer: GraphSchema) -> list[NewType] | None:
    """What `newer` has beyond `older`; None when it is no extension: some fact of `older` is no longer valid.

    A relation or attribute type that was widened counts as new for all that it allows now.
    """
    found = [
        NewType("entity", item.name, item.description)
        for item in newer.entity_types
        if item.name not in type_names(older, "entity")
    ]
    if len(found) + len(older.entity_types) != len(newer.entity_types):
        return None
    old_types = type_names(older, "entity")
    relations = {item.name: item for item in newer.relation_types}
    attributes = {item.name: item for item in newer.attribute_types}
    for relation in older.relation_types:
        now = relations.get(relation.name)
        if now is None or (now.inverse, now.symmetric) != (relation.inverse, relation.symmetric):
            return None
        if not all(
            newer.allows(relation.name, head, tail)
            for head in older.head_types(relation.name)
            for tail in older.tail_types(relation.name)
        ):
            return None
    for attribute in older.attribute_types:
        known = attributes.get(attribute.name)
        if known is None or known.kind != attribute.kind:
            return None
        if not set(attribute.domain or old_types) <= set(known.domain or type_names(newer, "entity")):
            return None
    old_relations = {item.name: (set(item.domain), set(item.range)) for item in older.relation_types}
    for relation in newer.relation_types:
        if old_relations.get(relation.name) != (set(relation.domain), set(relation.range)):
            heads, tails = newer.head_types(relation.name), newer.tail_types(relation.name)
            found.append(
                NewType("relation", relation.name, relation.description, frozenset(heads), frozenset(tails))
            )
    old_attributes = {item.name: set(item.domain) for item in older.attribute_types}
    for attribute in newer.attribute_types:
        if old_attributes.get(attribute.name) != set(attribute.domain):
            owners = frozenset(attribute.domain or type_names(newer, "entity"))
            found.append(NewType("attribute", attribute.name, attribute.description, owners))
    return found
