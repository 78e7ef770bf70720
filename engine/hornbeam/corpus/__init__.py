"""Documents in: reading, normalising and chunking. `read_corpus` and `Chunker` are what the rest uses."""

from hornbeam.corpus.chunker import Chunker, CutDocument
from hornbeam.corpus.normalise import detect_language, normalise
from hornbeam.corpus.readers import SeenFile, read_changed, read_corpus
from hornbeam.corpus.roots import Root, ShownSources, canonical, is_below, roots_of

__all__ = [
    "Chunker",
    "CutDocument",
    "Root",
    "SeenFile",
    "ShownSources",
    "canonical",
    "detect_language",
    "is_below",
    "normalise",
    "read_changed",
    "read_corpus",
    "roots_of",
]
