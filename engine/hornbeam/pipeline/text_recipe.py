"""How an index's texts were read by a model, kept in the ledger: for runs that have no model at hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hornbeam.pipeline.recipe import Recipe
from hornbeam.schema.formats import read_schema
from hornbeam.schema.model import GraphSchema
from hornbeam.store.ledger import Ledger

_KEY = "text_recipe"


@dataclass(frozen=True, slots=True)
class TextRecipe:
    """How the documents of an index that were not imported were read."""

    recipe: Recipe
    schema: GraphSchema
    model: dict[str, Any]  # as in a manifest
    prompt_versions: Mapping[str, str]  # by language, "" for all others


def keep_text_recipe(ledger: Ledger, kept: TextRecipe) -> None:
    ledger.set_meta(
        _KEY,
        json.dumps(
            {
                "chunking": kept.recipe.chunking,
                "extraction": kept.recipe.extraction,
                "verification": kept.recipe.verification,
                "by_language": dict(kept.recipe.by_language),
                "prompts": kept.recipe.prompts,
                "schema": kept.schema.to_dict(),
                "model": kept.model,
                "prompt_versions": dict(kept.prompt_versions),
            },
            ensure_ascii=False,
        ),
    )


def text_recipe(ledger: Ledger) -> TextRecipe | None:
    """None where no model has read anything."""
    stored = ledger.meta(_KEY)
    if stored is None:
        return None
    fields = json.loads(stored)
    return TextRecipe(
        Recipe(
            fields["chunking"],
            fields["extraction"],
            fields.get("verification"),
            fields.get("by_language", {}),
            fields.get("prompts", ""),
        ),
        read_schema(json.dumps(fields["schema"]), fields["schema"]["name"]),
        fields["model"],
        # An index of before there were prompts by language has one version.
        fields.get("prompt_versions") or {"": fields["prompt_version"]},
    )
