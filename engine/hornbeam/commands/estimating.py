"""`hornbeam index --dry-run`: what the build would cost."""

from __future__ import annotations

from collections.abc import Sequence

from hornbeam.commands.options import quiet_libraries
from hornbeam.printing import print_json, say
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import Settings


def run_estimate(
    paths: Sequence[str], settings: Settings, schema: GraphSchema, sample: int, *, as_json: bool, quiet: bool
) -> None:
    quiet_libraries()
    from hornbeam.corpus import Chunker
    from hornbeam.extract.tiers import chunk_extractor
    from hornbeam.opening import open_build_model, open_embedder
    from hornbeam.pipeline.estimating import estimate, lines
    from hornbeam.progress import Progress

    model = open_build_model(settings)
    try:
        extractor = chunk_extractor(model, schema, settings.extract, open_embedder(settings))
        extractor.check_room(settings.chunk.max_tokens)
        chunker = Chunker(model.tokenizer, settings.chunk.max_tokens, settings.chunk.overlap_tokens)
        with Progress(quiet=quiet) as progress:
            found = estimate(paths, extractor, chunker, settings.corpus, settings.cost, progress, sample)
    finally:
        model.close()
    if as_json:
        print_json(found)
    else:
        say("\n".join(lines(found)))
