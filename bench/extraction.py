"""Throughput of two-stage extraction with the model in use: chunks a minute, tokens a chunk, cache, grammars.

    hornbeam bench extraction [PATH] --limit 100 [--schema general] [--json]
    hornbeam bench extraction [PATH] --host --recording FILE [--profile] [--json]

PATH is anything that `hornbeam index` reads; by default the demo corpus. The same prompts are then completed
without a grammar, to at most the same number of tokens each, in the same process, from an equally cold prefix
cache: the ratio is what the constraint costs, grammars made and compiled on the same cores included.

With --host the model's answers are taken from a recording, which is made first where the file is not there
yet: chunks a second of all that is not the model, on one core.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from host_work import host_report

from hornbeam.corpus import Chunker, read_corpus
from hornbeam.errors import UsageError
from hornbeam.extract.result import ChunkExtraction, StageUsage
from hornbeam.extract.room import ItemLimits
from hornbeam.extract.stages import Extractor
from hornbeam.grammar.entities import entity_grammar
from hornbeam.grammar.relations import NamedEntity, relation_grammar
from hornbeam.grammar.spans import SpanLexicon
from hornbeam.llm.batch import run_requests
from hornbeam.llm.opening import open_model
from hornbeam.llm.protocol import Request
from hornbeam.llm.vllm_engine import VllmModel
from hornbeam.records import Document
from hornbeam.schema import GraphSchema, load_schema
from hornbeam.settings import Settings, load_settings

_DEMO = Path(__file__).parent.parent / "examples" / "corpus"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="hornbeam bench extraction",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", nargs="?", type=Path, metavar="PATH")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--schema", default="general")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--host", action="store_true", help="measure all but the model, over all of PATH")
    parser.add_argument("--recording", type=Path, metavar="FILE", help="the model's answers, for --host")
    parser.add_argument("--profile", action="store_true", help="with --host: where the time goes")
    options = parser.parse_args(arguments)
    if options.host and options.recording is None:
        parser.error("--host needs --recording FILE: where the model's answers are, or are to be written")
    path = options.path or _DEMO
    if not path.exists():
        raise UsageError(f"{path} does not exist: name a PATH (the demo corpus is in the checkout alone)")
    settings, schema = load_settings(), load_schema(options.schema)
    if options.host:
        report = host_report(path, options.recording, settings, schema, profile=options.profile)
        print(json.dumps(report, indent=2) if options.json else _as_text(report))
        return
    model = open_model(settings)
    if not isinstance(model, VllmModel):
        raise UsageError("this benchmark needs a model directory: a server's prefix cache cannot be emptied")
    texts = _chunk_texts(path, options.limit, settings, model)
    report = measure(texts, settings, schema, model)
    model.close()
    print(json.dumps(report, indent=2) if options.json else _as_text(report))


def measure(texts: list[str], settings: Settings, schema: GraphSchema, model: VllmModel) -> dict[str, object]:
    extractor = Extractor(model, schema, settings.extract)
    warm_up = [("warm up", texts[0])]  # starts the engine, fills the prompt's head into the cache
    list(extractor.run(warm_up))
    model.reset_prefix_cache()
    list(extractor.run(warm_up))
    started = time.perf_counter()
    results = dict(extractor.run((str(number), text) for number, text in enumerate(texts)))
    seconds = time.perf_counter() - started
    stages: dict[str, StageUsage] = {}
    for result in results.values():
        for stage, usage in result.usage.items():
            stages[stage] = stages.get(stage, StageUsage()) + usage
    output = sum(usage.output for usage in stages.values())

    # The same prompts and lengths, unconstrained. Stage two's prompts need the entities that were found.
    requests = []
    for number, text in enumerate(texts):
        result = results[str(number)]
        named = [NamedEntity(entity.name, entity.type) for entity in result.entities]
        prompt = extractor.prompts.of(text)
        prompts = {
            "entities": prompt.entities(text),
            "relations": prompt.relations(text, named),
        }
        requests += [
            Request(f"{number} {stage}", prompts[stage], max(1, usage.output), logprobs=True)
            for stage, usage in result.usage.items()
        ]
    model.reset_prefix_cache()
    list(extractor.run(warm_up))
    started = time.perf_counter()
    free = list(run_requests(model, requests, settings.extract.window))
    free_seconds = time.perf_counter() - started
    free_output = sum(completion.usage.output for completion in free)
    return {
        "machine": f"{platform.processor() or platform.machine()}, {_cores()} cores",
        "model": model.identity.name,
        "backend": model.identity.backend,
        "schema": schema.name,
        "chunks": len(texts),
        "seconds": round(seconds, 1),
        "chunks_per_minute": round(60 * len(texts) / seconds, 1),
        "output_tokens_per_second": round(output / seconds, 1),
        "constrained_over_unconstrained": round((output / seconds) / (free_output / free_seconds), 3),
        "per_chunk": {
            stage: {
                name: round(getattr(usage, name) / len(texts), 1)
                for name in ("calls", "prompt", "cached", "output")
            }
            for stage, usage in stages.items()
        },
        "cached_share": {
            stage: round(usage.cached / max(1, usage.prompt), 3) for stage, usage in stages.items()
        },
        "facts_per_chunk": {
            name: round(sum(len(getattr(result, name)) for result in results.values()) / len(texts), 1)
            for name in ("entities", "relations", "attributes")
        },
        "not_done": sum(result.state.value != "done" for result in results.values()),
        "grammar_compile_ms": _compile_times(
            texts, [results[str(n)] for n in range(len(texts))], settings, schema, model
        ),
    }


def _compile_times(
    texts: list[str],
    results: list[ChunkExtraction],
    settings: Settings,
    schema: GraphSchema,
    model: VllmModel,
) -> dict[str, dict[str, float]]:
    """Cold, one thread: what each chunk's own grammars cost the host."""
    import xgrammar
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model.tokenizer.directory)
    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer)
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    spent: dict[str, list[float]] = {"entities": [], "relations": []}
    limits = settings.extract
    item_limits = ItemLimits(schema, model.tokenizer, limits)
    for text, result in list(zip(texts, results, strict=True))[:100]:
        lexicon = SpanLexicon(text, limits.max_name_words)
        named = [NamedEntity(entity.name, entity.type) for entity in result.entities]
        max_relations, max_attributes = item_limits.facts(named)
        grammars = {
            "entities": entity_grammar(
                lexicon, schema, limits.entities_per_clause, item_limits.entities(lexicon)
            ),
            "relations": relation_grammar(
                named,
                lexicon,
                schema,
                relations_per_head=limits.relations_per_head,
                attributes_per_entity=limits.attributes_per_entity,
                max_relations=max_relations,
                max_attributes=max_attributes,
            ),
        }
        for stage, grammar in grammars.items():
            if grammar is not None:
                started = time.perf_counter()
                compiler.compile_grammar(grammar)
                spent[stage].append((time.perf_counter() - started) * 1000)
    return {
        stage: {
            "median": round(statistics.median(times), 1),
            "p95": round(sorted(times)[int(0.95 * (len(times) - 1))], 1),
        }
        for stage, times in spent.items()
        if times
    }


def _chunk_texts(path: Path, limit: int, settings: Settings, model: VllmModel) -> list[str]:
    chunker = Chunker(model.tokenizer, settings.chunk.max_tokens, settings.chunk.overlap_tokens)
    texts: list[str] = []
    for item in read_corpus([path], settings.corpus):
        if isinstance(item, Document):
            texts += [chunk.text for chunk in chunker.chunk(item)]
        if len(texts) >= limit:
            break
    if not texts:
        raise UsageError(f"{path} holds no text")
    return texts[:limit]


def _cores() -> int:
    import psutil

    return psutil.cpu_count(logical=True) or 1


def _as_text(report: dict[str, object]) -> str:
    return "\n".join(f"{name:32} {value}" for name, value in report.items())


if __name__ == "__main__":
    main()
