"""Names and summaries of communities without a language model: their keywords and their heaviest facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hornbeam.index.texts import triple_text
from hornbeam.organise.communities import CommunityNode, GraphArrays, Hierarchy
from hornbeam.organise.leaf_relations import LeafRelations
from hornbeam.organise.naming import Names
from hornbeam.schema.model import GraphSchema

_KEYWORDS_IN_NAME = 3
_FACTS = 6
_FACT_CHARACTERS = 120
_SUMMARY_CHARACTERS = 480


def names_from_facts(
    graph: GraphArrays,
    schema: GraphSchema,
    hierarchy: Hierarchy,
    on_named: Callable[[int], None] = lambda named: None,
) -> Names:
    """A community's name is its best keywords; its summary is its best supported relations, or what its
    members say of themselves where it has none, or the names of the communities below it."""
    relation_names = [relation.name for relation in schema.relation_types]
    leaves = LeafRelations(graph, [node for node in hierarchy.nodes if node.level == 0])
    children: dict[str, list[CommunityNode]] = {}
    for node in hierarchy.nodes:
        if node.parent_id is not None:
            children.setdefault(node.parent_id, []).append(node)

    def facts(node: CommunityNode) -> Iterator[str]:
        for edge in leaves.of(node).tolist():
            head, tail = graph.entity_names[graph.heads[edge]], graph.entity_names[graph.tails[edge]]
            yield triple_text(head, relation_names[graph.relations[edge]], tail)
        for row in node.keywords:
            if graph.entity_descriptions[row]:
                yield graph.entity_descriptions[row]

    names = Names()
    for node in hierarchy.nodes:  # leaves first
        words = [graph.entity_names[row] for row in node.keywords[:_KEYWORDS_IN_NAME]]
        if node.level == 0:
            summary = _joined(facts(node))
        else:
            largest = sorted(
                children[node.community_id], key=lambda child: (-len(child.members), child.centre)
            )
            summary = _joined(names.texts[child.community_id][0] for child in largest)
        names.texts[node.community_id] = (", ".join(words), summary)
        on_named(1)
    return names


def _joined(facts: Iterator[str]) -> str:
    """The first few, each once, within a bound."""
    kept: dict[str, None] = {}
    characters = 0
    for fact in facts:
        short = fact if len(fact) <= _FACT_CHARACTERS else fact[: _FACT_CHARACTERS - 1].rstrip() + "…"
        if characters + len(short) > _SUMMARY_CHARACTERS or len(kept) == _FACTS:
            break
        characters += 0 if short in kept else len(short)
        kept[short] = None
    return "; ".join(kept)
