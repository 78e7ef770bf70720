import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hornbeam.errors import ModelError, UsageError
from hornbeam.index.cross_encoder import CrossEncoder
from hornbeam.index.embedder import find_embedder
from hornbeam.llm.protocol import Completion, Request, TokenScore, Usage
from hornbeam.retrieve.fusion import Fused, RouteScore
from hornbeam.retrieve.knowledge_base import KnowledgeBase
from hornbeam.retrieve.model_reranker import ModelReranker, reranked_by_model
from hornbeam.retrieve.reranking import rerank
from hornbeam.retrieve.search import search
from hornbeam.settings import RetrieveSettings
from support.walker import GrammarWalker

QUESTION = "Marie Curie was born in the capital of which country?"


class Reversed:
    """Likes best what it is given last."""

    name = "reversed"

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        return [(place + 1) / len(texts) for place in range(len(texts))]


def ranking() -> list[Fused]:
    kinds = ("chunk", "triple", "chunk", "entity", "chunk", "triple")
    return [
        Fused(kind, (row,), 1 - row / 10, {"dense": RouteScore(1, 0.5, part=1 - row / 10)})
        for row, kind in enumerate(kinds)
    ]


def test_each_kind_is_ordered_anew_in_its_own_places() -> None:
    found = rerank(ranking(), "q", Reversed(), lambda item: str(item.rows), 20)
    assert [item.kind for item in found] == [item.kind for item in ranking()]
    assert [item.rows[0] for item in found] == [4, 5, 2, 3, 0, 1]
    assert [item.score for item in found] == [item.score for item in ranking()]
    for item in found:
        assert sum(place.part for place in item.routes.values()) == pytest.approx(item.score)
        assert ("reversed" in item.routes) == (item.kind != "entity")


def test_what_is_beyond_the_candidates_stays() -> None:
    found = rerank(ranking(), "q", Reversed(), lambda item: str(item.rows), 2)
    assert [item.rows[0] for item in found] == [2, 5, 0, 3, 4, 1]
    assert rerank([], "q", Reversed(), str, 2) == []


def test_a_search_reranks_where_the_settings_say_so(kb: KnowledgeBase) -> None:
    settings = RetrieveSettings(rerank="cross-encoder")
    with pytest.raises(UsageError, match="cross-encoder: nothing that reranks is open"):
        search(kb, QUESTION, settings)
    with_one = replace(kb, reranker=Reversed())
    plain = search(kb, QUESTION, RetrieveSettings())
    again = search(with_one, QUESTION, settings)
    assert "rerank" in again.milliseconds
    assert [item.ids for item in again.chunks] == [item.ids for item in plain.chunks][::-1]
    assert search(with_one, QUESTION, RetrieveSettings()).items == plain.items


class YesToWarsaw(GrammarWalker):
    def complete(self, request: Request) -> Completion:
        word = "yes" if "Warsaw" in request.prompt.rpartition("Text: ")[2] else "no"
        score = TokenScore(word, math.log(0.9))
        return Completion(request.request_id, word, "stop", Usage(1, 0, 1), (score,))


def test_a_model_says_yes_or_no_about_every_text() -> None:
    model = YesToWarsaw()
    scores = ModelReranker(model).scores(QUESTION, ["Warsaw is large.", "Radium glows.", "Old Warsaw"])
    assert scores == pytest.approx([0.9, 0.1, 0.9])
    assert model.peak == 3
    assert all(request.logprobs and "Text: " in request.prompt for request in model.requests)


def test_the_models_order_reaches_the_search(kb: KnowledgeBase) -> None:
    settings = RetrieveSettings(rerank="model")
    found = search(reranked_by_model(kb, YesToWarsaw(), settings), QUESTION, settings)
    assert "Warsaw" in found.chunks[0].text
    assert found.chunks[0].routes["model"].score == pytest.approx(0.9)
    assert reranked_by_model(kb, YesToWarsaw(), RetrieveSettings()) is kb


def test_any_walk_through_the_grammar_is_a_decision() -> None:
    scores = ModelReranker(GrammarWalker(3)).scores(QUESTION, ["a", "b" * 20_000, ""])
    assert all(0 <= score <= 1 for score in scores)


def test_a_call_that_fails_is_an_error_that_says_so() -> None:
    broken = GrammarWalker(fail_when=lambda request: "gone")
    with pytest.raises(ModelError, match=r"rerank=model.*gone"):
        ModelReranker(broken).scores(QUESTION, ["a"])


@pytest.fixture(scope="module")
def cross_encoders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """Untrained ones of a given number of outputs."""

    def make(outputs: int) -> Path:
        import torch
        from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

        torch.manual_seed(5)
        directory = tmp_path_factory.mktemp("cross-encoder")
        tokenizer = AutoTokenizer.from_pretrained(find_embedder(None))
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            num_labels=outputs,
        )
        BertForSequenceClassification(config).save_pretrained(directory)
        tokenizer.save_pretrained(directory)
        return directory

    return make


def test_a_cross_encoder_from_a_directory_scores_pairs(cross_encoders: Callable[[int], Path]) -> None:
    encoder = CrossEncoder(cross_encoders(1), "cpu")
    texts = ["Warsaw is large.", "Radium glows.", "word " * 2000]
    scores = encoder.scores(QUESTION, texts)
    assert all(0 < score < 1 for score in scores)
    assert len(set(scores)) == 3
    assert encoder.scores(QUESTION, texts) == scores


def test_what_is_no_cross_encoder_is_refused(cross_encoders: Callable[[int], Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        CrossEncoder(tmp_path, "cpu")
    (tmp_path / "config.json").write_text("{}", "utf-8")
    with pytest.raises(ModelError, match="cannot be loaded"):
        CrossEncoder(tmp_path, "cpu")
    with pytest.raises(ModelError, match="3 outputs; one"):
        CrossEncoder(cross_encoders(3), "cpu")
