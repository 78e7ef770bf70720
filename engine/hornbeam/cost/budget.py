"""Limits to what one run may cost, as users write them: `3h, 2M tokens, 12.50 USD`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]?)\s*([A-Za-z]*)")
_SCALES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_HOURS = {"h": 1.0, "hour": 1.0, "hours": 1.0, "min": 1 / 60, "minutes": 1 / 60, "s": 1 / 3600}
#: Between two looks at the tokens.
_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Budget:
    """Each None: no limit."""

    money: float | None = None
    tokens: float | None = None  # prompt and output
    hours: float | None = None

    def used_up(self, seconds: float, tokens: int, hour_price: float | None, currency: str) -> str:
        """What is used up, as a sentence; "" as long as nothing is."""
        hours = seconds / 3600
        if self.hours is not None and hours >= self.hours:
            return f"the budget of {self.hours:g} hours is used up"
        if self.tokens is not None and tokens >= self.tokens:
            return f"the budget of {self.tokens:g} tokens is used up ({tokens})"
        if self.money is not None and hour_price is not None and hours * hour_price >= self.money:
            return f"the budget of {self.money:g} {currency} is used up"
        return ""


def parse_budget(text: str, currency: str) -> Budget:
    """Limits between commas. An amount with no unit, or the currency as unit, is money.

    Raises:
        ValueError: a limit cannot be read.
    """
    limits: dict[str, float] = {}
    for limit in text.split(","):
        match = _AMOUNT.fullmatch(limit.strip())
        if match is None:
            raise ValueError(f"'{limit.strip()}' is no budget; write for example '3h', '2M tokens', '12.5'")
        amount, unit = float(match[1]) * _SCALES[match[2]], match[3]
        if unit in _HOURS:
            kind, amount = "hours", amount * _HOURS[unit]
        elif unit in ("token", "tokens"):
            kind = "tokens"
        elif unit in ("", currency):
            kind = "money"
        else:
            raise ValueError(f"'{unit}' is no unit of a budget: h, min, s, tokens or {currency}")
        if kind in limits:
            raise ValueError(f"two budgets of {kind}")
        limits[kind] = amount
    return Budget(**limits)


class BudgetWatch:
    """Tells a run when its budget is used up.

    Args:
        tokens: that the run has used so far; asked twice a second at most.
    """

    def __init__(
        self, budget: Budget, hour_price: float | None, currency: str, tokens: Callable[[], int]
    ) -> None:
        self._budget, self._hour_price, self._currency = budget, hour_price, currency
        self._tokens = tokens
        self._started = time.monotonic()
        self._looked, self._seen = float("-inf"), 0

    def money(self) -> dict[str, Any]:
        """Of this run up to now; `total` is None where the machine has no price."""
        hours = (time.monotonic() - self._started) / 3600
        total = None if self._hour_price is None else hours * self._hour_price
        return {"total": total, "currency": self._currency}

    def used_up(self) -> str:
        """As `Budget.used_up`, of this run up to now."""
        now = time.monotonic()
        if self._budget.tokens is not None and now - self._looked >= _LOOK_S:
            self._looked, self._seen = now, self._tokens()
        return self._budget.used_up(now - self._started, self._seen, self._hour_price, self._currency)
