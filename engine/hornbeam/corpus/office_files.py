"""PDF and Word documents."""

from __future__ import annotations

import itertools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hornbeam.corpus.extracted import Extracted, UnusableFile
from hornbeam.settings import CorpusSettings

# PDFium writes U+0002 or U+FFFE for a hyphen at a line end, instead of the line end.
_LINE_END = re.compile(r"\r\n|[\r\n]|(?<=[\x02\ufffe])")
_HYPHENATED = re.compile(r"[\x02\ufffe]$|(?<=[a-zà-öø-ÿа-яё])[-\u00ad\u2010]$")
_CJK = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
_NEW_ITEM = re.compile(r"(?:[-*•·–▪●]\s|\(?\d{1,3}[.)]\s|\.\d|\(?[a-z][.)]\s|#)")
#: A line of at least this share of the page's long lines is full: its paragraph goes on in the next.
_FULL_LINE = 0.75
#: Shorter lines are those of receipts, forms and tables.
_SHORTEST_FULL_LINE = 35
#: Share of letters below which a line is a row of a table or a rule, not prose.
_PROSE = 0.7
#: Titles in metadata that programs put there.
_NO_TITLE = re.compile(
    r"\(?(?:anonymous|untitled.*|unknown|title|microsoft word - .*)\)?"
    r"|.*\.(?:docx?|odt|tex|dvi|pdf|indd|rtf|html?)",
    re.IGNORECASE,
)


def read_pdf(path: Path, settings: CorpusSettings) -> Iterator[Extracted]:
    """The text layer, page by page; the title is that of the metadata, if it has one.

    Lines that the page's width broke are joined. Raises UnusableFile: encrypted, damaged, without text, of
    more than `settings.max_pages` pages.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        reason = str(error)
        if "password" in reason.lower() or "security" in reason.lower():
            raise UnusableFile("encrypted PDF") from error
        raise UnusableFile(f"damaged PDF (PDFium: {reason})") from error
    try:
        if len(document) > settings.max_pages:
            raise UnusableFile(
                f"PDF of {len(document)} pages; the maximum is {settings.max_pages} (corpus.max_pages)"
            )
        pages, damaged = [], 0
        for number in range(len(document)):
            try:
                pages.append(_page_text(document, number))
            except pypdfium2.PdfiumError:
                damaged += 1
        title = document.get_metadata_value("Title")
    finally:
        document.close()
    text = "\n\n".join(page for page in pages if page.strip())
    if not text:
        raise UnusableFile(
            "damaged PDF (no page can be loaded)" if damaged and not pages else "PDF holds no text (scanned?)"
        )
    yield Extracted(text, "" if _NO_TITLE.fullmatch(title.strip()) else title)


def _page_text(document: Any, number: int) -> str:
    page = document[number]
    try:
        text_page = page.get_textpage()
        try:
            return _join_lines(text_page.get_text_bounded())
        finally:
            text_page.close()
    finally:
        page.close()


def _join_lines(text: str) -> str:
    """Undo the line breaks within paragraphs, so that names and sentences are not cut in two."""
    lines = [line.strip() for line in _LINE_END.split(text)]
    lengths = sorted(len(line) for line in lines if line)
    if not lengths:
        return ""
    full = max(_SHORTEST_FULL_LINE, _FULL_LINE * lengths[int(0.9 * (len(lengths) - 1))])
    joined = lines[:1]
    for before, line in itertools.pairwise(lines):
        if line[:1].islower() and _HYPHENATED.search(before):
            joined[-1] = _HYPHENATED.sub("", joined[-1]) + line
        elif len(before) >= full and _is_prose(before) and _is_prose(line) and not _new_row(before, line):
            unspaced = _CJK.match(before[-1]) and _CJK.match(line)
            joined[-1] += line if unspaced else f" {line}"
        else:
            joined.append(line)
    return "\n".join(joined)


def _new_row(before: str, line: str) -> bool:
    """Whether `line` begins an item of a list, or a row of a table after one that ends in a number."""
    return _NEW_ITEM.match(line) is not None or (before[-1].isdigit() and not line[0].islower())


def _is_prose(line: str) -> bool:
    letters = sum(character.isalpha() or character.isspace() for character in line)
    return bool(line) and letters >= _PROSE * len(line)


def read_docx(path: Path, settings: CorpusSettings) -> Iterator[Extracted]:
    """Paragraphs, headings as Markdown headings ("## Methods"), tables row by row ("a | b").

    Raises UnusableFile for a file that is no Word document or unpacks to more than `settings.max_file_mib`.
    """
    import docx
    import docx.opc.exceptions
    import lxml.etree

    limit = settings.max_file_mib * 2**20
    try:
        with zipfile.ZipFile(path) as archive:
            largest = max(
                (entry.file_size for entry in archive.infolist() if entry.filename.endswith(".xml")),
                default=0,
            )
        if largest > limit:  # a small file can unpack to gigabytes
            raise UnusableFile(f"unpacks to more than {settings.max_file_mib} MiB (corpus.max_file_mib)")
        document = docx.Document(str(path))
    except zipfile.BadZipFile as error:
        with path.open("rb") as file:
            encrypted = file.read(4) == b"\xd0\xcf\x11\xe0"
        raise UnusableFile(
            "encrypted or old Word document" if encrypted else f"damaged Word document ({error})"
        ) from error
    except (docx.opc.exceptions.OpcError, lxml.etree.XMLSyntaxError, KeyError, ValueError) as error:
        raise UnusableFile(f"damaged Word document (python-docx: {error})") from error
    lines: list[str] = []
    _add_blocks(document.element.body, document, lines)
    yield Extracted("\n".join(lines), document.core_properties.title or "")


def _add_blocks(container: Any, document: Any, lines: list[str]) -> None:
    """The text of all paragraphs and tables below an XML element, as lines.

    Not by python-docx's own properties: they leave out content controls, formulas and text boxes.
    """
    from docx.oxml.ns import qn
    from docx.table import Table
    from docx.text.paragraph import Paragraph

    for block in container:
        if block.tag == qn("w:p"):
            lines += _paragraph_lines(Paragraph(block, document))
        elif block.tag == qn("w:tbl"):
            lines += ["", *_table_rows(Table(block, document)), ""]
        elif block.tag in (qn("w:sdt"), qn("w:sdtContent"), qn("w:ins"), qn("w:customXml"), qn("w:smartTag")):
            _add_blocks(block, document, lines)


def _paragraph_lines(paragraph: Any) -> list[str]:
    text = _element_text(paragraph._p)
    style = (paragraph.style.name or "") if paragraph.style is not None else ""
    heading = re.fullmatch(r"Heading (\d)|Title", style)
    if heading and text:
        return ["", "#" * min(6, int(heading[1] or 1)) + " " + " ".join(text.split()), ""]
    if style.startswith("List") and text:
        return [f"- {text}"]
    return ["", text]


def _element_text(element: Any) -> str:
    from docx.oxml.ns import qn

    white = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:p"): "\n"}
    # The same text box once more, for old readers; text that was moved elsewhere, with changes tracked; tab
    # stops, which are no tabs.
    unwanted = {
        "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
        qn("w:moveFrom"),
        qn("w:pPr"),
    }
    math_text = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
    parts: list[str] = []
    pending = [element]
    while pending:
        node = pending.pop()
        if node.tag in unwanted:
            continue
        if node.tag in (qn("w:t"), math_text):
            parts.append(node.text or "")
        elif node.tag in white and node is not element:
            parts.append(white[node.tag])
        pending += reversed(node)
    return "".join(parts).strip()


def _table_rows(table: Any) -> Iterator[str]:
    for row in table.rows:
        cells, seen = [], set()
        for cell in row.cells:
            if cell._tc not in seen:  # a merged cell comes once for every column that it spans
                seen.add(cell._tc)
                cells.append(" ".join(_element_text(cell._tc).split()))
        if any(cells):
            yield " | ".join(cells)
