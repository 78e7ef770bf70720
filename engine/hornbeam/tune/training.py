"""The training loop: low-rank or full weights, early stop, checkpoints to go on from.

DIR/checkpoint/    the last state: weights, optimiser, where the data stood; replaced as a whole
DIR/best/          the weights with the least loss on what was held out
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import pickle
import random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hornbeam.errors import ModelError, UsageError
from hornbeam.stopping import StopRequest
from hornbeam.tune.batches import Sample, batches

if TYPE_CHECKING:
    import torch

CHECKPOINT, BEST = "checkpoint", "best"
_STATE, _PROGRESS = "state.pt", "progress.json"
#: What low-rank weights are laid beside: every linear layer but the last.
_TARGETS = "all-linear"
_LEAST_RATE = 0.1  # share of the learning rate at the end of the cosine


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """
    Args:
        learning_rate: at its highest.
        step_tokens: tokens of the samples behind one step of the optimiser, at least.
        tokens_at_once: tokens that go through the model together (a few MiB of memory each for a small one).
        max_tokens: of a sample; longer ones are left out.
        evaluate_every: steps between looks at what was held out.
        patience: looks without a better loss after which training ends.
        max_steps: None: as many as the epochs have.
    """

    method: Literal["lora", "full"] = "lora"
    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    learning_rate: float = 5e-4
    weight_decay: float = 0.01
    warm_up: float = 0.06
    epochs: int = 2
    step_tokens: int = 4096
    tokens_at_once: int = 2048
    max_tokens: int = 1536
    evaluate_every: int = 25
    patience: int = 4
    max_steps: int | None = None
    seed: int = 42


@dataclass(slots=True)
class Progress:
    """How far a training is."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # of the epoch, that are done
    tokens: int = 0
    learnt_tokens: int = 0
    seconds: float = 0.0
    best_loss: float = math.inf
    best_step: int = 0
    bad_looks: int = 0
    recent: tuple[float, ...] = ()  # training losses of the steps since the last look
    curve: tuple[tuple[int, float, float], ...] = ()  # step, training loss, held-out loss
    ended: str = ""  # why it is over


class Training:
    """
    Args:
        base: directory of the model.
        work: where checkpoints go; one that holds a training with the same settings and data is gone on with.
        device: cpu or cuda.
        key: hash of what the data were made from.

    Raises:
        UsageError: `work` holds another training.
        ModelError: the model cannot be loaded, or a package is missing.
    """

    def __init__(
        self, base: Path, work: Path, settings: TrainingSettings, device: Literal["cpu", "cuda"], key: str
    ) -> None:
        self.progress = Progress()
        self.settings = settings
        self._work = work
        self._device = device
        # Where a processor has no such arithmetic, bfloat16 takes five times as long.
        self._rough = device == "cuda" or _computes_in_bfloat16()
        self._key = hashlib.sha256(
            f"{key}{json.dumps(asdict(settings), sort_keys=True)}".encode()
        ).hexdigest()
        work.mkdir(parents=True, exist_ok=True)
        saved = self._saved()
        self.model = _load(base, settings, device)
        self._optimiser = self._new_optimiser()
        if saved is not None:
            self._restore(saved)

    @property
    def resumed(self) -> bool:
        return self.progress.step > 0

    def run(
        self,
        training: Sequence[Sample],
        held_out: Sequence[Sample],
        on_step: Callable[[], None],
        on_look: Callable[[Progress], None],
        stop: StopRequest,
    ) -> Progress:
        """Train until the epochs are over, the loss no longer falls, or a stop is requested.

        Args:
            on_step: called after every step.
            on_look: called after every look at what was held out.

        Returns:
            progress; `ended` is empty if a stop was requested, and a later call goes on.
        """
        progress, settings = self.progress, self.settings
        total = self.steps(training)
        began = time.monotonic() - progress.seconds
        while not progress.ended:
            if stop.requested:
                self._save()
                return progress
            step = self._next_batches(training)
            if not step:
                progress.epoch, progress.batch = progress.epoch + 1, 0
                if progress.epoch >= settings.epochs:
                    progress.ended = f"{settings.epochs} epochs"
                continue
            progress.recent = (*progress.recent, self._step(step, total))
            progress.seconds = time.monotonic() - began
            on_step()
            if progress.step >= total:
                progress.ended = f"{total} steps"
            if progress.step % settings.evaluate_every == 0 or progress.ended:
                self._look(held_out)
                on_look(progress)
        if progress.recent:  # the epochs were over before the steps
            self._look(held_out)
            on_look(progress)
        return progress

    def loss(self, samples: Sequence[Sample]) -> float:
        """Mean negative log-likelihood of a learnt token, in nats."""
        import torch

        self.model.eval()
        total = count = 0.0
        with torch.no_grad():
            for some in batches(samples, self.settings.tokens_at_once):
                number = sum(len(one.learnt) for one in some)
                total += float(self._loss(some)) * number
                count += number
        self.model.train()
        return total / max(1.0, count)

    def steps(self, training: Sequence[Sample]) -> int:
        """Of the whole training, at most."""
        tokens = sum(len(one.ids) for one in training)
        steps = max(1, math.ceil(self.settings.epochs * tokens / self.settings.step_tokens))
        return min(steps, self.settings.max_steps or steps)

    def _next_batches(self, training: Sequence[Sample]) -> list[list[Sample]]:
        """Those of the next step; none at the end of an epoch. The order is that of seed and epoch alone."""
        progress, settings = self.progress, self.settings
        chance = random.Random(f"{settings.seed} {progress.epoch}")
        chosen: list[list[Sample]] = []
        tokens = 0
        for some in islice(batches(training, settings.tokens_at_once, chance), progress.batch, None):
            chosen.append(some)
            tokens += sum(len(one.ids) for one in some)
            if tokens >= settings.step_tokens:
                break
        progress.batch += len(chosen)
        return chosen

    def _step(self, step: Sequence[Sequence[Sample]], total: int) -> float:
        import torch

        progress = self.progress
        for group in self._optimiser.param_groups:
            group["lr"] = self.settings.learning_rate * _share_of_rate(
                progress.step, total, self.settings.warm_up
            )
        learnt = sum(len(one.learnt) for some in step for one in some)
        loss = 0.0
        for some in step:
            share = sum(len(one.learnt) for one in some) / max(1, learnt)
            part = self._loss(some) * share
            torch.autograd.backward(part)
            loss += float(part.detach())
        torch.nn.utils.clip_grad_norm_(self._trained(), 1.0)
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        progress.step += 1
        progress.tokens += sum(len(one.ids) for some in step for one in some)
        progress.learnt_tokens += learnt
        return loss

    def _loss(self, some: Sequence[Sample]) -> torch.Tensor:
        """Mean over the learnt tokens of a batch. Only these go through the last layer, whose vocabulary is
        most of a small model's work."""
        import torch

        longest = max(len(one.ids) for one in some)
        ids = torch.zeros((len(some), longest), dtype=torch.long)
        mask = torch.zeros((len(some), longest), dtype=torch.long)
        rows: list[int] = []
        columns: list[int] = []
        for row, one in enumerate(some):
            ids[row, : len(one.ids)] = torch.tensor(one.ids)
            mask[row, : len(one.ids)] = 1
            rows += [row] * len(one.learnt)
            columns += one.learnt
        targets = ids[rows, columns].to(self._device)
        base = self.model.get_base_model() if self.settings.method == "lora" else self.model
        with torch.autocast(self._device, torch.bfloat16, enabled=self._rough):
            hidden = base.get_decoder()(
                input_ids=ids.to(self._device), attention_mask=mask.to(self._device), use_cache=False
            ).last_hidden_state
            # The state before a token predicts it.
            logits = base.get_output_embeddings()(hidden[rows, [column - 1 for column in columns]])
        loss: torch.Tensor = torch.nn.functional.cross_entropy(logits.float(), targets)
        return loss

    def _look(self, held_out: Sequence[Sample]) -> None:
        progress = self.progress
        training_loss = sum(progress.recent) / len(progress.recent)
        progress.recent = ()
        loss = self.loss(held_out) if held_out else training_loss
        progress.curve = (*progress.curve, (progress.step, round(training_loss, 4), round(loss, 4)))
        if loss < progress.best_loss:
            progress.best_loss, progress.best_step, progress.bad_looks = loss, progress.step, 0
            _replace(self._work / BEST, self.model.save_pretrained)
        else:
            progress.bad_looks += 1
            if progress.bad_looks >= self.settings.patience and not progress.ended:
                progress.ended = f"no better loss on what was held out since step {progress.best_step}"
        self._save()

    def _trained(self) -> list[torch.nn.Parameter]:
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    def _new_optimiser(self) -> torch.optim.Optimizer:
        import torch

        return torch.optim.AdamW(
            self._trained(), lr=self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )

    def _save(self) -> None:
        import torch

        def write(folder: Path) -> None:
            weights = {
                name: parameter.detach().cpu()
                for name, parameter in self.model.named_parameters()
                if parameter.requires_grad
            }
            torch.save(
                {
                    "weights": weights,
                    "optimiser": self._optimiser.state_dict(),
                    "torch": torch.get_rng_state(),
                },
                folder / _STATE,
            )
            (folder / _PROGRESS).write_text(
                json.dumps({"key": self._key, "progress": asdict(self.progress)}), "utf-8"
            )

        _replace(self._work / CHECKPOINT, write)

    def _saved(self) -> dict[str, Any] | None:
        folder = self._work / CHECKPOINT
        if not (folder / _PROGRESS).is_file():
            return None
        try:
            saved: dict[str, Any] = json.loads((folder / _PROGRESS).read_text("utf-8"))
            key = saved["key"]
        except (ValueError, KeyError) as error:
            raise UsageError(f"{folder} is damaged; remove it to begin again") from error
        if key != self._key:
            raise UsageError(
                f"{self._work} holds a training with other settings or data; name another --output, or "
                "remove it to begin again"
            )
        return saved

    def _restore(self, saved: dict[str, Any]) -> None:
        import torch

        path = self._work / CHECKPOINT / _STATE
        try:
            state = torch.load(path, map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
            raise UsageError(f"{path.parent} is damaged; remove it to begin again") from error
        parameters = dict(self.model.named_parameters())
        with torch.no_grad():
            for name, weights in state["weights"].items():
                parameters[name].copy_(weights)
        self._optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["torch"])
        progress = saved["progress"]
        progress["recent"] = tuple(progress["recent"])
        progress["curve"] = tuple(tuple(point) for point in progress["curve"])
        self.progress = Progress(**progress)


def _load(base: Path, settings: TrainingSettings, device: Literal["cpu", "cuda"]) -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import torch
        from transformers import AutoModelForCausalLM

        if settings.method == "lora":
            from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise ModelError(f"training needs the extra 'tune': {error}") from error
    torch.manual_seed(settings.seed)
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(str(base), dtype=torch.float32)
    except (ImportError, ValueError, OSError, RuntimeError) as error:
        raise ModelError(f"transformers cannot load {base}: {error}") from error
    model.to(device)
    if settings.method == "lora":
        model = get_peft_model(
            model,
            LoraConfig(
                r=settings.rank,
                lora_alpha=settings.alpha,
                lora_dropout=settings.dropout,
                target_modules=_TARGETS,
                task_type="CAUSAL_LM",
            ),
        )
    model.train()
    return model


def _computes_in_bfloat16() -> bool:
    try:
        flags = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def _share_of_rate(step: int, total: int, warm_up: float) -> float:
    """A line up, then half a cosine down."""
    rising = max(1, round(warm_up * total))
    if step < rising:
        return (step + 1) / rising
    done = (step - rising) / max(1, total - rising)
    return _LEAST_RATE + (1 - _LEAST_RATE) * (1 + math.cos(math.pi * min(1.0, done))) / 2


def _replace(folder: Path, write: Callable[[Path], None]) -> None:
    """Write a folder anew; whoever is killed meanwhile leaves the old one or the new one."""
    fresh = folder.with_name(f".{folder.name}-new")
    old = folder.with_name(f".{folder.name}-old")
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)
    fresh.mkdir()
    write(fresh)
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
