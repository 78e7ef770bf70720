"""Documents in: reading, normalising and chunking. `read_corpus` and `Chunker` are what the rest uses."""

from hornbeam.corpus.chunker import Chunker
from hornbeam.corpus.normalise import detect_language, normalise
from hornbeam.corpus.readers import read_corpus

__all__ = ["Chunker", "detect_language", "normalise", "read_corpus"]
