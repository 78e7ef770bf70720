"""Names and summaries of communities: written by the model under a grammar, kept by what they depend on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import chain, islice
from typing import TYPE_CHECKING

from hornbeam.corpus import detect_language
from hornbeam.llm.batch import run_batches
from hornbeam.llm.protocol import Completion, LanguageModel, Request, Usage
from hornbeam.organise.communities import CommunityNode, GraphArrays, Hierarchy
from hornbeam.organise.leaf_relations import LeafRelations
from hornbeam.organise.prompts import (
    FREE_GRAMMAR,
    TASK,
    VERSION,
    facts_that_fit,
    grounded_grammar,
    naming_prompt,
    read_naming,
)
from hornbeam.prompts import Prompts, shipped_prompts
from hornbeam.records import content_id
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import OrganiseSettings
from hornbeam.stopping import StopRequest
from hornbeam.store.ledger import Ledger

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STAGE = "summaries"  # in the ledger's usage

_FACT_TOKENS = 360
_WINDOW = 64
#: Prompts in memory at once.
_COMMUNITIES_AT_ONCE = 1024
#: A second try at the same temperature would say the same.
_RETRY_TEMPERATURE = 0.7


class Unnamed(StrEnum):
    """Why a community bears its keywords as a name."""

    CUT = "summary_cut"  # the answer was cut short at every try
    MODEL_ERROR = "model_error"  # the last try failed; another build may do better


@dataclass(slots=True)
class Names:
    """Name and summary by community id."""

    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    unnamed: dict[str, Unnamed] = field(default_factory=dict)  # these fell back to their keywords
    reused: int = 0


@dataclass(frozen=True, slots=True)
class _Task:
    prompt: str
    grammar: str


class CommunityNamer:
    """Names a hierarchy level by level, so that an upper community is told by its children's names.

    Args:
        run: the ledger's run that the calls are counted for.
        grounded: names and summaries are made of the words of their facts, by grammar.
        kept: name and summary of communities that nothing has changed, by id: neither asked nor looked up.
        on_named: told how many more communities have a name.
        stop: looked at before every request; what is in flight is kept first.
        prompts: chosen by the language of a community's facts; None: the shipped ones.
    """

    def __init__(
        self,
        graph: GraphArrays,
        schema: GraphSchema,
        model: LanguageModel,
        ledger: Ledger,
        settings: OrganiseSettings,
        *,
        run: int,
        grounded: bool = True,
        kept: Mapping[str, tuple[str, str]] | None = None,
        on_named: Callable[[int], None] = lambda named: None,
        stop: StopRequest | None = None,
        prompts: Prompts | None = None,
    ) -> None:
        self._graph = graph
        self._relation_names = [relation.name.replace("_", " ") for relation in schema.relation_types]
        self._model = model
        self._ledger = ledger
        self._settings = settings
        self._run = run
        self._grounded = grounded
        self._kept = kept or {}
        self._on_named = on_named
        self._stop = stop or StopRequest()
        self._prompts = prompts or shipped_prompts()
        self._names = Names()

    def name(self, hierarchy: Hierarchy) -> Names:
        children: dict[str, list[CommunityNode]] = {}
        for node in hierarchy.nodes:
            if node.parent_id is not None:
                children.setdefault(node.parent_id, []).append(node)
        leaves = LeafRelations(self._graph, [node for node in hierarchy.nodes if node.level == 0])
        for level in range(hierarchy.levels):
            nodes = iter([node for node in hierarchy.nodes if node.level == level])
            while some := list(islice(nodes, _COMMUNITIES_AT_ONCE)):
                tasks: dict[str, _Task] = {}
                for node in some:
                    if node.community_id in self._kept:
                        self._names.texts[node.community_id] = self._kept[node.community_id]
                        self._names.reused += 1
                        continue
                    if len(node.members) == 1:
                        self._take_entity(node)
                        continue
                    facts: Iterable[str]
                    if level == 0:
                        facts = chain(self._relations(leaves.of(node)), self._descriptions(node))
                    else:
                        facts = (self._told(child) for child in children[node.community_id])
                    tasks[node.community_id] = self._task(facts)
                self._write(tasks)
                for node in some:
                    if node.community_id in self._names.unnamed:
                        keywords = ", ".join(self._graph.entity_names[row] for row in node.keywords)
                        self._names.texts[node.community_id] = (keywords, "")
                self._on_named(len(some))
        return self._names

    def _task(self, facts: Iterable[str]) -> _Task:
        shown = facts_that_fit(self._model, facts, _FACT_TOKENS)
        language = self._prompts.language_of(detect_language("\n".join(shown)))
        grammar = grounded_grammar(shown, language) if self._grounded else None
        text = self._prompts.text(TASK, language)
        return _Task(naming_prompt(self._model, text, shown), grammar or FREE_GRAMMAR)

    def _write(self, tasks: dict[str, _Task]) -> None:
        """Fill in what the ledger has, ask for the rest, try again what was cut short."""
        identity = self._model.identity.fingerprint
        communities: dict[str, list[str]] = {}  # by key: equal tasks are asked once
        for community, task in tasks.items():
            budget = str(self._settings.summary_tokens)
            key = content_id("s", VERSION, identity, budget, task.prompt, task.grammar)
            communities.setdefault(key, []).append(community)
        for key, payload in self._ledger.get_many("summary", communities).items():
            name, summary = json.loads(payload)
            self._take(communities.pop(key), (name, summary))
            self._names.reused += 1
        failed: dict[str, Unnamed] = {}
        temperature = 0.0
        for _ in range(1 + self._settings.summary_retries):
            asked = {key: tasks[same[0]] for key, same in communities.items()}
            for batch in run_batches(self._model, self._requests(asked, temperature), _WINDOW):
                for key, named in self._keep(batch):
                    if isinstance(named, Unnamed):
                        failed[key] = named
                    else:
                        self._take(communities.pop(key), named)
            self._stop.check()
            temperature = _RETRY_TEMPERATURE
        for key, same in communities.items():
            self._names.unnamed.update(dict.fromkeys(same, failed[key]))

    def _requests(self, tasks: dict[str, _Task], temperature: float) -> Iterator[Request]:
        for key, task in tasks.items():
            if self._stop.requested:
                return
            yield Request(
                key,
                task.prompt,
                self._settings.summary_tokens,
                grammar=task.grammar,
                temperature=temperature,
            )

    def _keep(self, batch: Sequence[Completion]) -> list[tuple[str, tuple[str, str] | Unnamed]]:
        """Make what a poll brought durable, with what it cost."""
        kept: list[tuple[str, tuple[str, str] | Unnamed]] = []
        with self._ledger.transaction():
            for completion in batch:
                named = read_naming(completion.text)
                if named is not None:
                    payload = json.dumps(named, ensure_ascii=False).encode()
                    self._ledger.put("summary", completion.request_id, payload)
                cause = Unnamed.MODEL_ERROR if completion.finish_reason == "error" else Unnamed.CUT
                kept.append((completion.request_id, named or cause))
            usage = sum((completion.usage for completion in batch), Usage())
            self._ledger.runs.add_usage(self._run, STAGE, calls=len(batch), **asdict(usage))
        self._ledger.seal()
        return kept

    def _take(self, communities: Sequence[str], named: tuple[str, str]) -> None:
        for community in communities:
            self._names.texts[community] = named

    def _take_entity(self, node: CommunityNode) -> None:
        """A community of one is its entity; there is nothing to ask."""
        row = node.members[0]
        self._names.texts[node.community_id] = (
            self._graph.entity_names[row],
            self._graph.entity_descriptions[row],
        )

    def _told(self, node: CommunityNode) -> str:
        name, summary = self._names.texts[node.community_id]
        return f"{name}: {summary}" if summary else name

    def _descriptions(self, node: CommunityNode) -> Iterator[str]:
        """For communities with few relations of their own."""
        for row in dict.fromkeys([node.centre, *node.keywords, *node.members]):
            yield f"{self._graph.entity_names[row]}: {self._graph.entity_descriptions[row]}"

    def _relations(self, edges: NDArray[np.int64]) -> Iterator[str]:
        graph = self._graph
        for edge in edges.tolist():
            head, tail = graph.entity_names[graph.heads[edge]], graph.entity_names[graph.tails[edge]]
            yield f"{head}: {self._relation_names[graph.relations[edge]]}: {tail}"
