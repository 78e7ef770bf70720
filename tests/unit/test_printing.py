"""What reaches a terminal is text; what reaches a program is JSON, whatever became of the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hornbeam.printing import on_one_line, printable
from hornbeam.report import render_report
from unit.test_report import REPORT

HOSTILE = "\x1b]0;title\x07\x1b[2Ja\nb\r\x9b31m\u202egpj.exe\udcff\u2028"


@given(st.text(st.characters()))
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    shown = printable(text)
    assert not [one for one in shown if unicodedata.category(one) in ("Cc", "Cs") and one not in "\t\n"]
    shown.encode("utf-8")
    assert "\n" not in on_one_line(text)
    if text.isprintable():
        assert shown == text


def test_hostile_text_is_shown_escaped() -> None:
    assert printable(HOSTILE) == ("\\x1b]0;title\\x07\\x1b[2Ja\nb\\r\\x9b31m\\u202egpj.exe\\udcff\\u2028")
    assert printable("Zürich, 東京, דוד‏, tab\there") == "Zürich, 東京, דוד‏, tab\there"


def test_a_report_forges_no_line_and_sends_no_escape(capsys: pytest.CaptureFixture[str]) -> None:
    documents = REPORT["documents"] | {
        "rejected": [{"path": f"{HOSTILE}\nversion      v0 (promoted)", "reason": HOSTILE}]
    }
    render_report(REPORT | {"documents": documents}, Path(HOSTILE))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[2J" in out
    assert "\nversion      v0 (promoted)" not in out


def run(*arguments: str | bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "hornbeam", *arguments]
    return subprocess.run(
        command, capture_output=True, check=False, timeout=300, env=os.environ | environment
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("status", "--index", "nowhere"), 4, "is no index"),
        (("search", "--index", "nowhere"), 2, "Missing argument"),
        (("search", "x", "--index", "nowhere", "--set", "chunk.max_token=1"), 2, "chunk.max_tokens"),
        (("index", "nowhere", "--index", "new", "--budget", "much"), 2, "much"),
        (("audit", "--index", "nowhere", "--version", ""), 4, "is no index"),
        (("schema", "show", "nowhere.json"), 2, "no schema"),
        (("keys", "add", " ", "--keys", "keys.json"), 2, "a name"),
    ],
)
def test_a_command_that_fails_gives_one_document_with_its_reason_and_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments, "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"]) == (code, code)
    assert said in document["error"]
    assert said in done.stderr.decode()


def test_a_fault_that_nobody_foresaw_is_a_document_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import hornbeam.status\ndef fails(*_): raise ZeroDivisionError('by zero')\n"
        "hornbeam.status.index_status = fails\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = run("status", "--index", str(tmp_path), "--json", PYTHONPATH=path)
    assert json.loads(done.stdout) == {"error": "unexpected ZeroDivisionError: by zero", "exit_code": 4}


def test_after_two_dashes_json_is_a_word_like_others(tmp_path: Path) -> None:
    done = run("search", "--index", str(tmp_path / "nowhere"), "--", "--json")
    assert (done.stdout, done.returncode) == (b"", 4)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_json_is_valid_whatever_the_command_line_was(tmp_path: Path, encoding: str) -> None:
    name = os.fsencode(tmp_path) + b"/\xff\x1b[2J\xc2\x9bZ\xc3\xbcrich"
    done = run("status", "--index", name, "--json", PYTHONIOENCODING=encoding)
    said = json.loads(done.stdout.decode(encoding))["error"]
    assert f"{tmp_path}/\ufffd\x1b[2J\x9bZürich is no index" in said
    assert b"\x1b" not in done.stdout + done.stderr
    assert "\x9b" not in done.stdout.decode(encoding)
