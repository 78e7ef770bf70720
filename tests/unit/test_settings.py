"""Where settings come from, who wins, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hornbeam.errors import UsageError
from hornbeam.settings import ModelSettings, Settings, load_settings


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text("[chunk]\nmax_tokens = 100\noverlap_tokens = 10\n[extract]\nwindow = 7\n", "utf-8")
    return path


def test_file_loses_to_environment_and_environment_to_the_command_line(toml: Path) -> None:
    environment = {
        "HORNBEAM_CHUNK__MAX_TOKENS": "200",
        "HORNBEAM_CHUNK__OVERLAP_TOKENS": "20",
        "PATH": "/bin",
    }
    overrides = {"chunk.max_tokens": 300, "chunk.overlap_tokens": None}
    settings = load_settings(toml, overrides, environment)
    assert (settings.chunk.max_tokens, settings.chunk.overlap_tokens) == (300, 20)
    assert settings.extract.window == 7
    assert settings.extract.retries == Settings().extract.retries


def test_the_file_is_named_by_flag_then_environment_then_found_in_the_folder(
    toml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert load_settings(environment={}) == Settings()
    (folder / "hornbeam.toml").write_text("[extract]\nwindow = 3\n", "utf-8")
    assert load_settings(environment={}).extract.window == 3
    named = {"HORNBEAM_CONFIG": str(toml)}
    assert load_settings(environment=named).extract.window == 7
    assert load_settings(folder / "hornbeam.toml", environment=named).extract.window == 3


def test_the_environment_of_the_process_is_read_by_default(
    monkeypatch: pytest.MonkeyPatch, toml: Path
) -> None:
    monkeypatch.setenv("HORNBEAM_EXTRACT__WINDOW", "9")
    assert load_settings(toml).extract.window == 9


def refusal(toml_text: str = "", environment: dict[str, str] | None = None, **overrides: object) -> str:
    dotted = {key.replace("__", "."): value for key, value in overrides.items()}
    path = Path("settings.toml")
    path.write_text(toml_text, "utf-8")
    with pytest.raises(UsageError) as refused:
        load_settings(path, dotted, environment or {})
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_unknown_key_names_its_source_and_the_nearest_known_one() -> None:
    nearest = "did you mean 'chunk.max_tokens'?"
    in_file = refusal("[chunk]\nmax_token = 5\n")
    assert in_file.startswith("settings.toml: unknown key 'chunk.max_token'")
    assert nearest in in_file
    in_environment = refusal(environment={"HORNBEAM_CHUNK__MAX_TOKEN": "5"})
    assert in_environment.startswith("HORNBEAM_CHUNK__MAX_TOKEN: unknown key")
    assert nearest in in_environment
    on_command_line = refusal(chunk__max_token=5)
    assert on_command_line.startswith("command line: unknown key")
    assert nearest in on_command_line


def test_an_unknown_section_names_the_nearest_known_one() -> None:
    assert "unknown key 'chunks'; did you mean 'chunk'?" in refusal("[chunks]\nmax_tokens = 5\n")
    assert "did you mean 'extract'?" in refusal(environment={"HORNBEAM_EXTRAKT__WINDOW": "5"})


def test_a_value_out_of_range_or_of_another_kind_is_named_with_its_source() -> None:
    assert "'chunk.max_tokens'" in refusal("[chunk]\nmax_tokens = 5\n")
    assert "HORNBEAM_EXTRACT__WINDOW: 'extract.window'" in refusal(
        environment={"HORNBEAM_EXTRACT__WINDOW": "many"}
    )
    assert "command line: 'device'" in refusal(device="tpu")
    assert "overlap_tokens may be at most half" in refusal("[chunk]\nmax_tokens = 40\noverlap_tokens = 30\n")


def test_all_problems_are_told_at_once() -> None:
    message = refusal("[chunk]\nmax_tokens = 5\n[extract]\nwindow = 0\n")
    assert "chunk.max_tokens" in message
    assert "extract.window" in message


def test_a_value_where_a_section_belongs_is_refused() -> None:
    assert "'chunk' is a value, not a section" in refusal(
        "chunk = 5\n", environment={"HORNBEAM_CHUNK__MAX_TOKENS": "100"}
    )
    assert "'chunk'" in refusal("chunk = 5\n")


def test_a_file_that_is_missing_or_no_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.toml"):
        load_settings(tmp_path / "absent.toml", environment={})
    broken = tmp_path / "broken.toml"
    broken.write_text("chunk = [", "utf-8")
    with pytest.raises(UsageError, match=r"broken\.toml"):
        load_settings(broken, environment={})


def test_variables_that_are_no_settings_are_left_alone() -> None:
    environment = {"HORNBEAM_CACHE": "/x", "HORNBEAM_DATA": "/y", "HORNBEAM_CONFIG": ""}
    environment |= {"HORNBEAM_TEST_KILLS": "50", "HORNBEAM_TEST_MODEL_KILLS": "10"}
    assert load_settings(environment=environment) == Settings()


def test_a_fingerprint_changes_with_a_key_of_its_section_and_only_then() -> None:
    base = Settings()
    for changed, sections in (
        ({"extract.window": 5}, {"extract"}),
        ({"extract.temperature": 0.5}, {"extract"}),
        ({"chunk.max_tokens": 100}, {"chunk"}),
        ({"device": "cpu"}, {"device"}),
    ):
        other = load_settings(overrides=changed, environment={})
        for section in ("extract", "chunk", "organise", "device"):
            same = base.fingerprint(section) == other.fingerprint(section)
            assert same == (section not in sections)
        assert base.fingerprint("extract", "chunk") != base.fingerprint("extract")
    written_out = load_settings(overrides={"extract.window": base.extract.window}, environment={})
    assert written_out.fingerprint("extract") == base.fingerprint("extract")


def test_the_api_key_is_in_no_dump_repr_fingerprint_or_error() -> None:
    settings = load_settings(environment={"HORNBEAM_MODEL__API_KEY": "s3cret"})
    assert settings.model.api_key == "s3cret"
    shown = (settings.model_dump_json(), str(settings.model_dump()), repr(settings), str(settings.model))
    assert not any("s3cret" in text for text in shown)
    assert settings.fingerprint("model") == Settings().fingerprint("model")
    assert "12345" not in refusal("[model]\napi_key = 12345\n")
    assert "12345" not in refusal('[model]\napi_key = "12345"\nseed = "x"\nnonsense = 1\n')
    assert "12345" not in refusal('[[model]]\napi_key = "12345"\n')


def test_settings_cannot_be_changed_after_they_are_made() -> None:
    with pytest.raises(ValueError, match="frozen"):
        ModelSettings().seed = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cost.budget": "much"}, "command line: 'cost': 'much' is no budget"),
        ({"chunk.overlap_tokens": 300}, "overlap_tokens may be at most half"),
        ({"chunk.max_tokens": "9" * 5000}, "'chunk.max_tokens'"),
    ],
)
def test_a_wrong_value_is_told_without_the_words_of_libraries(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_settings(overrides=changes, environment={})
    told = str(caught.value)
    assert said in told
    assert "Value error" not in told
    assert "sys." not in told
    assert len(told) < 300


def test_a_settings_file_that_is_not_there_is_told_without_a_number(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no\.toml: No such file or directory$"):
        load_settings(tmp_path / "no.toml", environment={})
