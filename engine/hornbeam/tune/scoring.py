"""What an adapter finds in texts that it was not trained on; weights of its figures fitted on that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hornbeam.evaluate.text2kg import ValueForms, is_right
from hornbeam.extract.fact_scores import FactScores
from hornbeam.extract.guided import GuidedExtractor
from hornbeam.extract.guided_facts import GuidedFact
from hornbeam.extract.known_facts import Encoder, Fact, KnownSentence
from hornbeam.llm.adapter import FactWeights
from hornbeam.llm.conversations import Conversation, run_conversations
from hornbeam.llm.protocol import LanguageModel
from hornbeam.progress import Progress
from hornbeam.settings import ExtractSettings
from hornbeam.tune.annotated import AnnotatedSet
from hornbeam.tune.calibration import JudgedFacts, best_threshold, fit, measures
from hornbeam.tune.examples import folds

#: Asked of every set at most: a fit of a few weights needs no more.
_TEXTS = 60


def judged_facts(
    sets: Sequence[AnnotatedSet],
    model: LanguageModel,
    encoder: Encoder,
    settings: ExtractSettings,
    scores: FactScores,
) -> list[JudgedFacts]:
    """The facts that guided extraction gives for texts of the sets, the others of a set being known."""
    found: list[JudgedFacts] = []
    with Progress() as progress, progress.stage("score", None, "texts") as stage:
        for one in sets:
            for judged in _of_set(one, model, encoder, settings, scores):
                found.append(judged)
                stage.advance()
    return found


def _of_set(
    one: AnnotatedSet,
    model: LanguageModel,
    encoder: Encoder,
    settings: ExtractSettings,
    scores: FactScores,
) -> Iterator[JudgedFacts]:
    asked = next(iter(folds(one.texts).values()))
    texts = {text.text for text in asked}
    known = [KnownSentence(text.text, text.facts) for text in one.texts if text.text not in texts]
    if not known:
        return
    extractor = GuidedExtractor(model, one.schema, settings, known, encoder, scores=scores)
    forms = ValueForms.of(known)
    waiting = iter(enumerate(asked[:_TEXTS]))

    def following() -> Conversation[tuple[int, list[GuidedFact]]] | None:
        pair = next(waiting, None)
        if pair is None:
            return None
        number, text = pair
        return _numbered(number, extractor.facts(f"{one.name} {number}", text.text))

    for number, given in run_conversations(model, following, settings.window):
        yield _judged(given, asked[number].facts, forms)


def calibrated(found: Sequence[JudgedFacts]) -> tuple[FactWeights | None, dict[str, Any]]:
    """Weights, None where the facts are all right or all wrong; and the measures of what they keep (of the
    same texts: those of other sets say more)."""
    right = np.concatenate([text.right for text in found]) if found else np.zeros(0, bool)
    counts = {"texts": len(found), "facts given": len(right), "of them right": int(right.sum())}
    try:
        bias, weights = fit(found)
    except ValueError as error:
        return None, counts | {"not calibrated": str(error)}
    threshold = best_threshold(found, bias, weights)
    measured = zip(("precision", "recall", "f1"), measures(found, bias, weights, threshold), strict=True)
    scores = {name: round(value, 4) for name, value in measured}
    return FactWeights(bias=bias, weights=weights, threshold=threshold), counts | scores


def _numbered(
    number: int, conversation: Conversation[list[GuidedFact]]
) -> Conversation[tuple[int, list[GuidedFact]]]:
    return number, (yield from conversation)


def _judged(given: Sequence[GuidedFact], gold: Sequence[Fact], forms: ValueForms) -> JudgedFacts:
    figures = [fact.figures for fact in given]
    return JudgedFacts(
        np.array([one.values(figures) for one in figures]),
        tuple(fact.tail for fact in given),
        np.array([is_right(forms.write((f.head, f.predicate, f.tail)), gold) for f in given], dtype=bool),
        len(set(gold)),
    )
