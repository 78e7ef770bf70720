"""Budgets as users write them, energy from a driver, and what is made of time and tokens."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from hornbeam.cost.budget import Budget, BudgetWatch, parse_budget
from hornbeam.cost.energy import EnergyMeter
from hornbeam.cost.figures import Spent, cost_figures
from hornbeam.errors import Interrupted, UsageError
from hornbeam.settings import load_settings
from hornbeam.stopping import StopRequest


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("3h", Budget(hours=3)),
        ("90 min", Budget(hours=1.5)),
        ("36s", Budget(hours=0.01)),
        ("2M tokens", Budget(tokens=2e6)),
        ("1.5ktokens", Budget(tokens=1500)),
        ("12.5", Budget(money=12.5)),
        ("12.5 EUR", Budget(money=12.5)),
        ("2 k", Budget(money=2000)),
        ("3h, 1Gtokens ,20", Budget(money=20, tokens=1e9, hours=3)),
    ],
)
def test_a_budget_is_read(text: str, budget: Budget) -> None:
    assert parse_budget(text, "EUR") == budget


@pytest.mark.parametrize("text", ["", "h", "3 apples", "12 USD", "-3h", "3h,4h", "1e3", "3h,,"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="budget"):
        parse_budget(text, "EUR")


@pytest.mark.parametrize(("budget", "said"), [("3 apples", "apples"), ("12", "needs cost.gpu_hour_price")])
def test_a_wrong_budget_is_a_wrong_setting(budget: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_settings(overrides={"cost.budget": budget}, environment={})


def test_money_can_be_limited_where_an_hour_has_a_price() -> None:
    settings = load_settings(overrides={"cost.budget": "12", "cost.gpu_hour_price": 3}, environment={})
    assert settings.cost.limits() == Budget(money=12)


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget(), ""),
        (Budget(hours=2), "2 hours"),
        (Budget(hours=2.1), ""),
        (Budget(tokens=100), "100 tokens"),
        (Budget(tokens=101), ""),
        (Budget(money=6), "6 EUR"),
        (Budget(money=6.1), ""),
    ],
)
def test_a_budget_is_used_up_when_it_is_reached(budget: Budget, said: str) -> None:
    told = budget.used_up(7200, 100, 3.0, "EUR")
    assert said in told
    assert bool(told) == bool(said)


def test_the_watch_counts_the_tokens_of_the_run() -> None:
    tokens = [10]
    watch = BudgetWatch(Budget(tokens=10), None, "USD", tokens.pop)
    assert "10 tokens" in watch.used_up()
    assert "10 tokens" in watch.used_up()  # not asked again at once
    assert BudgetWatch(Budget(), None, "USD", tokens.pop).used_up() == ""


def test_a_stop_request_keeps_the_reason_of_its_limit() -> None:
    stop = StopRequest()
    assert not stop.requested
    stop.limit = lambda: "the budget of 1 hours is used up"
    assert stop.requested
    stop.limit = str
    assert stop.requested
    with pytest.raises(Interrupted, match="1 hours is used up: 3 chunks; what was finished"):
        stop.check("3 chunks")


def test_figures_share_out_what_an_hour_costs() -> None:
    figures = cost_figures(Spent(1800, 10, 50, 4_000_000, 7.2e6), 3.0, "EUR")
    assert figures["total"] == 1.5
    assert figures["per_document"] == pytest.approx(0.15)
    assert figures["per_1000_chunks"] == pytest.approx(30)
    assert figures["per_million_tokens"] == pytest.approx(0.375)
    assert figures["tokens_per_document"] == 400_000
    assert figures["energy_kwh"] == 2
    assert figures["watt_hours_per_document"] == 200


@pytest.mark.parametrize("spent", [Spent(0, 0, 0, 0), Spent(5, 0, 0, 0, 0.0)])
def test_what_cannot_be_shared_out_has_no_figure(spent: Spent) -> None:
    assert cost_figures(spent, 3.0, "EUR")["per_document"] is None
    unpriced = cost_figures(spent, None, "EUR")
    assert {unpriced[name] for name in ("total", "per_1000_chunks", "per_million_tokens")} == {None}


class FakeNvml(ModuleType):
    """Two GPUs, one of which does not count."""

    class NVMLError(Exception):
        pass

    def __init__(self, *, driver: bool = True) -> None:
        super().__init__("pynvml")
        self.millijoules, self.driver = 5_000, driver

    def nvmlInit(self) -> None:
        if not self.driver:
            raise self.NVMLError("no driver")

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        return number

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:
        if handle:
            raise self.NVMLError("not supported")
        return self.millijoules


def test_energy_is_what_the_driver_counted_since(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    meter = EnergyMeter()
    nvml.millijoules += 2_500
    assert meter.joules() == 2.5


@pytest.mark.parametrize("nvml", [None, FakeNvml(driver=False)], ids=["no package", "no driver"])
def test_without_a_driver_there_is_no_energy(monkeypatch: pytest.MonkeyPatch, nvml: Any) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert EnergyMeter().joules() is None
