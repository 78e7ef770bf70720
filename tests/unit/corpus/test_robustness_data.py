"""The readers over robustness/ of the evaluation data: nothing raises, nothing is lost."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from hornbeam.corpus import Chunker, read_corpus
from hornbeam.corpus.encoding import NotText, decode
from hornbeam.records import Document, Rejection
from hornbeam.settings import CorpusSettings

DATA = Path(os.environ.get("HORNBEAM_DATA") or Path(__file__).parents[3] / "../shared/data")
ROBUSTNESS = DATA / "robustness"

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not ROBUSTNESS.is_dir(), reason=f"no evaluation data at {DATA} (set HORNBEAM_DATA)"),
]


class Words:
    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer(r"[^\W_]{1,4}|\S", text)]

    def count(self, text: str) -> int:
        return len(self.offsets(text))


@pytest.fixture(scope="module")
def items() -> list[Document | Rejection]:
    return list(read_corpus([ROBUSTNESS], CorpusSettings()))


def test_every_file_gives_documents_or_a_rejection_with_a_reason(items: list[Document | Rejection]) -> None:
    seen = {(item.source if isinstance(item, Document) else item.path).split("#")[0] for item in items}
    expected = {
        str(file)
        for file in ROBUSTNESS.rglob("*")
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(ROBUSTNESS).parts)
    }
    assert seen == expected
    assert all(item.reason for item in items if isinstance(item, Rejection))
    assert not [item for item in items if isinstance(item, Rejection) and "reader for" in item.reason]


def test_the_known_bad_files_are_rejected_for_what_they_are(items: list[Document | Rejection]) -> None:
    reasons = {Path(item.path).name: item.reason for item in items if isinstance(item, Rejection)}
    assert reasons["libreoffice-writer-password.pdf"] == "encrypted PDF"
    for scanned in (
        "imagemagick-images.pdf",
        "grayscale-image.pdf",
        "MEDRPT-2024-PAT-3847_medical_report_scan.pdf",
    ):
        assert reasons[scanned] == "PDF holds no text (scanned?)"
    assert reasons["random.bin"].startswith("binary file")
    for suffix in ("xls", "xlsx", "pptx", "epub"):
        assert reasons[f"test.{suffix}"].startswith(f"unsupported format: .{suffix}")


def test_every_document_can_be_chunked(items: list[Document | Rejection]) -> None:
    chunker = Chunker(Words(), 120, 16)
    for document in items:
        if isinstance(document, Document):
            chunks = chunker.chunk(document)
            assert chunks
            assert all(document.text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
            assert all(chunk.tokens <= 120 for chunk in chunks)


def test_languages_of_the_multilingual_texts(items: list[Document | Rejection]) -> None:
    languages = {
        Path(item.source).name: item.language
        for item in items
        if isinstance(item, Document) and Path(item.source).parent.name == "multilingual"
    }
    assert languages == {name: name[5:7] if name.startswith("ragu") else "zh" for name in languages}
    assert len(languages) == 7


# A folder's name as a Python codec, where they differ; browsers take the supersets, too.
CODECS = {
    "CP932": "cp932",
    "SHIFT_JIS": "cp932",
    "EUC-KR": "cp949",
    "GB2312": "gb18030",
    "IBM855": "cp855",
    "IBM866": "cp866",
    "MacCyrillic": "mac_cyrillic",
    "TIS-620": "cp874",
}


def test_nearly_all_encodings_are_recognised() -> None:
    right, wrong = 0, []
    for file in sorted((ROBUSTNESS / "encodings").glob("*/*")):
        folder = file.parent.name
        codec = CODECS.get(folder) or re.sub(r"-(?!sig)[a-z]{5,}$", "", folder)
        data = file.read_bytes()
        try:
            same = decode(data).text == data.decode(codec)
        except (NotText, LookupError) as error:  # EUC-TW: Python has no such codec
            wrong.append(f"{folder}/{file.name}: {error}")
            continue
        right += same
        wrong += [] if same else [f"{folder}/{file.name}"]
    assert right / (right + len(wrong)) >= 0.97, wrong


def test_html_articles_hold_the_words_of_the_true_text(tmp_path: Path) -> None:
    truth = json.loads((ROBUSTNESS / "html_articles/ground-truth.json").read_text("utf-8"))
    for page in (ROBUSTNESS / "html_articles/html").glob("*.html.gz"):
        (tmp_path / page.name.removesuffix(".gz")).write_bytes(gzip.decompress(page.read_bytes()))
    found, spurious = [], []
    for document in read_corpus([tmp_path], CorpusSettings()):
        assert isinstance(document, Document)
        true = Counter(re.findall(r"\w+", truth[Path(document.source).stem]["articleBody"].lower()))
        read = Counter(re.findall(r"\w+", document.text.lower()))
        common = (true & read).total()
        found.append(common / true.total())
        spurious.append(1 - common / read.total())
    recall, excess = sum(found) / len(found), sum(spurious) / len(spurious)
    print(
        f"{len(found)} pages: {recall:.1%} of the true words found, {excess:.1%} of the words read are others"
    )
    assert len(found) == len(truth)
    assert recall > 0.95
    assert excess < 0.1
