"""The proposals of an index, what the gates say of them, and the schema that comes of accepting some."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from hornbeam.errors import SchemaError, StoreError, UsageError
from hornbeam.schema.evolution import ProposalGates, extended, objections, type_names
from hornbeam.schema.formats import read_schema
from hornbeam.schema.load import check_new_file, load_schema, write_schema
from hornbeam.schema.model import GraphSchema
from hornbeam.schema.proposals import Proposal, TypeKind
from hornbeam.settings import EvolveSettings
from hornbeam.store.ledger import Ledger
from hornbeam.store.schemas import accept_schema, accepted_schema, next_version


@dataclass(frozen=True, slots=True)
class JudgedProposal:
    proposal: Proposal
    objections: tuple[str, ...]  # of the gates

    @property
    def passes(self) -> bool:
        return not self.objections

    def to_json(self) -> dict[str, Any]:
        judged = {"passes": self.passes, "objections": list(self.objections)}
        return self.proposal.model_dump(mode="json") | judged


@dataclass(frozen=True, slots=True)
class Proposed:
    """What is proposed to the schema in use."""

    schema: GraphSchema
    proposals: tuple[JudgedProposal, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": {
                "name": self.schema.name,
                "version": self.schema.version,
                "hash": self.schema.hash(),
            },
            "proposals": [each.to_json() for each in self.proposals],
        }


@dataclass(frozen=True, slots=True)
class Accepted:
    schema: GraphSchema
    path: Path

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.schema.name,
            "version": self.schema.version,
            "hash": self.schema.hash(),
            "parent": self.schema.parent,
            "changes": list(self.schema.changes),
            "file": str(self.path),
        }


def gates_of(settings: EvolveSettings) -> ProposalGates:
    return ProposalGates(settings.min_confidence, settings.min_support, settings.duplicate_similarity)


def read_proposals(index: Path, settings: EvolveSettings) -> Proposed:
    """The proposals of the last build that asked for some, judged by the gates as they are set now; without
    those that were accepted since.

    Raises:
        StoreError: the directory is no index, or no build asked.
    """
    with Ledger(index, create=False) as ledger:
        stored = ledger.types.proposals()
    if stored is None:
        raise StoreError(
            f"nothing is proposed for {index}; run 'hornbeam index PATH --index {index} --evolve' first"
        )
    schema = accepted_schema(index) or read_schema(stored[0], "schema")
    gates = gates_of(settings)
    try:
        proposals = [Proposal.model_validate_json(text) for text in stored[1]]
    except ValidationError as error:
        raise StoreError(f"the proposals of {index} are of another form; run with --evolve again") from error
    return Proposed(
        schema,
        tuple(
            JudgedProposal(proposal, tuple(objections(proposal, schema, gates)))
            for proposal in proposals
            if proposal.name not in type_names(schema, proposal.kind)
        ),
    )


def grown_schema(index: Path, settings: EvolveSettings) -> tuple[GraphSchema, GraphSchema]:
    """The schema in use, and what it would be with every proposal that passes the gates."""
    proposed = read_proposals(index, settings)
    return proposed.schema, _grown(index, proposed.schema, _passing(proposed))


def accept_proposals(
    index: Path,
    names: Sequence[str],
    settings: EvolveSettings,
    *,
    force: bool = False,
    output: Path | None = None,
) -> Accepted:
    """Write the schema's next version and make it the one that builds use.

    Args:
        names: `NAME` or `KIND:NAME`; none: all that pass the gates.
        force: a named one may be refused by the gates.
        output: a copy for the user.

    Raises:
        StoreError: nothing is proposed.
        UsageError: a name is not proposed, is of two kinds or did not pass; nothing passed; `output` exists.
        SchemaError: the types do not fit the schema in use.
    """
    proposed = read_proposals(index, settings)
    if output is not None:
        check_new_file(output)
    chosen = [_named(proposed, name, force=force) for name in names] if names else _passing(proposed)
    if not chosen:
        raise UsageError(
            f"none of {len(proposed.proposals)} proposals passes the gates; 'hornbeam schema proposals "
            "--all' says why, 'hornbeam schema accept NAME --force' takes one all the same"
        )
    schema = _grown(index, proposed.schema, list(dict.fromkeys(chosen)))
    path = accept_schema(index, proposed.schema, schema)
    schema = load_schema(str(path))  # the version that was undone before, if it is the same
    if output is not None:
        write_schema(schema, output)
    return Accepted(schema, path)


def _passing(proposed: Proposed) -> list[Proposal]:
    """What passes; of relation and attribute types those whose ends are in the schema or pass, too."""
    entities = {*type_names(proposed.schema, "entity")}
    entities |= {e.proposal.name for e in proposed.proposals if e.passes and e.proposal.kind == "entity"}
    return [
        each.proposal
        for each in proposed.proposals
        if each.passes and entities.issuperset((*each.proposal.domain, *each.proposal.range))
    ]


def _grown(index: Path, schema: GraphSchema, chosen: Sequence[Proposal]) -> GraphSchema:
    try:
        return extended(schema, chosen, version=next_version(index, schema))
    except SchemaError as error:
        raise SchemaError(
            f"the proposals do not fit '{schema.name}' version {schema.version}, the schema in use: {error}"
        ) from error


def _named(proposed: Proposed, name: str, *, force: bool) -> Proposal:
    kind, colon, bare = name.partition(":")
    if not colon or kind not in get_args(TypeKind):
        kind, bare = "", name
    found = [
        each for each in proposed.proposals if each.proposal.name == bare and kind in ("", each.proposal.kind)
    ]
    if not found:
        known = [each.proposal.name for each in proposed.proposals]
        near = difflib.get_close_matches(bare, known, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise UsageError(f"'{name}' is not proposed{hint}")
    if len(found) > 1:
        kinds = " or ".join(f"{each.proposal.kind}:{bare}" for each in found)
        raise UsageError(f"'{name}' is proposed more than once; say {kinds}")
    if found[0].objections and not force:
        raise UsageError(
            f"'{name}' did not pass the gates: {'; '.join(found[0].objections)}; "
            "--force accepts it all the same"
        )
    return found[0].proposal
