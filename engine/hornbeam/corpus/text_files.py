"""Plain text, Markdown, HTML and XML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hornbeam.corpus.encoding import decode
from hornbeam.corpus.extracted import Extracted, UnusableFile

# Quantifiers are bounded, possessive or cannot overlap: a file that makes one of these quadratic would hang
# the run.
_HEADING = re.compile(r"^#{1,6}[ \t]++(\S[^\n]*+)|^(\S[^\n]{0,200})\n={3,}[ \t]*+$", re.MULTILINE)
#: YAML between --- lines: metadata for a site generator
_FRONT_MATTER = re.compile(r"\A---[ \t]*+\n(.{0,20000}?)\n(?:---|\.\.\.)[ \t]*+(?:\n|\Z)", re.DOTALL)
_FRONT_MATTER_TITLE = re.compile(r"^title:([^\n]*+)", re.MULTILINE)
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_MARKUP = re.compile(
    r"""
    (?P<code>`[^`\n]{1,500}`)
  | !?\[(?P<text>[^\[\]\n]{0,500})\]\([^()\s]{1,2000}(?:\s{1,3}"[^"\n]{0,300}")?\)
  | (?P<break><br\s{0,3}/?>)
  | </?(?:a|abbr|b|big|blockquote|center|code|dd|del|details|div|dl|dt|em|figcaption|figure|font|h[1-6]|hr|i
      |iframe|img|ins|kbd|li|mark|ol|p|picture|pre|q|s|samp|section|small|source|span|strike|strong|sub|summary
      |sup|table|tbody|td|tfoot|th|thead|tr|u|ul|video)(?:\s[^<>]{0,2000})?/?>
    """,
    re.VERBOSE | re.IGNORECASE,
)


def read_text(path: Path) -> Iterator[Extracted]:
    """The file as it is. Raises NotText."""
    yield Extracted(decode(path.read_bytes()).text)


def read_markdown(path: Path) -> Iterator[Extracted]:
    """The source without front matter, comments, HTML tags and the targets of links and images: their
    words stay, and code stays as it is. The title is that of the front matter, or the first heading.

    Raises NotText.
    """
    text = decode(path.read_bytes()).text.replace("\r\n", "\n")
    title = ""
    if front_matter := _FRONT_MATTER.match(text):
        text = text[front_matter.end() :]
        if named := _FRONT_MATTER_TITLE.search(front_matter[1]):
            title = named[1].strip().strip("\"'")
    parts: list[str] = []
    for code, part in _code_and_prose(text):
        if not code:
            part = _without_comments(part)
            part = _MARKUP.sub(_words_of, _MARKUP.sub(_words_of, part))  # twice: an image within a link
            if not title and (heading := _HEADING.search(part)):
                title = (heading[1] or heading[2]).rstrip("# \t")
        parts.append(part)
    yield Extracted("".join(parts), title)


def _code_and_prose(text: str) -> Iterator[tuple[bool, str]]:
    """(is code, text) of the parts in and between fenced code blocks; an unclosed one ends with the text."""
    part: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            part.append(line)
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                yield True, "".join(part)
                part, fence = [], ""
        elif mark:
            yield False, "".join(part)
            part, fence = [line], mark[1]
        else:
            part.append(line)
    yield bool(fence), "".join(part)


def _without_comments(text: str) -> str:
    kept, position = [], 0
    while (start := text.find("<!--", position)) >= 0 and (end := text.find("-->", start)) >= 0:
        kept.append(text[position:start])
        position = end + 3
    return "".join([*kept, text[position:]])


def _words_of(markup: re.Match[str]) -> str:
    if markup["code"] is not None:
        return markup[0]
    return " " if markup["break"] else markup["text"] or ""


_HTML_WITHIN = re.compile(r"</?[a-zA-Z][a-zA-Z0-9]{0,9}(?:\s[^<>]{0,2000})?/?>")
# Elements that hold no text of the page, for the fallback.
_NO_TEXT = ("script", "style", "noscript", "template", "svg", "head", "iframe", "select", "button")
_BLOCKS = frozenset(
    """address article aside blockquote body br caption dd details div dl dt figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hr legend li main nav ol option p pre section summary table td th title
    tr ul
    """.split()  # noqa: SIM905
)


def read_html(path: Path) -> Iterator[Extracted]:
    """The main text of the page, all of its body when there is no main text; the title is <title>.

    Raises NotText, UnusableFile; trafilatura and lxml may raise on what they cannot parse.
    """
    markup = decode(path.read_bytes()).text.replace("\x00", "")
    if not markup.strip():
        raise UnusableFile("empty")
    import trafilatura

    page = _parse_html(markup)
    title = " ".join(page.findtext(".//title", default="").split())
    text = trafilatura.extract(page, include_comments=False, include_tables=True, favor_recall=True)
    # Parsed again, since trafilatura takes the tree apart.
    yield Extracted(text or _body_text(_parse_html(markup)), title)


def _parse_html(markup: str) -> Any:
    import lxml.html

    # As UTF-8 bytes with the encoding given to the parser: lxml refuses a str with an XML declaration.
    # huge_tree: without it, text above 10 MB would be cut off without an error.
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, huge_tree=True)
    return lxml.html.document_fromstring(markup.encode("utf-8", "replace"), parser=parser)


def _body_text(page: Any) -> str:
    """All text of the page's body, a line for each block element."""
    for element in page.xpath("|".join(f"//{tag}" for tag in _NO_TEXT)):
        element.drop_tree()
    return _lines_of_text(page, lambda tag: tag in _BLOCKS)


def read_xml(path: Path) -> Iterator[Extracted]:
    """The text of the elements, a line for each; HTML within it (as in feeds) loses its tags.

    Raises NotText; a file that lxml cannot parse at all, UnusableFile.
    """
    import lxml.etree
    import lxml.html

    markup = decode(path.read_bytes()).text
    # Entities and external files stay unresolved: a feed must not read /etc/passwd or grow to gigabytes. With
    # that, huge_tree is safe; without it, text above 10 MB would be cut off without an error.
    parser = lxml.etree.XMLParser(
        encoding="utf-8",
        recover=True,
        resolve_entities=False,
        no_network=True,
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
    )
    root = lxml.etree.fromstring(markup.encode("utf-8", "replace"), parser)
    if root is None:
        raise UnusableFile("not valid XML")
    for element in root.iter(lxml.etree.Element):
        if element.text and _HTML_WITHIN.search(element.text):
            element.text = _body_text(lxml.html.fromstring(f"<div>{element.text}</div>"))
    title = root.find(".//{*}title")
    yield Extracted(_lines_of_text(root, lambda _: True), "" if title is None else title.text or "")


def _lines_of_text(root: Any, is_block: Callable[[str], bool]) -> str:
    """By iteration, not recursion: pages nested thousands deep exist."""
    import lxml.etree

    lines: list[list[str]] = [[]]
    for event, element in lxml.etree.iterwalk(root, events=("start", "end")):
        if not isinstance(element.tag, str):  # an entity that was not resolved
            if event == "end":
                lines[-1].append(element.tail or "")
            continue
        if is_block(element.tag):
            lines.append([])
        lines[-1].append((element.text if event == "start" else element.tail) or "")
    texts = (" ".join(line.split()) for parts in lines for line in "".join(parts).split("\n\n"))
    return "\n".join(text for text in texts if text)
