"""The official client of OpenAI's interface."""

from __future__ import annotations

from pathlib import Path

import openai
import pytest

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
