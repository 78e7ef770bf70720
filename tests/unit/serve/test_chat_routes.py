"""The official client of OpenAI's interface."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest

from hornbeam.llm.protocol import Request
from hornbeam.serve.chat_routes import past_turns
from support.scripted_model import ScriptedModel
from support.serving import QUESTION, running


def test_the_official_client_lists_models_asks_and_streams(index: Path) -> None:
    with (
        running(index) as (url, _),
        openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
    ):
        assert [model.id for model in client.models.list()] == ["papers"]
        messages = [
            {"role": "system", "content": "Answer in verse."},
            {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        ]
        whole = client.chat.completions.create(model="papers", messages=messages)  # type: ignore[call-overload]
        answer = whole.choices[0].message.content
        assert answer.startswith("Polonium [1].")
        assert "\n\n[1] " in answer
        assert whole.usage.completion_tokens > 0
        stream = client.chat.completions.create(  # type: ignore[call-overload]
            model="papers", messages=messages, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert said == answer
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
        with pytest.raises(openai.NotFoundError, match="no index 'patents'"):
            client.chat.completions.create(model="patents", messages=messages)  # type: ignore[call-overload]
        with pytest.raises(openai.UnprocessableEntityError, match="none of them is the user's"):
            client.chat.completions.create(model="papers", messages=messages[:1])  # type: ignore[call-overload]


def test_earlier_turns_complete_a_question_that_leans_on_them(index: Path) -> None:
    asked: list[str] = []

    def answer(request: Request) -> str:
        asked.append(request.prompt)
        # The rewriting is held by a grammar that names its forms; an answer by one that holds marks.
        leans = (
            request.grammar is not None and "Marie Curie" in request.grammar and '"["' not in request.grammar
        )
        return "Where did Marie Curie discover polonium?" if leans else "In Paris [1]."

    messages = [
        {"role": "user", "content": "Who was born in Warsaw?"},
        {"role": "assistant", "content": "Marie Curie [1].\n\n[1] Radium pioneers:0-31"},
        {"role": "user", "content": "Where did she discover polonium?"},
    ]
    with (
        running(index, ScriptedModel(answer)) as (url, _),
        openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client,
    ):
        client.chat.completions.create(model="papers", messages=messages)  # type: ignore[arg-type]
    assert "Marie Curie" in asked[0]
    assert "Where did she discover polonium?" in asked[0]
    assert "Where did Marie Curie discover polonium?" in asked[-1]


def test_past_turns_lose_marks_and_sources() -> None:
    said = [
        ("assistant", "Welcome."),
        ("user", "Who?"),
        ("assistant", "Marie Curie [1] in Paris [2]\n\n[1] Radium pioneers:0-31\n[2] b.md:5-9"),
        ("user", "  "),
        ("user", "When?"),
    ]
    assert [(turn.question, turn.answer) for turn in past_turns(said)] == [
        ("Who?", "Marie Curie in Paris"),
        ("When?", ""),
    ]
