"""What a format reader hands over: extracted texts, rejected records, or why a file is unusable."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extracted:
    """The text of one document, not normalised yet."""

    text: str
    title: str = ""  # empty: the format has none; the first line or the file name will do
    record: str = ""  # "3", "3.2": which record of the file, 1-based; empty: the whole file
    title_in_text: bool = False  # put the title before the text if the text does not begin with it


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """One record of a file that could not be read; the others go on."""

    record: str
    reason: str


class UnusableFile(Exception):
    """The file as a whole holds no text that can be read; the message is the reason."""
