"""The page's files as they are sent: bundled, hashed, compressed; and what the bundler refuses."""

from __future__ import annotations

import gzip
import mimetypes
import re
import subprocess
from pathlib import Path
from shutil import copytree, which

import httpx
import pytest

import hornbeam.serve.page_files as page_files
from hornbeam.serve.page_bundle import BundleError, bundle
from hornbeam.serve.page_files import SCRIPT, STYLES, read_page

FOLDER = Path(page_files.__file__).parent / "page"


def addresses(page: str) -> list[str]:
    return re.findall(r'(?:src|href)="(page/[^"]+)"', page)


def test_all_that_the_page_names_is_there_and_kept_for_good(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.headers["cache-control"] == "no-cache"
    named = addresses(page.text)
    assert {one.rpartition("/")[2] for one in named} == {"early.js", "leaf.svg", SCRIPT, STYLES}
    assert len({one.split("/")[1] for one in named}) == 1
    for one in named:
        got = client.get(f"/{one}")
        assert got.status_code == 200
        assert got.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert "script-src 'self'" in got.headers["content-security-policy"]
        assert client.head(f"/{one}").content == b""
    folder = named[0].rpartition("/")[0]
    assert client.get(f"/{folder}/vendor/sigma.LICENSE.txt").status_code == 200
    # What is not there is not kept.
    missing = client.get(f"/{folder}/main.js")
    assert missing.status_code == 404
    assert missing.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["", "page/{hash}/" + SCRIPT, "page/{hash}/early.js"])
def test_a_file_is_sent_once(client: httpx.Client, path: str) -> None:
    hashed = addresses(client.get("/").text)[0].split("/")[1]
    first = client.get(f"/{path.format(hash=hashed)}")
    again = client.get(
        f"/{path.format(hash=hashed)}", headers={"If-None-Match": f'W/"x", {first.headers["etag"]}'}
    )
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["cache-control"] == first.headers["cache-control"]
    other = client.get(f"/{path.format(hash=hashed)}", headers={"If-None-Match": '"another"'})
    assert other.content == first.content


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        ("gzip, deflate, br", True),
        ("br;q=1.0, gzip;q=0.8", True),
        ("*", True),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.0, br", False),
        ("", False),
    ],
)
def test_texts_are_compressed_for_whoever_takes_it(
    client: httpx.Client, accepted: str, compressed: bool
) -> None:
    script = next(one for one in addresses(client.get("/").text) if one.endswith(SCRIPT))
    got = client.get(f"/{script}", headers={"Accept-Encoding": accepted})
    assert got.headers.get("content-encoding") == ("gzip" if compressed else None)
    assert "accept-encoding" in got.headers["vary"].lower()
    assert got.content == read_page(FOLDER).by_address[script.removeprefix("page/")].body
    if compressed:
        assert int(got.headers["content-length"]) < len(got.content) / 2


def test_compressed_files_hold_what_the_others_do() -> None:
    files = read_page(FOLDER)
    for file in (files.page, *files.by_address.values()):
        if file.compressed is not None:
            assert gzip.decompress(file.compressed) == file.body
    assert read_page(FOLDER) == files


def test_what_a_file_is_sent_as_does_not_depend_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_page(FOLDER)
    monkeypatch.setitem(mimetypes.types_map, ".js", "application/x-javascript")
    monkeypatch.setitem(mimetypes.types_map, ".css", "application/x-css")
    assert read_page(FOLDER) == before
    scripts = [file for name, file in before.by_address.items() if name.endswith(".js")]
    assert {file.media_type for file in scripts} == {"text/javascript; charset=utf-8"}
    assert {"application/octet-stream"}.isdisjoint(file.media_type for file in before.by_address.values())


@pytest.mark.parametrize(
    "changed", ["main.js", "ask/plan.js", "css/ask.css", "early.js", "vendor/sigma-3.0.3.min.js"]
)
def test_another_content_has_another_address(tmp_path: Path, changed: str) -> None:
    folder = tmp_path / "page"
    copytree(FOLDER, folder)
    before = read_page(folder)
    assert before == read_page(FOLDER)
    with (folder / changed).open("a") as file:
        file.write("/* */\n")
    after = read_page(folder)
    assert before.by_address.keys().isdisjoint(after.by_address)
    assert before.page.etag != after.page.etag


def test_nothing_of_the_page_is_asked_of_another_origin() -> None:
    files = read_page(FOLDER)
    for name, file in [("index.html", files.page), *files.by_address.items()]:
        if name.endswith((".html", ".css", SCRIPT, "early.js")):
            text = file.body.decode()
            elsewhere = [
                one for one in re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text) if "www.w3.org" not in one
            ]
            assert elsewhere == [], name


def test_a_bundle_does_what_its_modules_do(tmp_path: Path) -> None:
    if which("node") is None:
        pytest.skip("no node")
    modules = {
        "main.js": 'import { double, Told } from "./a/double.js";\nimport { NAME } from "./name.js";\n\n'
        "const STORED = 3; // each module has names of its own\nasync function main() {\n"
        "  for await (const one of new Told().all()) console.log(NAME, double(STORED + one));\n}\nmain();\n",
        "a/double.js": 'import { NAME } from "../name.js";\n\nconst STORED = 2;\n'
        "export function double(value) {\n  return STORED * value;\n}\nexport class Told {\n  all() {\n"
        "    return counted(NAME.length);\n  }\n}\n\nexport async function* counted(most) {\n"
        "  for (let at = 0; at < most; at++) yield at;\n}\n",
        "name.js": 'console.log("once");\nexport const NAME = "ab";\n',
    }
    for name, text in modules.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "bundled.js").write_text(bundle("main.js", modules.__getitem__))

    def run(script: str) -> str:
        return subprocess.run(
            ["node", script], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    assert run("bundled.js") == run("main.js") == "once\nab 6\nab 8\n"


@pytest.mark.parametrize(
    "line",
    [
        'import other from "./other.js";',
        'import * as other from "./other.js";',
        'import { a as b } from "./other.js";',
        'import "./other.js";',
        "export default function () {}",
        "export { a };",
        "export let a = 1;",
        'import { b } from "./other.js";',
        'import { a, b } from "./other.js";',
        'const a = await import("./other.js");',
        "const a = import.meta.url;",
        "await later();",
    ],
)
def test_a_form_that_cannot_be_bundled_is_refused(line: str) -> None:
    with pytest.raises(BundleError, match=r"main\.js"):
        bundle("main.js", {"main.js": f"{line}\n", "other.js": "export const a = 1;\n"}.__getitem__)


def test_modules_that_import_each_other_are_refused() -> None:
    ring = {
        "a.js": 'import { b } from "./b.js";\nexport const a = 1;\n',
        "b.js": 'import { a } from "./a.js";\nexport const b = 2;\n',
    }
    with pytest.raises(BundleError, match=r"a\.js → b\.js → a\.js"):
        bundle("a.js", ring.__getitem__)
