"""What was recorded is answered again, byte for byte; what was not, fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("xgrammar")

from hornbeam.errors import ModelError
from hornbeam.extract.stages import Extractor
from hornbeam.llm.batch import run_requests
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.protocol import Completion, Request
from hornbeam.llm.replay import RecordingModel, ReplayModel
from hornbeam.schema.load import load_schema
from hornbeam.settings import ExtractSettings
from support.walker import GrammarWalker

try:
    embedded_model_directory()
except ModelError as missing:
    pytest.skip(f"no tokenizer: {missing}", allow_module_level=True)

REQUESTS = [
    Request(f"r{number}", f"Prompt {number} «字»", 40, grammar='root ::= ("a" | "b" | "字")+', logprobs=True)
    for number in range(3)
]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    recorder = RecordingModel(GrammarWalker(1), path)
    recorded = {completion.request_id: completion for completion in run_requests(recorder, REQUESTS[:2], 8)}
    list(recorder.stream(REQUESTS[2]))
    recorder.close()
    assert recorded == {r.request_id: GrammarWalker(1).complete(r) for r in REQUESTS[:2]}
    return path


def test_answers_come_again_whatever_the_request_is_called(recording: Path) -> None:
    walker = GrammarWalker(1)
    replay = ReplayModel(recording, walker.tokenizer)
    assert (replay.identity, replay.max_model_len) == (walker.identity, walker.max_model_len)
    for request in REQUESTS:
        renamed = replace(request, request_id="other")
        replay.submit(renamed)
        assert replay.in_flight == 1
        assert replay.poll() == [walker.complete(renamed)]
        *texts, completion = replay.stream(request)
        assert completion == walker.complete(request)
        assert isinstance(completion, Completion)
        assert "".join(str(text) for text in texts) == completion.text
    assert replay.poll() == []


@pytest.mark.parametrize(
    "change", [{"prompt": "?"}, {"max_tokens": 41}, {"grammar": None}, {"temperature": 0.5}, {"stop": ("x",)}]
)
def test_another_request_was_not_recorded(recording: Path, change: dict[str, object]) -> None:
    replay = ReplayModel(recording, GrammarWalker(1).tokenizer)
    replay.submit(replace(REQUESTS[0], **change))  # type: ignore[arg-type]
    (completion,) = replay.poll()
    assert (completion.finish_reason, completion.error) == ("error", "not in the recording")


def test_extraction_from_a_recording_is_extraction_with_the_model(tmp_path: Path) -> None:
    schema, limits = load_schema("general"), ExtractSettings(examples=1)
    chunks = [(f"c{i}", f"Ada Byron met Charles Babbage in London in 18{i}5.") for i in range(5)]
    recorder = RecordingModel(GrammarWalker(3, closing=0.1), tmp_path / "r.jsonl")
    live = dict(Extractor(recorder, schema, limits).run(chunks))
    recorder.close()
    replay = ReplayModel(tmp_path / "r.jsonl", GrammarWalker(3).tokenizer)
    assert dict(Extractor(replay, schema, limits).run(chunks)) == live


@pytest.mark.parametrize("content", ["", "{}\n", "no json\n", '{"recording": 99}\n'])
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(content)
    with pytest.raises(ModelError, match="no recording"):
        ReplayModel(path, GrammarWalker(1).tokenizer)
