"""Whether anything in the index has to do with a question at all.

    relevance = the greatest of: nearest chunk's cosine, best triple's score, BM25_PART · best BM25 score,
                1 if an entity is named in full, letter by letter, by a name with a capital or without case

Measured with all-MiniLM-L6-v2 on 1,890 passages of MuSiQue (bench/RESULTS.md): below .38 lie none of the
questions that the passages answer, 95 in 100 texts without sense, and of questions about other things from a
fifth (other questions on the same encyclopaedia) to 93 in 100 (medicine). A name in any letters does not
count: "company" is an entity there, and most questions about other things have such a word. Another embedder
has another scale: see `retrieve.floor`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hornbeam.retrieve.query import AS_WRITTEN, Candidate

#: Brings BM25 scores to the scale of cosines: .25, which half of the questions reach, to .5.
BM25_PART = 2.0
#: A name match of at least this stands whole in the question, and is no word that many names have.
WHOLE_NAME = 0.75


def relevance(ranked: Mapping[str, Sequence[Candidate]]) -> float:
    """In [0, 1]; of the routes that ran."""
    strengths = [0.0]
    for route, part in (("chunk_dense", 1.0), ("triple", 1.0), ("chunk_bm25", BM25_PART)):
        strengths += [part * candidate.score for candidate in ranked.get(route, ())[:1]]
    if any(one.detail == AS_WRITTEN and one.score >= WHOLE_NAME for one in ranked.get("entity", ())):
        strengths.append(1.0)
    return min(1.0, max(strengths))
