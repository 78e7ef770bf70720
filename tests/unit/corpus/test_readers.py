"""What each kind of file becomes. Every file is made here, in a temporary folder."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from hornbeam.corpus import read_corpus
from hornbeam.errors import UsageError
from hornbeam.records import Document, Rejection, content_id
from hornbeam.settings import CorpusSettings

SENTENCE = "Marie Curie was born in Warsaw, and she won the Nobel Prize twice."


def read(*paths: Path | str, settings: CorpusSettings | None = None) -> list[Document | Rejection]:
    return list(read_corpus(paths, settings or CorpusSettings()))


def documents(*paths: Path | str) -> list[Document]:
    items = read(*paths)
    assert not [item for item in items if isinstance(item, Rejection)]
    return [item for item in items if isinstance(item, Document)]


def rejection(path: Path, settings: CorpusSettings | None = None) -> Rejection:
    (item,) = read(path, settings=settings)
    assert isinstance(item, Rejection)
    return item


def reasons(items: Sequence[Document | Rejection]) -> dict[str, str]:
    return {Path(item.path).name: item.reason for item in items if isinstance(item, Rejection)}


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# --- paths


def test_a_folder_is_read_recursively_sorted_and_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a/c.txt", ".hidden.txt", ".git/x.txt"):
        write(tmp_path / name, f"Text of {name}.")
    sources = [document.source for document in documents(tmp_path)]
    assert sources == [str(tmp_path / name) for name in ("a/c.txt", "a/z.txt", "b.txt")]


def test_sources_are_as_the_user_gave_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "docs/a.txt", SENTENCE)
    monkeypatch.chdir(tmp_path)
    assert [document.source for document in documents("docs", "docs/a.txt", "docs/*.txt", "**/*.txt")] == [
        "docs/a.txt"
    ] * 4


@pytest.mark.parametrize("bad", ["missing.txt", "missing/", "*.nothing"])
def test_a_path_without_a_match_is_a_usage_error_before_anything_is_read(tmp_path: Path, bad: str) -> None:
    good = write(tmp_path / "a.txt", SENTENCE)
    with pytest.raises(UsageError, match=r"missing|nothing"):
        read_corpus([good, tmp_path / bad], CorpusSettings())


def test_a_file_name_that_looks_like_a_pattern_is_a_file(tmp_path: Path) -> None:
    assert len(documents(write(tmp_path / "a[1].txt", SENTENCE))) == 1


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    write(tmp_path / "a/b/text.txt", SENTENCE)
    (tmp_path / "a/b/up").symlink_to(tmp_path / "a")
    assert [Path(document.source).name for document in documents(tmp_path)] == ["text.txt"]


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder with links to a file in it, to one beside it and to a folder beside it."""
    folder, outside = tmp_path / "given", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (folder / "own.txt").write_text("Own text.")
    (outside / "other.txt").write_text("Other text.")
    (folder / "inner.txt").symlink_to("own.txt")
    (folder / "outer.txt").symlink_to(outside / "other.txt")
    (folder / "outer").symlink_to(outside)
    return folder


@pytest.mark.parametrize(
    ("follow", "read", "refused"),
    [
        ("all", ["inner.txt", "outer/other.txt", "outer.txt", "own.txt"], {}),
        ("inside", ["inner.txt", "own.txt"], {"outer": "outside", "outer.txt": "outside/other.txt"}),
        ("none", ["own.txt"], {"inner.txt": "a link", "outer": "a link", "outer.txt": "a link"}),
    ],
)
def test_links_are_followed_as_far_as_is_set(
    linked: Path, follow: Literal["all", "inside", "none"], read: list[str], refused: dict[str, str]
) -> None:
    found = list(read_corpus([linked], CorpusSettings(follow_links=follow)))
    assert [one.source for one in found if isinstance(one, Document)] == [str(linked / name) for name in read]
    rejections = {one.path: one.reason for one in found if isinstance(one, Rejection)}
    assert rejections.keys() == {str(linked / name) for name in refused}
    for name, said in refused.items():
        assert said in rejections[str(linked / name)]
        assert f"corpus.follow_links={follow}" in rejections[str(linked / name)]


def test_a_path_that_is_itself_a_link_is_read(linked: Path) -> None:
    for follow in ("inside", "none"):
        found = list(read_corpus([linked / "outer"], CorpusSettings(follow_links=follow)))
        assert [one.text for one in found if isinstance(one, Document)] == ["Other text."]


def test_broken_links_pipes_and_circular_links_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "broken.txt").symlink_to(tmp_path / "nowhere")
    (tmp_path / "self.txt").symlink_to(tmp_path / "self.txt")
    os.mkfifo(tmp_path / "pipe.txt")
    assert reasons(read(tmp_path)) == {
        "broken.txt": "broken link",
        "pipe.txt": "not a regular file",
        "self.txt": "cannot be read: Too many levels of symbolic links",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_rejected(tmp_path: Path) -> None:
    write(tmp_path / "secret.txt", SENTENCE).chmod(0)
    assert reasons(read(tmp_path)) == {"secret.txt": "cannot be read: Permission denied"}


def test_a_file_that_cannot_be_opened_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "secret.md", SENTENCE)

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert rejection(file).reason == "cannot be read: Permission denied"


def test_names_that_are_no_unicode_do_not_break_the_source(tmp_path: Path) -> None:
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9.txt")
    with open(path, "wb") as file:
        file.write(SENTENCE.encode())
    (document,) = documents(tmp_path)
    document.source.encode("utf-8")


def test_reading_is_lazy(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / f"{number}.txt", f"Text {number}.")
    stream = read_corpus([tmp_path], CorpusSettings())
    next(stream)
    (tmp_path / "1.txt").write_text("Changed in the meantime.")
    second = next(stream)
    assert isinstance(second, Document)
    assert second.text == "Changed in the meantime."


# --- text


def test_a_document_is_identified_by_its_normalised_text(tmp_path: Path) -> None:
    first = write(tmp_path / "a.txt", f"{SENTENCE}\r\n")
    second = write(tmp_path / "b.txt", b"\xef\xbb\xbf" + SENTENCE.encode())
    one, two = documents(first, second)
    assert one.text == SENTENCE
    assert one.document_id == two.document_id == content_id("d", SENTENCE)
    assert (one.sources, two.sources) == ([str(first)], [str(second)])
    assert one.language == "en"


@pytest.mark.parametrize("name", ["a.srt", "a.log", "a.rst", "README", "a.unknown"])
def test_text_with_an_unknown_suffix_is_text(tmp_path: Path, name: str) -> None:
    assert [document.text for document in documents(write(tmp_path / name, SENTENCE))] == [SENTENCE]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.bin", bytes(range(256)), "binary file (NUL bytes)"),
        ("a", b"\x7fELF\x02\x01\x01" + bytes(64), "binary file (program)"),
        ("a.txt", b"\x89PNG\r\n\x1a\n" + bytes(64), "binary file (PNG image)"),
        ("a.doc", b"\xd0\xcf\x11\xe0", "unsupported format: .doc (old Word document)"),
        ("a.xlsx", b"PK", "unsupported format: .xlsx (spreadsheet)"),
        ("a.pptx", b"PK", "unsupported format: .pptx (presentation)"),
        ("a.odt", b"PK", "unsupported format: .odt (text document)"),
        ("a.rtf", b"{\\rtf1}", "unsupported format: .rtf (text document)"),
        ("a.jpg", b"\xff\xd8", "unsupported format: .jpg (image)"),
        ("a.txt", b"", "empty"),
        ("a.md", b" \n\t\n", "empty"),
        ("a.html", b" ", "empty"),
        ("a.json", b"", "empty"),
        ("a.csv", b"\n\n", "empty"),
        ("a.csv", b"id,text\n", "holds no records"),
        ("a.jsonl", b"\n\n", "holds no records"),
        ("a.json", b"[]", "holds no records"),
    ],
)
def test_what_holds_no_text_is_rejected_with_a_reason(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    assert rejection(write(tmp_path / name, content)).reason == reason


def test_a_file_above_the_limit_is_rejected_unread(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "x" * (2**20 + 2**19))
    assert (
        rejection(file, CorpusSettings(max_file_mib=1)).reason
        == "2 MiB; the maximum is 1 (corpus.max_file_mib)"
    )


@pytest.mark.parametrize(
    ("name", "content", "title"),
    [
        ("a.md", "Preamble.\n\n## The Heading ##\n\nText.", "The Heading"),
        ("a.md", "```\n# no heading\n```\nThe Heading\n===\n\nText.", "The Heading"),
        ("a.md", '---\ntitle: "The Heading"\n---\nText.', "The Heading"),
        ("a.txt", "The Heading\n\nText.", "The Heading"),
        ("The_File.txt", "A first line that is much too long for a title. " * 5, "The_File"),
    ],
)
def test_titles(tmp_path: Path, name: str, content: str, title: str) -> None:
    assert [document.title for document in documents(write(tmp_path / name, content))] == [title]


def test_markdown_keeps_words_and_code_and_loses_markup(tmp_path: Path) -> None:
    source = (
        '---\nlayout: page\n---\n<div align="center">\n# Title\n</div>\n<!-- hidden -->\n'
        "See [the **guide**](https://example.org/a) and ![a chart](c.png).\n"
        "[![badge](b.svg)](https://x.org) List<String> a < b\n\n"
        "```html\n<b>[x](y)</b> <!-- kept -->\n```\n`<i>`\n"
    )
    (document,) = documents(write(tmp_path / "a.md", source))
    assert document.text == (
        "# Title\n\nSee the **guide** and a chart.\nbadge List<String> a < b\n\n"
        "```html\n<b>[x](y)</b> <!-- kept -->\n```\n`<i>`"
    )


def test_html_gives_the_article_and_its_title(tmp_path: Path) -> None:
    article = "".join(f"<p>{SENTENCE} This is paragraph number {k} of the article.</p>" for k in range(8))
    page = (
        "<!doctype html><html><head><title>The &amp; Title</title><script>var hidden = 1;</script></head>"
        "<body>"
        "<nav><a href='/'>Home</a><a href='/b'>About us</a></nav>"
        f"<article><h1>Life</h1>{article}</article></body></html>"
    )
    for name in ("a.html", "a.xhtml", "page"):
        (document,) = documents(write(tmp_path / name, page))
        assert document.title == "The & Title"
        assert document.text.count(SENTENCE) == 8
        assert "hidden" not in document.text
        assert "About us" not in document.text


def test_html_without_a_main_text_gives_the_text_of_its_body(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import trafilatura

    monkeypatch.setattr(trafilatura, "extract", lambda *_, **__: None)
    page = (
        "<html><head><title>T</title></head><body><script>no()</script>One<br>two <b>three</b>"
        "<table><tr><td>cell</td></tr></table><!-- hidden --> end</body></html>"
    )
    (document,) = documents(write(tmp_path / "a.htm", page))
    assert document.text == "One\ntwo three\ncell\nend"


def test_xml_gives_the_text_of_its_elements_and_resolves_no_entities(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret", "the secret")
    feed = (
        f'<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY x SYSTEM "file://{secret}">]>'
        "<rss><title>News</title><item><d>&lt;p&gt;First &lt;b&gt;bold&lt;/b&gt;.&lt;/p&gt;</d></item>"
        "<item>Second &x;</item></rss>"
    )
    (document,) = documents(write(tmp_path / "a.xml", feed))
    assert document.title == "News"
    assert document.text == "News\nFirst bold.\nSecond"


# --- records


def test_json_lines_go_on_after_a_broken_line(tmp_path: Path) -> None:
    lines = [
        '{"title": "One", "text": "First."}',
        "{broken",
        "",
        '"just a string"',
        '{"id": 3}',
        '{"text": ""}',
        '{"TEXT": "' + "long " * 1_000_000 + '"}',
    ]
    data = "\n".join(lines).encode() + b'\n{"text": "\xff"}\n' + b'{"text": ' + b"[" * 100_000
    items = read(write(tmp_path / "a.jsonl", data))
    found = {item.source.split("#")[1]: item.text for item in items if isinstance(item, Document)}
    assert {number: len(text) for number, text in found.items()} == {"1": 11, "4": 13, "7": 4_999_999}
    assert found["1"] == "One\n\nFirst."
    assert reasons(items) == {
        "a.jsonl#2": "not valid JSON: Expecting property name enclosed in double quotes at character 1",
        "a.jsonl#5": "no text field (looked for text, content, body, passage, abstract, context, paragraph)",
        "a.jsonl#6": "empty",
        "a.jsonl#8": "not valid UTF-8: invalid start byte at byte 10",
        "a.jsonl#9": "not valid JSON: nested too deeply",
    }


def test_a_record_holds_its_passages(tmp_path: Path) -> None:
    record = {
        "question": "Who?",
        "passages": [{"title": "A", "text": "A is a letter."}, {"title": "B", "text": "The second."}],
    }
    first, second = documents(write(tmp_path / "a.jsonl", json.dumps(record)))
    assert first.source.endswith("#1.1")
    assert first.text == "A is a letter."  # it begins with its title
    assert second.source.endswith("#1.2")
    assert second.text == "B\n\nThe second."


@pytest.mark.parametrize(
    ("value", "sources"),
    [
        ({"text": "One."}, [""]),
        ([{"text": "One."}, {"content": "Two."}], ["#1", "#2"]),
        (["One.", "Two."], ["#1", "#2"]),
        ({"data": [{"paragraphs": [{"context": "One."}]}, {"body": "Two."}]}, ["#1.1", "#2"]),
        ({"key": {"Abstract": "One."}}, ["#1"]),
        ({"sentences": 3, "text": ["One.", "Two."]}, [""]),
    ],
)
def test_shapes_of_json(tmp_path: Path, value: object, sources: list[str]) -> None:
    file = write(tmp_path / "a.json", json.dumps(value))
    assert [document.source for document in documents(file)] == [f"{file}{source}" for source in sources]


def test_json_lines_with_the_wrong_suffix_are_read(tmp_path: Path) -> None:
    assert len(documents(write(tmp_path / "a.json", '{"text": "One."}\n{"text": "Two."}\n'))) == 2


@pytest.mark.parametrize("content", ["{", '{"a": 1', "[" * 100_000, "nonsense"])
def test_broken_json_is_rejected(tmp_path: Path, content: str) -> None:
    assert rejection(write(tmp_path / "a.json", content)).reason.startswith("not valid JSON")


@pytest.mark.parametrize("value", [3, None, {"a": 1}, [[]], {}])
def test_json_without_text_is_rejected(tmp_path: Path, value: object) -> None:
    assert "no text field" in rejection(write(tmp_path / "a.json", json.dumps(value))).reason


def test_csv_with_a_text_column(tmp_path: Path) -> None:
    text = 'ID;Name;Text\n1;Curie;"Born in ""Warsaw"";\nlived in Paris."\n\n2;Short\n3;;' + "long " * 100_000
    items = read(write(tmp_path / "a.csv", text.encode("utf-8-sig")))
    first, short, last = items
    assert isinstance(first, Document)
    assert first.text == 'Curie\n\nBorn in "Warsaw";\nlived in Paris.'
    assert first.source.endswith("a.csv#1")
    assert isinstance(short, Rejection)
    assert short.path.endswith("a.csv#2")
    assert isinstance(last, Document)
    assert len(last.text) == 499_999


def test_csv_without_a_text_column_gives_a_line_for_each_column(tmp_path: Path) -> None:
    data = "名前,年齢,住所\n佐藤太郎,30,東京\n三木英子,,大阪\n".encode("cp932")
    first, second = documents(write(tmp_path / "a.csv", data))
    assert first.text == "名前: 佐藤太郎\n年齢: 30\n住所: 東京"
    assert second.text == "名前: 三木英子\n住所: 大阪"


def test_tsv(tmp_path: Path) -> None:
    (document,) = documents(write(tmp_path / "a.tsv", "title\tbody\nA, B\tText, with commas\n"))
    assert document.text == "A, B\n\nText, with commas"


def test_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"Title": ["A", None], "Text": ["One.", "Two."], "other": [1, 2]}), file)
    assert [document.text for document in documents(file)] == ["A\n\nOne.", "Two."]
    pq.write_table(
        pa.table({"q": ["?"], "passages": [[{"title": "A", "text": "A."}, {"title": "B", "text": "C."}]]}),
        file,
    )
    assert [document.source for document in documents(file)] == [f"{file}#1.1", f"{file}#1.2"]
    assert rejection(write(tmp_path / "b.parquet", file.read_bytes()[:100])).reason.startswith(
        "pyarrow cannot read it"
    )


# --- documents of other programs


def make_pdf(path: Path, pages: Sequence[str], password: str = "") -> Path:
    """A PDF of one line of text a page; an empty string makes an empty page."""
    pypdf = pytest.importorskip("pypdf")
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = pypdf.PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(612, 792)
        content = DecodedStreamObject()
        content.set_data(f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode() if text else b"")
        page[NameObject("/Contents")] = writer._add_object(content)
        page[NameObject("/Resources")] = DictionaryObject(
            {NameObject("/Font"): DictionaryObject({NameObject("/F1"): writer._add_object(font)})}
        )
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    writer.write(path)
    return path


def test_pdf_pages_are_joined_by_blank_lines(tmp_path: Path) -> None:
    file = make_pdf(tmp_path / "a.pdf", ["First page.", "", "Third page."])
    (document,) = documents(file)
    assert document.text == "First page.\n\nThird page."
    unnamed = write(tmp_path / "unnamed", file.read_bytes())
    assert documents(unnamed)[0].document_id == document.document_id


def test_pdf_without_usable_text_is_rejected(tmp_path: Path) -> None:
    pages = ["Text."] * 3
    good = make_pdf(tmp_path / "good.pdf", pages)
    encrypted = make_pdf(tmp_path / "encrypted.pdf", pages, password="secret")
    scanned = make_pdf(tmp_path / "scanned.pdf", ["", ""])
    assert rejection(encrypted).reason == "encrypted PDF"
    assert rejection(scanned).reason == "PDF holds no text (scanned?)"
    assert rejection(write(tmp_path / "cut.pdf", good.read_bytes()[:120])).reason.startswith("damaged PDF")
    assert rejection(write(tmp_path / "not.pdf", SENTENCE)).reason.startswith("damaged PDF")
    assert (
        rejection(good, CorpusSettings(max_pages=2)).reason
        == "PDF of 3 pages; the maximum is 2 (corpus.max_pages)"
    )


def test_pdf_lines_of_a_paragraph_are_joined_and_those_of_a_table_are_not() -> None:
    from hornbeam.corpus.office_files import _join_lines

    page = (
        "Title\r\nThe laboratory in which Marie Curie worked in those years was hardly more than\r\n"
        "Paul Langevin's shed, and the reasons for this have been con\x02firmed by several of those who saw "
        "the place with their own eyes and by her\r\n"
        "students.\r\nItem Quantity\r\nWidget number one of a long line of widgets in blue 5 10.00\r\n"
        "Widget number two of a long line of widgets in green 3 12.50\r\n"
    )
    assert _join_lines(page).strip().split("\n") == [
        "Title",
        "The laboratory in which Marie Curie worked in those years was hardly more than Paul Langevin's "
        "shed, and the reasons for this have been confirmed by several of those who saw the place with their "
        "own eyes and by her students.",
        "Item Quantity",
        "Widget number one of a long line of widgets in blue 5 10.00",
        "Widget number two of a long line of widgets in green 3 12.50",
    ]


def test_docx_headings_paragraphs_and_tables_come_in_order(tmp_path: Path) -> None:
    import docx

    word = docx.Document()
    word.add_heading("Findings", 1)
    word.add_paragraph(SENTENCE)
    word.add_paragraph("an item", style="List Bullet")
    table = word.add_table(2, 2)
    for cell, text in zip(
        (cell for row in table.rows for cell in row.cells), ["a", "b", "c", "d"], strict=True
    ):
        cell.text = text
    table.cell(1, 0).merge(table.cell(1, 1))
    word.add_paragraph("The end.")
    word.save(str(tmp_path / "a.docx"))
    (document,) = documents(tmp_path / "a.docx")
    assert document.title == "Findings"
    assert document.text == f"# Findings\n\n{SENTENCE}\n- an item\n\na | b\nc d\n\nThe end."


def test_damaged_docx_is_rejected(tmp_path: Path) -> None:
    import docx

    docx.Document().save(str(tmp_path / "good.docx"))
    data = (tmp_path / "good.docx").read_bytes()
    assert rejection(write(tmp_path / "cut.docx", data[:1000])).reason.startswith("damaged Word document")
    with zipfile.ZipFile(tmp_path / "other.docx", "w") as archive:
        archive.writestr("hello.txt", "no Word document")
    assert rejection(tmp_path / "other.docx").reason.startswith("damaged Word document")
    with zipfile.ZipFile(tmp_path / "bomb.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", " " * (2 * 2**20))
    assert (
        "unpacks to more than 1 MiB"
        in rejection(tmp_path / "bomb.docx", CorpusSettings(max_file_mib=1)).reason
    )


def test_a_parser_that_raises_anything_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import docx

    def fail(path: str) -> None:
        raise AttributeError("'NoneType' object has no attribute 'x'")

    docx.Document().save(str(tmp_path / "a.docx"))
    write(tmp_path / "b.txt", SENTENCE)
    monkeypatch.setattr(docx, "Document", fail)
    first, second = read(tmp_path)
    assert isinstance(first, Rejection)
    assert first.reason == (
        "the reader for .docx files failed: AttributeError: 'NoneType' object has no attribute 'x'"
    )
    assert isinstance(second, Document)
