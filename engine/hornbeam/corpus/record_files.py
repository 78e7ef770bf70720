"""Files of many records: JSON, JSON lines, CSV and TSV, Parquet. One record at a time, where the format can.

A record's text is its first field of `TEXT_FIELDS`; a record without one may hold lists of records that have
one (a question with its passages), at any depth.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hornbeam.corpus.encoding import decode, file_encoding
from hornbeam.corpus.extracted import Extracted, RejectedRecord, UnusableFile
from hornbeam.errors import reason

TEXT_FIELDS = ("text", "content", "body", "passage", "abstract", "context", "paragraph")
TITLE_FIELDS = ("title", "name", "headline")
NO_TEXT_FIELD = f"no text field (looked for {', '.join(TEXT_FIELDS)})"

#: Depth to which records within records are looked at.
_MAX_DEPTH = 6
_PARQUET_ROWS = 256
_JSON_SPACE = b" \t\r\n"

Results = Iterator[Extracted | RejectedRecord]


def read_json(path: Path) -> Results:
    """A record, or a list of records or strings. Several JSON values one after the other are read as JSON
    lines. Raises NotText, UnusableFile."""
    text = decode(path.read_bytes()).text
    if not text.strip():
        raise UnusableFile("empty")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and _is_json(text.lstrip().split("\n", 1)[0]):
            yield from read_json_lines(path)
            return
        raise UnusableFile(f"not valid JSON: {reason(error)}") from error
    except RecursionError as error:
        raise UnusableFile("not valid JSON: nested too deeply") from error
    except ValueError as error:  # a number of more than 4,300 digits
        raise UnusableFile(f"not valid JSON: {reason(error)}") from error
    if isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _from_value(item, str(number))
        return
    yield from _from_value(value, "")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def read_json_lines(path: Path) -> Results:
    """One record, or string, a line; blank lines are skipped, broken ones rejected by line number."""
    with path.open("rb") as file:
        wide = file.read(4).startswith((b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff"))
    if wide:
        encoding, _ = file_encoding(path)
        with path.open(encoding=encoding) as lines:
            for number, line in enumerate(lines, 1):
                yield from _from_json_line(line.encode("utf-8", "surrogatepass"), str(number))
        return
    with path.open("rb") as raw_lines:
        for number, raw in enumerate(raw_lines, 1):
            yield from _from_json_line(raw.removeprefix(b"\xef\xbb\xbf"), str(number))


def _from_json_line(line: bytes, number: str) -> Results:
    line = line.strip(_JSON_SPACE)
    if not line:
        return
    try:
        # Not per file: JSON lines are UTF-8, and one damaged line must not change how the others are read.
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        yield RejectedRecord(number, f"not valid UTF-8: {error.reason} at byte {error.start}")
    except json.JSONDecodeError as error:
        yield RejectedRecord(number, f"not valid JSON: {error.msg} at character {error.pos}")
    except RecursionError:
        yield RejectedRecord(number, "not valid JSON: nested too deeply")
    except ValueError as error:  # a number of more than 4,300 digits
        yield RejectedRecord(number, f"not valid JSON: {reason(error)}")
    else:
        yield from _from_value(value, number)


def read_csv(path: Path) -> Results:
    """One record a row, named by the header row. Without a text column, a row is "column: value" lines.

    Raises NotText, UnusableFile.
    """
    # The module's default limit of 128 KiB a field is less than a long article. It is a process-wide
    # setting, and the only one that there is.
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    encoding, errors = file_encoding(path)
    with path.open(encoding=encoding, errors=errors, newline="") as file:
        delimiter = _delimiter(file.readline(), path.suffix.lower())
        file.seek(0)
        rows = csv.reader((line.replace("\x00", "") for line in file), delimiter=delimiter)
        try:
            header = [name.strip() for name in next(rows, [])]
            if not any(header):
                raise UnusableFile("empty" if path.stat().st_size < 4 else "CSV without a header row")
            number, has_text = 0, _first_key(header, TEXT_FIELDS) is not None
            for row in rows:
                if not any(cell.strip() for cell in row):
                    continue
                number += 1
                if has_text:
                    yield from _from_value(dict(zip(header, row, strict=False)), str(number))
                else:
                    yield Extracted(_as_lines(header, row), record=str(number))
        except csv.Error as error:
            raise UnusableFile(f"not valid CSV: line {rows.line_num}: {reason(error)}") from error


def _delimiter(header: str, suffix: str) -> str:
    """The most frequent candidate in the header. csv.Sniffer guesses letters for files of one column."""
    if suffix == ".tsv":
        return "\t"
    best = max(",;\t|", key=header.count)
    return best if best in header else ","


def _as_lines(header: list[str], row: list[str]) -> str:
    names = header + [f"column {k}" for k in range(len(header) + 1, len(row) + 1)]
    return "\n".join(
        f"{name}: {value.strip()}" if name else value.strip()
        for name, value in zip(names, row, strict=False)
        if value.strip()
    )


def read_parquet(path: Path) -> Results:
    """One record a row, in batches; only the columns that can matter are read. Raises UnusableFile."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names: list[str] = file.schema_arrow.names
            columns = [name for name in names if name.strip().lower() in (*TEXT_FIELDS, *TITLE_FIELDS)]
            if _first_key(names, TEXT_FIELDS) is None:
                columns = names
            number = 0
            for batch in file.iter_batches(batch_size=_PARQUET_ROWS, columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    yield from _from_value(row, str(number))
    except (pa.ArrowException, OSError) as error:
        raise UnusableFile(f"pyarrow cannot read it: {reason(error)}") from error


def _from_value(value: Any, record: str) -> Results:
    """The documents in a parsed value: a string, a record, or records within it."""
    if isinstance(value, str):
        yield Extracted(value, record=record)
        return
    found = False
    if isinstance(value, Mapping):
        for extracted in _documents(value, record, _MAX_DEPTH):
            found = True
            yield extracted
    if not found:
        yield RejectedRecord(record, NO_TEXT_FIELD)


def _documents(value: Mapping[str, Any], record: str, depth: int) -> Iterator[Extracted]:
    text = _field(value, TEXT_FIELDS)
    if text is not None:
        yield Extracted(text, _field(value, TITLE_FIELDS) or "", record, title_in_text=True)
        return
    if depth == 0:
        return
    number = 0
    for inner in value.values():
        for item in inner if isinstance(inner, list) else [inner]:
            if isinstance(item, Mapping):
                number += 1
                yield from _documents(item, f"{record}.{number}" if record else str(number), depth - 1)


def _field(value: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first of the fields that holds text: a string, or a list of strings (sentences, paragraphs)."""
    by_name = {key.strip().lower(): key for key in reversed([*value]) if isinstance(key, str)}
    blank = None
    for name in names:
        if name in by_name:
            content = value[by_name[name]]
            if isinstance(content, list) and content and all(isinstance(item, str) for item in content):
                content = "\n".join(content)
            if isinstance(content, str):
                if content.strip():
                    return content
                blank = content
    return blank


def _first_key(names: list[str], wanted: tuple[str, ...]) -> str | None:
    known = {name.strip().lower() for name in names}
    return next((name for name in wanted if name in known), None)
