"""Device memory: one budget for all pools, blocks that shrink, arrays that stay where they are."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from hornbeam_kernels import memory
from hornbeam_kernels.backend import BLOCK_CAP, Backend, select_backend
from hornbeam_kernels.dual_perception import own_scores, relation_type_counts
from hornbeam_kernels.memory import RowBlocks, device_budget, is_out_of_memory, within_budget
from hornbeam_kernels.propagation import neighbours, propagate
from hornbeam_kernels.representation import entity_representation
from hornbeam_kernels.signals import Signals

CPU = select_backend("cpu")


def covered(
    n: int, fits: int, *, raises: Callable[[], Exception] = MemoryError
) -> tuple[np.ndarray, RowBlocks]:
    """How often each row was done, by work in which no more than ``fits`` rows have room."""
    done = np.zeros(n, dtype=int)
    blocks = RowBlocks(n, 1, 64, CPU)
    for rows in blocks:
        with blocks.halving():
            if rows.stop - rows.start > fits:
                raise raises()
            done[rows] += 1
    return done, blocks


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("fits", [1, 3, 16, 64])
def test_every_row_is_done_once_whatever_fits(n: int, fits: int) -> None:
    done, blocks = covered(n, fits)
    assert (done == 1).all()
    assert blocks.halved <= 6


def test_a_row_that_does_not_fit_alone_is_an_error() -> None:
    with pytest.raises(MemoryError):
        covered(10, 0)


def test_another_error_is_not_tried_again() -> None:
    with pytest.raises(ValueError, match="wrong"):
        covered(10, 3, raises=lambda: ValueError("wrong"))


def test_blocks_keep_to_the_budget_and_the_cap() -> None:
    assert [rows.stop - rows.start for rows in RowBlocks(10, 100, 400, CPU)] == [4, 4, 2]
    assert next(iter(RowBlocks(10**6, 1, 10**9, CPU))).stop == BLOCK_CAP


@pytest.mark.parametrize(
    ("error", "known"),
    [
        (MemoryError(), True),
        (RuntimeError("std::bad_alloc: out_of_memory: CUDA error"), True),
        (RuntimeError("CUDA out of memory"), True),
        (RuntimeError("an illegal memory access was encountered"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_out_of_memory_is_told_from_other_errors(error: Exception, known: bool) -> None:
    assert is_out_of_memory(error) is known


@pytest.mark.parametrize(("share", "budget"), [(0.0, 90), (0.9, 9), (1.0, 0)])
def test_the_budget_is_what_the_model_leaves(share: float, budget: int) -> None:
    assert device_budget(100, share) == pytest.approx(budget, abs=1)


def test_a_share_is_within_0_and_1() -> None:
    with pytest.raises(ValueError, match="model_share"):
        device_budget(100, 1.5)


@dataclass
class FakeCupy:
    """Notes what is done to the pools. ``fail_from`` rows on, a product runs out of memory."""

    log: list[str] = field(default_factory=list)
    cuda: Any = None

    def __post_init__(self) -> None:
        self.cuda = types.SimpleNamespace(set_allocator=lambda one: self.log.append(f"allocator {one}"))

    def get_default_memory_pool(self) -> Any:
        return types.SimpleNamespace(
            free_all_blocks=lambda: self.log.append("freed"),
            set_limit=lambda size: self.log.append(f"limit {size}"),
        )

    def get_default_pinned_memory_pool(self) -> Any:
        return types.SimpleNamespace(free_all_blocks=lambda: self.log.append("freed pinned"))


def test_without_rmm_the_pool_of_cupy_has_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "find_spec", lambda name: None)
    cupy = FakeCupy()

    def work() -> None:
        with within_budget(Backend("cuda", cupy, None, "fake"), 1000):
            cupy.log.append("work")
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert cupy.log == ["limit 1000", "work", "freed", "freed pinned", "limit 0"]


def test_with_rmm_one_limit_holds_for_all_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy, made = FakeCupy(), []
    resources = types.SimpleNamespace(
        CudaMemoryResource=lambda: "cuda",
        LimitingResourceAdaptor=lambda upstream, limit: f"{upstream} up to {limit}",
        set_current_device_resource=made.append,
    )
    allocators = types.ModuleType("rmm.allocators.cupy")
    allocators.rmm_cupy_allocator = "rmm's"  # type: ignore[attr-defined]
    rmm = types.ModuleType("rmm")
    rmm.mr = resources  # type: ignore[attr-defined]
    for name, module in (("rmm", rmm), ("rmm.allocators.cupy", allocators)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "rmm.allocators", types.ModuleType("rmm.allocators"))
    monkeypatch.setattr(memory, "find_spec", lambda name: object())
    with within_budget(Backend("cuda", cupy, None, "fake"), 1000):
        pass
    assert made == ["cuda up to 1000", "cuda"]
    assert cupy.log == ["allocator rmm's", "freed", "freed pinned", "allocator None"]


def test_the_cpu_has_no_budget() -> None:
    with within_budget(CPU, 1):
        pass


def graph(n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    chance = np.random.default_rng(1)
    x = chance.standard_normal((n, 8)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    relation = chance.standard_normal((4, 8)).astype(np.float32)
    return (
        x,
        relation,
        chance.integers(0, n, 2 * n),
        chance.integers(0, 4, 2 * n),
        chance.integers(0, n, 2 * n),
    )


def test_a_kernel_that_runs_out_of_memory_goes_on_in_smaller_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _, heads, _, tails = graph()
    edges = neighbours(heads, tails, len(x), CPU)
    expected = propagate(x, edges, 0.5, 3, CPU)
    from hornbeam_kernels import propagation

    real, refused = propagation.unit_rows, []

    def narrow(rows: Any, xp: Any) -> Any:
        if len(rows) > 7:
            refused.append(len(rows))
            raise MemoryError
        return real(rows, xp)

    monkeypatch.setattr(propagation, "unit_rows", narrow)
    np.testing.assert_allclose(propagate(x, edges, 0.5, 3, CPU), expected, atol=1e-6)
    assert refused[:4] == [60, 30, 15, 60]  # each hop begins anew


@dataclass(frozen=True)
class Counting(Backend):
    """A pretended device that counts what crosses between it and the host."""

    counts: dict[str, int] = field(default_factory=lambda: {"to device": 0, "to host": 0})

    def asarray(self, values: Any, dtype: Any = None) -> Any:
        self.counts["to device"] += isinstance(values, np.ndarray)
        return super().asarray(values, dtype)

    def to_numpy(self, array: Any) -> Any:
        self.counts["to host"] += not isinstance(array, np.ndarray)
        return super().to_numpy(array)


def counting() -> Counting:
    pytest.importorskip("cupy", reason="cupy is not installed (extra dev)")
    from support.pretend_cupy import pretend_backend

    pretended = pretend_backend()
    return Counting(pretended.name, pretended.xp, pretended.sparse, pretended.reason)


def crossings(work: Callable[[Counting], Any]) -> dict[str, int]:
    backend = counting()
    work(backend)
    return backend.counts


def test_hops_of_a_propagation_stay_on_the_device() -> None:
    x, _, heads, _, tails = graph()
    backend = counting()
    slot, edges = backend.asarray(x), neighbours(heads, tails, len(x), backend)
    before = dict(backend.counts)
    propagate(slot, edges, 0.5, 6, backend, memory_limit=900)  # blocks of 9 rows
    assert backend.counts == before


@pytest.mark.parametrize("form", ["propagated", "paper"])
def test_what_a_representation_moves_does_not_follow_its_blocks_or_hops(form: Any) -> None:
    x, relation, heads, relations, tails = graph()

    def run(hops: int, limit: int) -> dict[str, int]:
        signals = Signals(hops=hops, neighbour_weight=0.4, relation_weight=0.5)
        options: dict[str, Any] = {"form": form, "signals": signals, "memory_limit": limit}
        return crossings(
            lambda b: entity_representation(x, relation, heads, relations, tails, backend=b, **options)
        )

    assert run(1, 10**6) == run(5, 700)


def test_scores_come_back_once_whatever_the_blocks() -> None:
    x, _, heads, relations, tails = graph()
    labels = np.arange(len(x)) // 10

    def run(limit: int) -> dict[str, int]:
        def work(backend: Counting) -> None:
            counts = relation_type_counts(heads, relations, tails, len(x), 4, backend=backend)
            own_scores(x, counts, labels, backend=backend, memory_limit=limit)

        return crossings(work)

    assert run(10**6) == run(700)
    assert run(700)["to host"] <= 3


def test_the_counter_sees_what_crosses() -> None:
    def work(backend: Counting) -> None:
        backend.to_numpy(backend.asarray(np.ones(3)))

    assert crossings(work) == {"to device": 1, "to host": 1}
    assert replace(counting(), name="cuda").on_device
