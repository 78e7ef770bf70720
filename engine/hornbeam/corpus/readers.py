"""Read a corpus: files of many formats in, documents and rejections out, one at a time."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hornbeam.corpus.encoding import HEAD_BYTES, NotText
from hornbeam.corpus.extracted import Extracted, RejectedRecord, UnusableFile
from hornbeam.corpus.normalise import detect_language, normalise, one_line
from hornbeam.corpus.office_files import read_docx, read_pdf
from hornbeam.corpus.record_files import read_csv, read_json, read_json_lines, read_parquet
from hornbeam.corpus.sources import SourceFile, check_paths, walk
from hornbeam.corpus.text_files import read_html, read_markdown, read_text, read_xml
from hornbeam.records import Document, Rejection, content_id
from hornbeam.settings import CorpusSettings

Reader = Callable[[Path], Iterator[Extracted | RejectedRecord]]


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file that was met: after its documents, or in their place if it is as it was."""

    source: str
    digest: str  # SHA-256 of its bytes
    unchanged: bool
    whole: bool  # nothing of it was rejected


#: A first line longer than this is no title.
_TITLE_CHARACTERS = 100

_TEXT_SUFFIXES = (".txt", ".text")
_READERS: dict[str, Reader] = {
    **dict.fromkeys((".md", ".markdown"), read_markdown),
    **dict.fromkeys((".html", ".htm", ".xhtml"), read_html),
    ".json": read_json,
    **dict.fromkeys((".jsonl", ".ndjson"), read_json_lines),
    **dict.fromkeys((".csv", ".tsv"), read_csv),
    ".parquet": read_parquet,
}  # and .pdf and .docx, which need the settings

# Known formats that hold text but are not read, and those that hold none: rejected by name, so that the user
# need not wonder what "binary" means.
_UNSUPPORTED = {
    **dict.fromkeys((".doc", ".dot"), "old Word document"),
    **dict.fromkeys((".xls", ".xlsx", ".xlsm", ".ods"), "spreadsheet"),
    **dict.fromkeys((".ppt", ".pptx", ".odp"), "presentation"),
    **dict.fromkeys((".odt", ".rtf", ".pages", ".wpd"), "text document"),
    **dict.fromkeys((".epub", ".mobi", ".azw3", ".djvu"), "e-book"),
    **dict.fromkeys((".msg", ".eml", ".mbox", ".pst"), "mail"),
    **dict.fromkeys(
        (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".svg", ".heic", ".ico"), "image"
    ),
    **dict.fromkeys((".mp3", ".wav", ".flac", ".ogg", ".m4a"), "audio"),
    **dict.fromkeys((".mp4", ".avi", ".mov", ".mkv", ".webm"), "video"),
    **dict.fromkeys(
        (".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".tar", ".7z", ".rar"), "archive; unpack it"
    ),
    ".ipynb": "notebook",
}

_SIGNATURES = (
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "ZIP archive or office document"),
    (b"\xd0\xcf\x11\xe0", "old office document"),
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"\x1f\x8b", "gzip"),
    (b"\x7fELF", "program"),
    (b"PAR1", "Parquet"),
    (b"SQLite format 3", "SQLite database"),
    (b"{\\rtf", "RTF"),
)


def read_corpus(paths: Sequence[Path | str], settings: CorpusSettings) -> Iterator[Document | Rejection]:
    """Every document in `paths` (files, folders, patterns), and every input that could not become one.

    Lazy: one file is open at a time, and memory does not grow with the number of documents. A text that is
    met again is yielded again, with the same id and its other source. No file, whatever is in it, ends the
    run.

    Raises UsageError, before anything is read, for a path that does not exist or a pattern without a match.
    """
    return _read_all(check_paths(paths), settings)


def _read_all(paths: Sequence[Path], settings: CorpusSettings) -> Iterator[Document | Rejection]:
    for file in walk(paths, settings.follow_links):
        if isinstance(file, Rejection):
            yield file
        else:
            yield from _read_file(file, settings)


def read_changed(
    paths: Sequence[Path], settings: CorpusSettings, known_digest: Callable[[str], str | None]
) -> Iterator[Document | Rejection | SeenFile]:
    """Like `read_corpus`, of existing paths, but a file whose bytes are those of `known_digest(source)` is
    not parsed again. The digest is taken before the file is read: if it changes meanwhile, the next run reads
    it again."""
    for file in walk(paths, settings.follow_links):
        if isinstance(file, Rejection):
            yield file
            continue
        yield from read_file(file, settings, known_digest(file.source))


def read_file(
    file: SourceFile, settings: CorpusSettings, known_digest: str | None
) -> Iterator[Document | Rejection | SeenFile]:
    """What `read_changed` yields of one file.

    Args:
        known_digest: of its bytes when they were last read.
    """
    digest = _digest(file, settings)
    if digest is not None and digest == known_digest:
        yield SeenFile(file.source, digest, unchanged=True, whole=True)
        return
    whole = True
    for item in _read_file(file, settings):
        whole = whole and not isinstance(item, Rejection)
        yield item
    if digest is not None:
        yield SeenFile(file.source, digest, unchanged=False, whole=whole)


_READ_WHOLE = 1 << 16


def _digest(file: SourceFile, settings: CorpusSettings) -> str | None:
    """None for what cannot be read, and for what is too large to be: its reader says so."""
    try:
        size = file.path.stat().st_size
        if size > settings.max_file_mib * 2**20:
            return None
        with file.path.open("rb") as opened:
            if size <= _READ_WHOLE:  # `file_digest` makes a buffer of a quarter of a MiB for each
                return hashlib.sha256(opened.read()).hexdigest()
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return None


def _read_file(file: SourceFile, settings: CorpusSettings) -> Iterator[Document | Rejection]:
    kind = file.path.suffix.lower() or "text"
    try:
        found = False
        for item in _reader(file.path, settings)(file.path):
            found = True
            yield _finish(item, file)
        if not found:
            raise UnusableFile("holds no records")
    except (UnusableFile, NotText) as error:
        yield Rejection(file.source, one_line(str(error)))
    except OSError as error:
        yield Rejection(file.source, f"cannot be read: {error.strerror or error}")
    except MemoryError:
        yield Rejection(file.source, "not enough memory to read it")
    # The parsers of other people's formats raise anything, down to AttributeError, on damaged input, and no
    # file may end the run. The reason names the error, so nothing is hidden.
    except Exception as error:  # noqa: BLE001
        yield Rejection(
            file.source, f"the reader for {kind} files failed: {type(error).__name__}: {one_line(str(error))}"
        )


def _reader(path: Path, settings: CorpusSettings) -> Reader:
    """The reader for a file, by suffix, else by content. Raises UnusableFile for what has none."""
    suffix = path.suffix.lower()
    size = path.stat().st_size
    if suffix in _UNSUPPORTED:
        raise UnusableFile(f"unsupported format: {suffix} ({_UNSUPPORTED[suffix]})")
    if size > settings.max_file_mib * 2**20:
        raise UnusableFile(
            f"{size / 2**20:.0f} MiB; the maximum is {settings.max_file_mib} (corpus.max_file_mib)"
        )
    if size == 0:
        raise UnusableFile("empty")
    if suffix == ".pdf":
        return functools.partial(read_pdf, settings=settings)
    if suffix == ".docx":
        return functools.partial(read_docx, settings=settings)
    if suffix in _READERS and suffix not in _TEXT_SUFFIXES:
        return _READERS[suffix]
    return _sniffed(path, settings, named_text=suffix in _TEXT_SUFFIXES)


def _sniffed(path: Path, settings: CorpusSettings, named_text: bool) -> Reader:
    """The reader for a file whose name does not tell, or says no more than that it is text."""
    with path.open("rb") as opened:
        head = opened.read(HEAD_BYTES)
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            if name == "PDF" and not named_text:
                return functools.partial(read_pdf, settings=settings)
            raise UnusableFile(f"binary file ({name})")
    beginning = head[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if not named_text and beginning.startswith((b"<!doctype html", b"<html")):
        return read_html
    if not named_text and (beginning.startswith(b"<?xml") or path.suffix.lower() == ".xml"):
        return read_xml
    return read_text


def _finish(item: Extracted | RejectedRecord, file: SourceFile) -> Document | Rejection:
    """The document of an extracted text: normalised, titled, identified by its content."""
    source = f"{file.source}#{item.record}" if item.record else file.source
    if isinstance(item, RejectedRecord):
        return Rejection(source, item.reason)
    text, title = normalise(item.text), one_line(item.title)
    if not text:
        return Rejection(source, "empty")
    if item.title_in_text and title and not text.startswith(title):
        text = f"{title}\n\n{text}"
    return Document(
        document_id=content_id("d", text),
        source=source,
        title=title or _first_line(text) or one_line(file.path.stem),
        text=text,
        language=detect_language(text),
        sources=[source],
    )


def _first_line(text: str) -> str:
    line = text[: _TITLE_CHARACTERS + 1].split("\n", 1)[0].lstrip("#").strip()
    return line if len(line) <= _TITLE_CHARACTERS else ""
