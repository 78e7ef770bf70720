"""Whatever happens to the documents, an index that follows them holds what one built from scratch holds.

The graph is a function of the documents with their chunks and results (`graph_inputs`), so it is these that
many sequences are compared by; a few go through whole builds. HORNBEAM_TEST_SEQUENCES=1000 tries a thousand.
"""

import os
import random
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hornbeam.corpus import Chunker, ShownSources, canonical, read_changed, roots_of
from hornbeam.llm.embedded import embedded_model_directory
from hornbeam.llm.tokenizer import DirectoryTokenizer
from hornbeam.pipeline.forgetting import forget_named, forget_vanished
from hornbeam.pipeline.graph_inputs import graph_inputs
from hornbeam.pipeline.reading import Reader
from hornbeam.pipeline.recipe import Recipe
from hornbeam.pipeline.scope import remembered_roots, update_scope
from hornbeam.progress import Progress
from hornbeam.resolve.staging import DocumentInput
from hornbeam.settings import CorpusSettings, ExtractSettings
from hornbeam.stopping import StopRequest
from hornbeam.store.ledger import Ledger
from hornbeam.store.versions import open_current
from support.building import GRAPH_TABLES, build, delete, table_bytes, update

SEQUENCES = int(os.environ.get("HORNBEAM_TEST_SEQUENCES", "40"))

NAMES = ["a.txt", "b.md", "c/d.txt", "c/e.txt", "f.jsonl"]
SENTENCES = [
    "Marie Curie met Pierre Curie in Paris.",
    "Grace Hopper served in the Navy.",
    "Lise Meitner lived in Vienna.",
    "北京大学位于海淀区。",
    "Ada wrote notes.",
]
RECIPE = Recipe("chunking", "extraction")
TEXTS = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4).map("\n\n".join)
#: (what is done, to which file, with which text or other file)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "remove", "rename", "forget", "update"]),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        TEXTS,
    ),
    min_size=1,
    max_size=8,
)


class Follower:
    """A folder and the index that follows it, without a model."""

    def __init__(self, folder: Path) -> None:
        self.corpus, self.index = folder / "corpus", folder / "index"
        self.corpus.mkdir()
        (self.corpus / "stays.txt").write_text("Emmy Noether taught in Göttingen.", "utf-8")
        self._tokenizer = DirectoryTokenizer(embedded_model_directory())
        self.forgotten: set[tuple[str, str]] = set()  # (file, its text) that `delete` took out
        self.take_in(self.index)

    def take_in(self, index: Path) -> None:
        """As `index` does."""
        roots = roots_of([self.corpus])
        with Ledger(index, create=True) as ledger:
            ledger.places.add_roots((root.place, root.pattern, root.given) for root in roots)
            reader = self._reader(ledger, skip_deleted=False)
            paths = [path for root in roots for path in root.expand()]
            reader.read(read_changed(paths, CorpusSettings(), reader.known_digest))

    def update(self) -> None:
        with Ledger(self.index, create=False) as ledger:
            scope = update_scope(ledger, [])
            reader = self._reader(ledger, skip_deleted=True)
            reader.read(read_changed(scope.paths, CorpusSettings(), reader.known_digest))
            forget_vanished(reader, scope, allow_empty=True)
            said = reader.report
            parts = (said.indexed, said.unchanged, said.duplicates, said.excluded, said.moved)
            assert said.seen == sum(parts) + len(said.rejected)

    def forget(self, file: Path) -> None:
        with Ledger(self.index, create=False) as ledger:
            held = [source for source, *_ in ledger.sources() if source.startswith(canonical(str(file)))]
            if held:
                forget_named(ledger, [str(file)], allow_empty=True)

    def inputs(self, index: Path) -> list[DocumentInput]:
        with Ledger(index, create=False) as ledger:
            return list(graph_inputs(ledger, RECIPE, ExtractSettings().verify_threshold))

    def _reader(self, ledger: Ledger, *, skip_deleted: bool) -> Reader:
        return Reader(
            ledger,
            ledger.runs.start(),
            Chunker(self._tokenizer, 32, 4),
            RECIPE.chunking,
            "reading",
            Progress(quiet=True),
            ShownSources(remembered_roots(ledger)),
            StopRequest(),
            skip_deleted,
        )


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        text = "\n".join(f'{{"text": "{line}"}}' for line in text.split("\n\n"))
    path.write_text(text, "utf-8")


def change_files(corpus: Path, step: str, name: str, other: str, text: str) -> None:
    file = corpus / name
    if step == "write":
        write(file, text)
    elif step == "remove":
        file.unlink(missing_ok=True)
    elif step == "rename" and file.exists() and file.suffix == (corpus / other).suffix:
        (corpus / other).parent.mkdir(exist_ok=True)
        file.rename(corpus / other)


def follow(folder: Path, steps: list[tuple[str, str, str, str]]) -> tuple[Follower, Path]:
    """Take all steps, then an update; the follower, and an index from scratch of what is there now."""
    follower = Follower(folder)
    for step, name, other, text in steps:
        if step == "update":
            follower.update()
        elif step == "forget":
            # Deleted from the index and, as a user would who means it, from the folder.
            follower.forget(follower.corpus / name)
            (follower.corpus / name).unlink(missing_ok=True)
        else:
            change_files(follower.corpus, step, name, other, text)
    follower.update()
    scratch = folder / "scratch"
    follower.take_in(scratch)
    return follower, scratch


@given(steps=STEPS)
@settings(max_examples=SEQUENCES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_ledger_that_follows_equals_one_from_scratch(steps: list[tuple[str, str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        follower, scratch = follow(Path(name), _without_returns(steps))
        assert follower.inputs(follower.index) == follower.inputs(scratch)


def _without_returns(steps: list[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    """A text that was forgotten at a place stays out of it on purpose; such steps are tested on their own."""
    forgotten: set[str] = set()
    kept = []
    for step, name, other, text in steps:
        if step == "forget":
            forgotten.add(name)
        elif step in ("write", "rename") and (name in forgotten or other in forgotten):
            continue
        kept.append((step, name, other, text))
    return kept


def test_whole_builds_that_follow_equal_those_from_scratch() -> None:
    chance = random.Random(3)
    for _ in range(max(1, SEQUENCES // 40)):
        with tempfile.TemporaryDirectory() as name:
            _compare_whole_builds(Path(name), chance)


def _compare_whole_builds(folder: Path, chance: random.Random) -> None:
    """index(A ∪ B), an update, delete(B): as index(A), table by table."""
    corpus, index = folder / "corpus", folder / "index"

    def pick() -> str:
        return "\n\n".join(chance.sample(SENTENCES, 2))

    for name in NAMES:
        write(corpus / name, pick())
    build(index, [corpus])
    write(corpus / "new.txt", pick())
    write(corpus / "a.txt", pick())
    (corpus / "c" / "d.txt").rename(corpus / "c" / "moved.txt")
    update(index)
    doomed = chance.sample(["a.txt", "c/moved.txt", "f.jsonl"], 2)
    full = delete(index, [str(corpus / name) for name in doomed], full=True)
    carried = table_bytes(index, full.version, ("documents", "chunks", *GRAPH_TABLES))
    for name in doomed:
        (corpus / name).unlink()
    scratch = build(folder / "scratch", [corpus])
    assert full.version == scratch.version == open_current(index).version_id
    assert carried == table_bytes(folder / "scratch", scratch.version, ("documents", "chunks", *GRAPH_TABLES))
