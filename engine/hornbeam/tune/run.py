"""`hornbeam tune`: from annotated texts to an adapter directory."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hornbeam.device import choose_device
from hornbeam.errors import UsageError
from hornbeam.evaluate.fact_sets import read_fact_sets
from hornbeam.extract.known_facts import Encoder
from hornbeam.llm.adapter import weights_fingerprint
from hornbeam.llm.opening import open_model, server_urls
from hornbeam.llm.protocol import LanguageModel
from hornbeam.llm.tokenizer import DirectoryTokenizer
from hornbeam.opening import open_embedder
from hornbeam.progress import Progress as Bars
from hornbeam.prompts import Prompts, load_prompts
from hornbeam.settings import ExtractSettings, Settings
from hornbeam.stopping import StopRequest, stop_on_signal
from hornbeam.tune.annotated import AnnotatedSet, AnnotatedText, read_annotated
from hornbeam.tune.batches import Sample, sample
from hornbeam.tune.card import Card, TrainedOn
from hornbeam.tune.examples import JUDGED, ExampleMaker, Task
from hornbeam.tune.leakage import TestTexts, without_copies
from hornbeam.tune.scoring import calibrated, judged_facts
from hornbeam.tune.training import BEST, Progress, Training, TrainingSettings

#: Share of the sets that are held out where none is named, at least one of several.
_HELD_OUT = 0.15


@dataclass(frozen=True, slots=True)
class Sources:
    """
    Args:
        paths: see `annotated.read_annotated`.
        schema: of files of examples.
        never: sets whose questions must not be trained on, beside those of `paths`.
        held_out: names of sets for the early stop; none: the last ones.
        limit: texts of each set, spread evenly; None: all.
    """

    paths: tuple[Path, ...]
    schema: str | None
    never: tuple[Path, ...]
    held_out: tuple[str, ...]
    limit: int | None


@dataclass(frozen=True, slots=True)
class Data:
    training: tuple[Sample, ...]
    held_out: tuple[Sample, ...]
    held_out_sets: tuple[AnnotatedSet, ...]
    sources: tuple[TrainedOn, ...]
    too_long: int

    @property
    def key(self) -> str:
        digest = hashlib.sha256()
        for one in (*self.training, *self.held_out):
            digest.update(json.dumps([one.ids, one.learnt]).encode())
        return digest.hexdigest()


def tune_adapter(
    sources: Sources,
    tasks: Sequence[Task],
    output: Path,
    settings: Settings,
    training: TrainingSettings,
    licence: str,
) -> dict[str, Any]:
    """Examples, training, the adapter with its card; for guided facts then the weights of their figures.

    Raises:
        Interrupted: a stop was requested; the training is kept and goes on when asked again.
        UsageError: see `prepare`; or the model is not a directory, or `output` is another training's.
    """
    if server_urls(settings.model.path):
        raise UsageError("a model behind a URL cannot be trained: name its directory with --model")
    plain = settings.model_copy(update={"model": settings.model.model_copy(update={"adapter": None})})
    device, _ = choose_device(settings.device)
    encoder = open_embedder(settings)
    prompts = load_prompts(settings.prompts, embedded=settings.model.path is None)
    with stop_on_signal() as stop:
        model = open_model(plain)
        base = model.tokenizer.directory
        data = prepare(sources, tasks, model, encoder, settings.extract, prompts, training)
        progress = train(base, output, data, training, device, stop)
        if not progress.ended:
            stop.check(f"{progress.step} steps")
    card = new_card(base, tasks, data, training, progress, licence)
    publish(output, card)
    if "guided" in tasks and data.held_out_sets and training.method == "lora":
        adapted = settings.model.model_copy(update={"adapter": str(output)})
        card = _scored(
            card, data, open_model(settings.model_copy(update={"model": adapted})), encoder, settings
        )
        card.write(output)
    return card.to_json() | {"too_long": data.too_long}


def _scored(card: Card, data: Data, model: LanguageModel, encoder: Encoder, settings: Settings) -> Card:
    try:
        found = judged_facts(data.held_out_sets, model, encoder, settings.extract, JUDGED)
    finally:
        model.close()
    facts, scores = calibrated(found)
    return replace(card, facts=facts, scores={**card.scores, **scores})


def prepare(
    sources: Sources,
    tasks: Sequence[Task],
    model: LanguageModel,
    encoder: Encoder,
    extract: ExtractSettings,
    prompts: Prompts,
    settings: TrainingSettings,
) -> Data:
    """
    Raises:
        UsageError: a source cannot be read, no set has a given name, or nothing is left to train on.
    """
    sets = [one for path in sources.paths for one in read_annotated(path, sources.schema)]
    held_out = _held_out(sets, sources.held_out)
    tests = TestTexts(_test_texts((*sources.paths, *sources.never)))
    maker = ExampleMaker(model, encoder, extract, prompts, settings.seed)
    tokenizer = DirectoryTokenizer(model.tokenizer.directory)
    samples: dict[bool, list[Sample]] = {False: [], True: []}
    rows: list[TrainedOn] = []
    kept_sets: list[AnnotatedSet] = []
    too_long = 0
    with (
        Bars() as bars,
        bars.stage("examples", len(tasks) * sum(len(s.texts) for s in sets), "texts") as stage,
    ):
        for one in sets:
            allowed = without_copies([text.text for text in one.texts], tests)
            texts = [text for text, good in zip(one.texts, allowed, strict=True) if good]
            chosen = replace(one, texts=tuple(_spread(texts, sources.limit)))
            made = [sample(example, tokenizer) for example in maker.examples(chosen, tasks, stage.advance)]
            short = [some for some in made if len(some.ids) <= settings.max_tokens]
            too_long += len(made) - len(short)
            fitting = [some for some in short if some.learnt]
            samples[one.name in held_out] += fitting
            kept_sets += [chosen] if one.name in held_out else []
            left_out = len(one.texts) - len(texts)
            rows.append(TrainedOn(one.name, len(chosen.texts), len(fitting), left_out, one.name in held_out))
    if not samples[False]:
        raise UsageError("nothing to train on: no example fits, or every set is held out")
    return Data(tuple(samples[False]), tuple(samples[True]), tuple(kept_sets), tuple(rows), too_long)


def train(
    base: Path,
    output: Path,
    data: Data,
    settings: TrainingSettings,
    device: Literal["cpu", "cuda"],
    stop: StopRequest,
) -> Progress:
    """Train, or go on with what `output` holds; the progress, whose `ended` is empty after a stop."""
    training = Training(base, output / "training", settings, device, data.key)
    with Bars() as bars:
        if training.resumed:
            bars.say(f"going on at step {training.progress.step}")
        with bars.stage("train", training.steps(data.training), "steps") as stage:
            stage.advance(training.progress.step)

            def on_look(progress: Progress) -> None:
                step, learnt, held_out = progress.curve[-1]
                rate = progress.tokens / max(1e-9, progress.seconds)
                bars.say(f"step {step}: loss {learnt:.3f}, held out {held_out:.3f}; {rate:.0f} tokens/s")

            return training.run(data.training, data.held_out, stage.advance, on_look, stop)


def publish(output: Path, card: Card) -> None:
    """Put the best weights and their card into `output`; the checkpoints stay in its folder `training`."""
    for path in (output / "training" / BEST).iterdir():
        if path.is_file():
            shutil.copy(path, output / path.name)
    card.write(output)


def new_card(
    base: Path,
    tasks: Sequence[Task],
    data: Data,
    settings: TrainingSettings,
    progress: Progress,
    licence: str,
) -> Card:
    return Card(
        base=base.name,
        base_weights=weights_fingerprint(base),
        tasks=tuple(tasks),
        sources=data.sources,
        settings=settings,
        progress=progress,
        facts=None,
        scores={"held-out loss": round(progress.best_loss, 4)},
        licence=licence,
    )


def _held_out(sets: Sequence[AnnotatedSet], named: Sequence[str]) -> set[str]:
    names = [one.name for one in sets]
    if named:
        unknown = [name for name in named if name not in names]
        if unknown:
            raise UsageError(f"--hold-out {unknown[0]}: no such set; there are {', '.join(names)}")
        return set(named)
    if len(names) < 2:
        return set()
    return set(names[-max(1, round(_HELD_OUT * len(names))) :])


def _test_texts(paths: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        if path.is_dir() and not (path / "CURRENT").is_file():
            for one in read_fact_sets(path, None, "test"):
                yield from (sentence.text for sentence in one.asked)


def _spread(texts: Sequence[AnnotatedText], limit: int | None) -> Sequence[AnnotatedText]:
    if limit is None or limit >= len(texts):
        return texts
    return [texts[len(texts) * number // limit] for number in range(limit)]
