"""Names and summaries of communities: written by the model under a grammar, kept by what they depend on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hornbeam.extract.result import StageUsage
from hornbeam.llm.batch import run_requests
from hornbeam.llm.protocol import LanguageModel, Request
from hornbeam.organise.communities import CommunityNode, GraphArrays, Hierarchy
from hornbeam.organise.prompts import GRAMMAR, VERSION, naming_prompt, read_naming
from hornbeam.records import content_id
from hornbeam.schema.model import GraphSchema
from hornbeam.settings import OrganiseSettings
from hornbeam.store.ledger import Ledger

_FACT_TOKENS = 360
_WINDOW = 64
#: A second try at the same temperature would say the same.
_RETRY_TEMPERATURE = 0.7


@dataclass(slots=True)
class Names:
    """Name and summary by community id."""

    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    unnamed: list[str] = field(default_factory=list)  # fell back to keywords
    reused: int = 0
    usage: StageUsage = field(default_factory=StageUsage)


class CommunityNamer:
    """Names a hierarchy level by level, so that an upper community is told by its children's names."""

    def __init__(
        self,
        graph: GraphArrays,
        schema: GraphSchema,
        model: LanguageModel,
        ledger: Ledger,
        settings: OrganiseSettings,
        on_named: Callable[[int], None] = lambda named: None,
    ) -> None:
        self._graph = graph
        self._relation_names = [relation.name.replace("_", " ") for relation in schema.relation_types]
        self._model = model
        self._ledger = ledger
        self._settings = settings
        self._on_named = on_named
        self._names = Names()

    def name(self, hierarchy: Hierarchy) -> Names:
        children: dict[str, list[CommunityNode]] = {}
        for node in hierarchy.nodes:
            if node.parent_id is not None:
                children.setdefault(node.parent_id, []).append(node)
        leaf_facts = self._facts_by_leaf(hierarchy)
        for level in range(hierarchy.levels):
            nodes = [node for node in hierarchy.nodes if node.level == level]
            prompts: dict[str, str] = {}
            for node in nodes:
                if len(node.members) == 1:
                    self._take_entity(node)
                    continue
                if level == 0:
                    facts = leaf_facts.get(node.community_id, []) + self._descriptions(node)
                else:
                    facts = [self._told(child) for child in children[node.community_id]]
                prompts[node.community_id] = naming_prompt(self._model, facts, _FACT_TOKENS)
            self._write(prompts)
            for node in nodes:
                if node.community_id not in self._names.texts:
                    keywords = ", ".join(self._graph.entity_names[row] for row in node.keywords)
                    self._names.texts[node.community_id] = (keywords, "")
                    self._names.unnamed.append(node.community_id)
            self._on_named(len(self._names.texts))
        return self._names

    def _write(self, prompts: dict[str, str]) -> None:
        """Fill in what the ledger has, ask for the rest, try again what was cut short."""
        identity = self._model.identity.fingerprint
        keys = {
            community: content_id("s", VERSION, identity, str(self._settings.summary_tokens), prompt)
            for community, prompt in prompts.items()
        }
        stored = self._ledger.get_many("summary", keys.values())
        for community, key in keys.items():
            if key in stored:
                name, summary = json.loads(stored[key])
                self._names.texts[community] = (name, summary)
                self._names.reused += 1
        temperature = 0.0
        for _ in range(1 + self._settings.summary_retries):
            missing = [community for community in prompts if community not in self._names.texts]
            if not missing:
                return
            for community, named in self._ask({c: prompts[c] for c in missing}, temperature):
                self._names.texts[community] = named
                self._ledger.put("summary", keys[community], json.dumps(named, ensure_ascii=False).encode())
            temperature = _RETRY_TEMPERATURE

    def _ask(self, prompts: dict[str, str], temperature: float) -> Iterator[tuple[str, tuple[str, str]]]:
        requests = (
            Request(community, prompt, self._settings.summary_tokens, grammar=GRAMMAR, temperature=temperature)
            for community, prompt in prompts.items()
        )
        for completion in run_requests(self._model, requests, _WINDOW):
            usage = completion.usage
            self._names.usage += StageUsage(
                calls=1, prompt=usage.prompt, cached=usage.cached, output=usage.output
            )
            named = read_naming(completion.text)
            if named is not None:
                yield completion.request_id, named

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

    def _descriptions(self, node: CommunityNode) -> list[str]:
        """For communities with few relations of their own."""
        rows = list(dict.fromkeys([node.centre, *node.keywords, *node.members]))
        return [f"{self._graph.entity_names[row]}: {self._graph.entity_descriptions[row]}" for row in rows]

    def _facts_by_leaf(self, hierarchy: Hierarchy) -> dict[str, list[str]]:
        """Relations inside each leaf, best supported first."""
        graph = self._graph
        leaf_of = {row: node.community_id for node in hierarchy.nodes if node.level == 0 for row in node.members}
        order = sorted(
            range(len(graph.heads)),
            key=lambda edge: (-float(graph.weights[edge] * graph.confidences[edge]), edge),
        )
        facts: dict[str, list[str]] = {}
        for edge in order:
            head, tail = int(graph.heads[edge]), int(graph.tails[edge])
            if leaf_of[head] == leaf_of[tail]:
                relation = self._relation_names[int(graph.relations[edge])]
                fact = f"{graph.entity_names[head]}: {relation}: {graph.entity_names[tail]}"
                facts.setdefault(leaf_of[head], []).append(fact)
        return facts
