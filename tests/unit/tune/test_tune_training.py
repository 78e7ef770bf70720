"""The training loop on a model of random weights: it learns, goes on where it was stopped, and ends."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("peft")

import torch

from hornbeam.errors import UsageError
from hornbeam.stopping import StopRequest
from hornbeam.tune.batches import Sample
from hornbeam.tune.training import BEST, CHECKPOINT, Progress, Training, TrainingSettings
from support.tiny_model import write_tiny_model

SETTINGS = TrainingSettings(
    rank=4, learning_rate=1e-2, epochs=3, step_tokens=128, tokens_at_once=64, evaluate_every=4, patience=50
)


def samples(seed: int, number: int = 24) -> list[Sample]:
    """The letter that ends a text is the one that began it."""
    chance = random.Random(seed)
    made = []
    for _ in range(number):
        ids = tuple(chance.randrange(40, 60) for _ in range(chance.randrange(6, 12)))
        made.append(Sample((*ids, ids[0]), (len(ids),), "copies"))
    return made


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("models") / "tiny")


def train(
    base: Path,
    work: Path,
    settings: TrainingSettings = SETTINGS,
    *,
    stop: StopRequest | None = None,
    on_step: Callable[[], None] = lambda: None,
) -> tuple[Training, Progress]:
    training = Training(base, work, settings, "cpu", "data")
    progress = training.run(samples(1), samples(2), on_step, lambda progress: None, stop or StopRequest())
    return training, progress


def weights(training: Training) -> dict[str, torch.Tensor]:
    return {n: p.detach().clone() for n, p in training.model.named_parameters() if p.requires_grad}


def test_the_loss_falls_and_the_best_weights_are_kept(base: Path, tmp_path: Path) -> None:
    training, progress = train(base, tmp_path, replace(SETTINGS, epochs=20))
    losses = [held_out for _, _, held_out in progress.curve]
    assert progress.ended
    assert progress.step == training.steps(samples(1))
    assert progress.curve[-1][1] < 0.5 * progress.curve[0][1]
    assert progress.best_loss == pytest.approx(min(losses), abs=1e-3)
    assert (tmp_path / BEST / "adapter_model.safetensors").is_file()
    assert 19 * 24 < progress.learnt_tokens <= 20 * 24


def test_only_learnt_tokens_count(base: Path, tmp_path: Path) -> None:
    training = Training(base, tmp_path, SETTINGS, "cpu", "data")
    (one,) = samples(3, 1)
    alone = training.loss([one])
    padded = training.loss([one, replace(one, ids=one.ids * 4)])
    assert padded == pytest.approx(alone, rel=1e-4)
    other = replace(one, ids=(*one.ids[:-1], one.ids[-1] + 1))
    assert training.loss([other]) != pytest.approx(alone, rel=1e-3)


def test_a_training_that_was_stopped_ends_as_one_that_was_not(base: Path, tmp_path: Path) -> None:
    whole, end = train(base, tmp_path / "whole")
    stop = StopRequest()
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1
        stop.requested = steps == 5

    _, stopped = train(base, tmp_path / "parts", stop=stop, on_step=count)
    assert not stopped.ended
    assert stopped.step == 5
    resumed, progress = train(base, tmp_path / "parts")
    assert resumed.resumed
    assert progress.curve == end.curve
    for name, parameter in weights(whole).items():
        assert torch.equal(parameter, weights(resumed)[name]), name


def test_a_killed_save_leaves_the_last_checkpoint(base: Path, tmp_path: Path) -> None:
    train(base, tmp_path, replace(SETTINGS, max_steps=4))
    (tmp_path / f".{CHECKPOINT}-new").mkdir()
    (tmp_path / f".{CHECKPOINT}-new" / "state.pt").write_bytes(b"half")
    again, progress = train(base, tmp_path, replace(SETTINGS, max_steps=4))
    assert again.resumed
    assert progress.step == 4


def test_training_ends_when_what_is_held_out_gets_no_better(base: Path, tmp_path: Path) -> None:
    # A rate at which nothing is learnt that holds elsewhere.
    wild = replace(SETTINGS, learning_rate=1.0, epochs=50, evaluate_every=1, patience=3)
    _, progress = train(base, tmp_path, wild)
    assert progress.ended.startswith("no better loss")
    assert progress.bad_looks == 3
    assert progress.step < 150


def test_another_training_in_the_folder_is_refused(base: Path, tmp_path: Path) -> None:
    train(base, tmp_path, replace(SETTINGS, max_steps=1))
    with pytest.raises(UsageError, match="other settings or data"):
        Training(base, tmp_path, SETTINGS, "cpu", "data")
    with pytest.raises(UsageError, match="other settings or data"):
        Training(base, tmp_path, replace(SETTINGS, max_steps=1), "cpu", "other data")


@pytest.mark.parametrize("name", ["progress.json", "state.pt"])
def test_a_damaged_checkpoint_is_named(base: Path, tmp_path: Path, name: str) -> None:
    train(base, tmp_path, replace(SETTINGS, max_steps=1))
    (tmp_path / CHECKPOINT / name).write_bytes(b"{")
    with pytest.raises(UsageError, match="remove it to begin again"):
        Training(base, tmp_path, replace(SETTINGS, max_steps=1), "cpu", "data")


def test_all_weights_can_be_trained(base: Path, tmp_path: Path) -> None:
    full = replace(SETTINGS, method="full", learning_rate=1e-3)
    training, progress = train(base, tmp_path, full)
    assert progress.curve[-1][2] < progress.curve[0][2]
    assert len(weights(training)) == len(list(training.model.parameters()))
    assert (tmp_path / BEST / "model.safetensors").is_file()
