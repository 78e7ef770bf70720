"""What the page's address answers with, made once when the server starts.

The scripts become one file and the styles another. Every address but that of the page itself has the hash of
all of them in it: a browser keeps such a file for good, and asks for another one when the page names another.
Texts are held compressed, too.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hornbeam.serve.page_bundle import bundle

#: Of index.html: its styles, in order, and its module; each a line of its own.
_STYLE = re.compile(r'^ *<link rel="stylesheet" href="page/([\w./-]+)">\n', re.MULTILINE)
_MODULE = re.compile(r'<script type="module" src="page/([\w./-]+)">')
_ADDRESS = re.compile(r'(?<=[="])page/')

SCRIPT, STYLES = "hornbeam.js", "hornbeam.css"
_LEAST_COMPRESSED = 400
#: Not by `mimetypes`: what that says of a script depends on the release of Python and on the machine's lists.
_MEDIA_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".md": "text/plain",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """Args: compressed: gzip; None where that is not smaller."""

    body: bytes
    compressed: bytes | None
    media_type: str
    etag: str


@dataclass(frozen=True, slots=True)
class PageFiles:
    """Args: by_address: below /page/, all with the hash in front."""

    page: PageFile
    by_address: Mapping[str, PageFile]


def read_page(folder: Path) -> PageFiles:
    """
    Args:
        folder: index.html and what it names with paths below "page/".

    Raises:
        BundleError: a script that cannot be bundled.
    """

    def text(path: str) -> str:
        return (folder / path).read_text("utf-8")

    index = text("index.html")
    module = _MODULE.search(index)
    styles = _STYLE.findall(index)
    assert module is not None, "index.html names a module"
    made = {
        SCRIPT: bundle(module.group(1), text).encode(),
        STYLES: "\n".join(map(text, styles)).encode(),
    }
    together = {module.group(1), *styles}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        named = f'"page/{name}"' in index and name not in together
        if path.is_file() and (named or name.startswith("vendor/")):
            made[name] = path.read_bytes()
    digest = hashlib.sha256()
    for name, body in sorted(made.items()):
        digest.update(f"{name}\0{len(body)}\0".encode() + body)
    version = digest.hexdigest()[:16]
    index = _STYLE.sub("", index, count=len(styles) - 1)  # the last one's place is that of all
    index = _STYLE.sub(f'  <link rel="stylesheet" href="page/{STYLES}">\n', index)
    index = _MODULE.sub(f'<script type="module" src="page/{SCRIPT}">', index)
    index = _ADDRESS.sub(f"page/{version}/", index)
    return PageFiles(
        _file("index.html", index.encode()),
        {f"{version}/{name}": _file(name, body) for name, body in made.items()},
    )


def _file(name: str, body: bytes) -> PageFile:
    known = _MEDIA_TYPES.get(PurePosixPath(name).suffix)
    media_type, is_text = known or "application/octet-stream", known is not None
    compressed = gzip.compress(body, 9, mtime=0) if is_text and len(body) >= _LEAST_COMPRESSED else body
    return PageFile(
        body,
        compressed if len(compressed) < len(body) else None,
        f"{media_type}; charset=utf-8" if is_text else media_type,
        f'"{hashlib.sha256(body).hexdigest()[:32]}"',
    )
