"""Hornbeam: a GraphRAG indexing engine with a streaming query loop.

Importing this package is cheap on purpose (no torch, vLLM, FAISS or Arrow): heavy libraries are
imported by the functions that use them.
"""

__version__ = "0.1.0"
