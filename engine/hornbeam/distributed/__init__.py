"""Reading, chunking and extraction on many machines, by Ray.

The process that builds stays the one writer of ledger and segments. Files go out as names and come back as
documents with their chunks, by a Ray Data pipeline of tasks without a state. Chunks go out in batches to a
pool of actors, each with a model of its own, and come back as results.

Why the pool is ours and not a stage of the Ray Data pipeline, nor Ray's vLLM integration:

- Which chunks are to be asked about is known where the ledger is, while documents arrive. A Ray Data pipeline
  takes all of its input at its start: chunks found meanwhile would need another execution, and each execution
  loads its models anew. A source that asks this process for more could not be read again after a failure,
  which is how Ray Data makes up for what a dead worker had.
- A chunk is several calls, each written from the answers before it; `ray.data.llm` answers one prompt a row.
  The calls of many batches share one window here, so that vLLM's batch does not run empty between them.
- `ray[llm]` asks for another vLLM than ours.
- The same class serves vLLM on a GPU, servers behind URLs and the CPU, and is tested without any of them.
"""
