"""What a person has told apart: kept in the ledger, respected by every later build."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from hornbeam.records import Merge, content_id
from hornbeam.resolve.names import canonical_name
from hornbeam.store.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Separation:
    """Two names that are not one thing, in one document or everywhere."""

    document_id: str | None
    name: str  # canonical
    type: str
    other_name: str
    other_type: str

    @property
    def merge_id(self) -> str:
        return merge_id(self.document_id, (self.name, self.type), (self.other_name, self.other_type))


def merge_id(document_id: str | None, first: tuple[str, str], second: tuple[str, str]) -> str:
    """The id of a merge of two (canonical name, type), whatever speaks for it."""
    return content_id("m", document_id or "", *(part for name in sorted((first, second)) for part in name))


def separation_of(merge: Merge) -> Separation:
    return Separation(
        merge.document_id,
        canonical_name(merge.name),
        merge.type,
        canonical_name(merge.merged_name),
        merge.merged_type,
    )


def read_separations(ledger: Ledger) -> list[Separation]:
    """Every decision, sorted by id."""
    return [Separation(**json.loads(payload)) for _, payload in ledger.decisions("separate")]


def separate(ledger: Ledger, merge: Merge) -> Separation:
    """Keep the decision that a merge must not be made again."""
    separation = separation_of(merge)
    payload = json.dumps(asdict(separation), ensure_ascii=False)
    ledger.decide("separate", separation.merge_id, payload)
    return separation


def rejoin(ledger: Ledger, key: str) -> bool:
    """Take a decision back; False where there was none."""
    return ledger.withdraw("separate", key)
