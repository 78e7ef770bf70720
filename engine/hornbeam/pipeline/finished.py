"""Is the version that a run would make there already?"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from hornbeam.organise.naming import Unnamed
from hornbeam.pipeline.extraction import replaced_results
from hornbeam.pipeline.inheritance import inherited_results
from hornbeam.pipeline.recipe import Recipe
from hornbeam.resolve.separations import read_separations
from hornbeam.store.ledger import Ledger
from hornbeam.store.versions import Version, list_versions


def version_inputs(ledger: Ledger, recipe: Recipe, made_by: str, unsettled: Collection[str]) -> str:
    """Hash of all that a version is made from.

    Args:
        made_by: `version_recipe`.
        unsettled: keys of the extractions that failed: another run may give another graph.
    """
    digest = hashlib.sha256(made_by.encode())
    for row in ledger.documents():
        for part in (row.document_id, row.title, *row.sources, ""):
            digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    for key in sorted(unsettled):
        digest.update(key.encode())
    digest.update(replaced_results(ledger).encode())
    digest.update(inherited_results(ledger, recipe).which.encode())
    for separation in read_separations(ledger):
        digest.update(separation.merge_id.encode())
    return digest.hexdigest()


def find_finished(index: Path, inputs: str, *, full: bool = True) -> Version | None:
    """The newest version of these inputs.

    One whose communities have no names because the model failed is not finished: it is made again, and where
    nothing comes out better, found to be the same.

    Args:
        full: one that was organised from scratch.
    """
    for version in reversed(list_versions(index)):
        communities = version.manifest["communities"]
        if version.manifest.get("inputs") != inputs or (full and _carried_from(communities) is not None):
            continue
        failed = any(entry["reason"] == Unnamed.MODEL_ERROR for entry in communities["unnamed"])
        return None if failed else version
    return None


def _carried_from(communities: dict[str, Any]) -> str | None:
    """The version that a version's communities were carried over from; None: found from scratch."""
    carried = communities.get("clustering", {}).get("carried_from")
    return None if carried is None else str(carried)


def all_passed(version: Version) -> bool:
    return all(gate["passed"] for gate in version.manifest["gates"].values())
