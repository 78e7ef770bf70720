"""From time and tokens to what a document costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True)
class Spent:
    """What was done, and in how much time."""

    seconds: float  # of the machine, all stages
    documents: int
    chunks: int
    tokens: int  # prompt, cached or not, and output
    joules: float | None = None


def cost_figures(spent: Spent, hour_price: float | None, currency: str) -> dict[str, Any]:
    """money = hours · price, shared out evenly; None where there is no price, or nothing to share it by."""
    total = None if hour_price is None else hour_price * spent.seconds / 3600
    kwh = None if spent.joules is None else spent.joules / _JOULES_PER_KWH
    documents = spent.documents

    def each(number: float) -> float | None:
        return total / number if total is not None and number else None

    return {
        "gpu_hour_price": hour_price,
        "currency": currency,
        "total": total,
        "per_document": each(spent.documents),
        "per_1000_chunks": each(spent.chunks / 1000),
        "per_million_tokens": each(spent.tokens / 1e6),
        "tokens_per_document": spent.tokens / documents if documents else None,
        "energy_kwh": kwh,
        "watt_hours_per_document": kwh * 1000 / spent.documents
        if kwh is not None and spent.documents
        else None,
    }
