"""The joins and group-bys of a graph's tables, in DuckDB's SQL.

In the order in which they are made: `MENTIONS`, `NAMES`, then what is decided of names (`deciding`), `LINKS`,
`FACTS`, and from these each table of a version, sorted by its id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def create_tables(connection: duckdb.DuckDBPyConnection, queries: dict[str, str], *arguments: float) -> None:
    """Make a table of each query, in their order; `arguments` for the marks of each."""
    for name, sql in queries.items():
        connection.execute(f"CREATE TEMP TABLE {name} AS {sql}", list(arguments) * sql.count("?"))


#: What is told of an entity: its descriptions, or, where it has none, the sentences of its mentions.
PILES = """
    SELECT entity_id, any_value(name), list(DISTINCT told ORDER BY told) AS texts
    FROM (SELECT entity_id, min(name) OVER (PARTITION BY entity_id) AS name,
                 CASE WHEN count(described) OVER (PARTITION BY entity_id) > 0 THEN described ELSE sentence END
                     AS told
          FROM mention_rows WHERE start IS NOT NULL)
    WHERE told <> '' GROUP BY entity_id HAVING count(DISTINCT told) >= {least} ORDER BY entity_id"""

#: `records.content_id` of three parts. DuckDB's `strlen` counts bytes; no text of a table has 2³² of them.
CONTENT_ID = """
    CREATE TEMP MACRO length_bytes(text) AS unhex(
        lpad(to_hex(strlen(text) & 255), 2, '0') || lpad(to_hex((strlen(text) >> 8) & 255), 2, '0') ||
        lpad(to_hex((strlen(text) >> 16) & 255), 2, '0') || lpad(to_hex(strlen(text) >> 24), 2, '0') ||
        '00000000');
    CREATE TEMP MACRO content_id(prefix, first, second, third) AS prefix || left(sha256(
        length_bytes(first) || encode(first) || length_bytes(second) || encode(second) ||
        length_bytes(third) || encode(third)), 20)"""

DOCUMENT_IDS = "SELECT document_id FROM document_numbers ORDER BY document"

MENTIONS = {
    "name_mentions": """
        SELECT name_id, chunk_id, start, "end", name_id AS found_id, '' AS sense,
               any_value(document_id) AS document_id,
               any_value(surface) AS surface, max(confidence) AS confidence,
               any_value(canonical) AS canonical, any_value(type) AS type, min(name) AS name,
               min(sentence) AS sentence, min(described) AS described,
               arg_min(described_start, (described, described_start))
                   FILTER (WHERE described IS NOT NULL) AS described_start,
               arg_min(described_end, (described, described_start))
                   FILTER (WHERE described IS NOT NULL) AS described_end
        FROM found_names GROUP BY name_id, chunk_id, start, "end\"""",
}
GIVE_SENSES = """
    UPDATE name_mentions SET name_id = content_id('e', canonical, type, g.sense), sense = g.sense
    FROM given g WHERE g.name_id = name_mentions.found_id AND g.document_id = name_mentions.document_id"""
NAMES = {
    "names": """
        SELECT row_number() OVER (ORDER BY name_id) - 1 AS number, *
        FROM (SELECT name_id, any_value(canonical) AS canonical, any_value(type) AS type,
                     any_value(sense) AS sense, sum(confidence ORDER BY chunk_id, start, "end") AS votes,
                     count(DISTINCT document_id) AS documents
              FROM name_mentions GROUP BY name_id)""",
}
LINKS = {
    "all_links": """
        WITH of_document AS (SELECT DISTINCT document_id, found_id, name_id FROM name_mentions),
        first_place AS (
            SELECT number, document_id, chunk_id, start, "end"
            FROM name_mentions JOIN names USING (name_id)
            WHERE start IS NOT NULL AND number IN (SELECT alias FROM across_links)
            QUALIFY row_number() OVER (PARTITION BY number ORDER BY document_id, chunk_id, start, "end") = 1)
        SELECT a.number AS alias, t.number AS target, kind, score, l.document_id, chunk_id, start, "end"
        FROM found_links l
        JOIN of_document am ON am.document_id = l.document_id AND am.found_id = l.alias_id
        JOIN of_document tm ON tm.document_id = l.document_id AND tm.found_id = l.target_id
        JOIN names a ON a.name_id = am.name_id JOIN names t ON t.name_id = tm.name_id
        UNION ALL
        SELECT x.alias, x.target, x.kind, x.score, p.document_id, p.chunk_id, p.start, p."end"
        FROM across_links x JOIN first_place p ON p.number = x.alias""",
    "document_numbers": """
        SELECT row_number() OVER (ORDER BY document_id) - 1 AS document, document_id
        FROM (SELECT DISTINCT document_id FROM all_links)""",
    # Most certain first; what follows is only there to make the order total.
    "links": """
        SELECT row_number() OVER (ORDER BY score DESC, document_id, kind, alias, target, chunk_id, start,
                                  "end") - 1 AS link, document, l.*
        FROM all_links l JOIN document_numbers USING (document_id)""",
}

FACTS = {
    "local_entities": """
        SELECT h.document_id, n.name_id, e.entity_id, e.type
        FROM local_homes h JOIN names n USING (number) JOIN name_entities e ON e.number = h.home""",
    # Where a name stands in a document, whose it is.
    "whose": """
        SELECT m.document_id, m.name_id, m.found_id, m.sense, coalesce(l.entity_id, e.entity_id) AS entity_id,
               coalesce(l.type, e.type) AS type, l.entity_id IS NULL AND e.is_first AS is_first
        FROM (SELECT DISTINCT document_id, name_id, found_id, sense FROM name_mentions) m
        JOIN names n USING (name_id) JOIN name_entities e USING (number)
        LEFT JOIN local_entities l ON l.document_id = m.document_id AND l.name_id = m.name_id""",
    "mention_rows": """
        SELECT w.entity_id, m.chunk_id, m.start, m."end", any_value(m.surface) AS surface,
               max(m.confidence) AS confidence, any_value(w.type) AS type, min(m.name) AS name,
               min(m.sentence) AS sentence, min(m.described) AS described,
               arg_min(m.described_start, (m.described, m.described_start))
                   FILTER (WHERE m.described IS NOT NULL) AS described_start,
               arg_min(m.described_end, (m.described, m.described_start))
                   FILTER (WHERE m.described IS NOT NULL) AS described_end,
               bool_or(w.is_first) AS is_first,
               max(CASE WHEN w.is_first THEN m.sense END) AS sense
        FROM name_mentions m JOIN whose w ON w.document_id = m.document_id AND w.name_id = m.name_id
        GROUP BY w.entity_id, m.chunk_id, m.start, m."end\"""",
    "stated_relations": """
        SELECT content_id('r', h.entity_id, r.type, t.entity_id) AS relation_id, h.entity_id AS head_id,
               r.type, t.entity_id AS tail_id, r.chunk_id, r.confidence, r.sentence, r.verified
        FROM found_relations r
        JOIN whose h ON h.document_id = r.document_id AND h.found_id = r.head_name
        JOIN whose t ON t.document_id = r.document_id AND t.found_id = r.tail_name
        SEMI JOIN allowed_relations a ON a.type = r.type AND a.head = h.type AND a.tail = t.type
        WHERE h.entity_id <> t.entity_id OR r.loop""",
    "stated_attributes": """
        SELECT content_id('a', o.entity_id, x.type, x.folded) AS attribute_id, o.entity_id, x.type, x.value,
               x.chunk_id, x.start, x."end", x.confidence, x.verified
        FROM found_attributes x
        JOIN whose o ON o.document_id = x.document_id AND o.found_id = x.owner_name
        SEMI JOIN allowed_attributes a ON a.type = x.type AND a.owner = o.type""",
    # One row per distinct fact and chunk, then per fact. Facts below the threshold end here, and those that
    # were refuted in every chunk; a chunk in which a fact was refuted adds nothing to its confidence.
    "relation_facts": """
        SELECT relation_id, any_value(head_id) AS head_id, any_value(type) AS type,
               any_value(tail_id) AS tail_id, count(*)::DOUBLE AS weight,
               1 - product(1 - confidence ORDER BY chunk_id) AS confidence,
               arg_max(sentence, (confidence, chunk_id)) AS description
        FROM (SELECT relation_id, chunk_id, any_value(head_id) AS head_id, any_value(type) AS type,
                     any_value(tail_id) AS tail_id, min(sentence) AS sentence,
                     coalesce(max(confidence) FILTER (verified IS DISTINCT FROM false), 0) AS confidence,
                     bool_or(verified IS DISTINCT FROM false) AS holds
              FROM stated_relations GROUP BY relation_id, chunk_id)
        GROUP BY relation_id HAVING bool_or(holds) AND 1 - product(1 - confidence ORDER BY chunk_id) >= ?""",
    "attribute_facts": """
        SELECT attribute_id, any_value(entity_id) AS entity_id, any_value(type) AS type,
               min(value) AS value, 1 - product(1 - confidence ORDER BY chunk_id) AS confidence
        FROM (SELECT attribute_id, chunk_id, any_value(entity_id) AS entity_id, any_value(type) AS type,
                     min(value) AS value,
                     coalesce(max(confidence) FILTER (verified IS DISTINCT FROM false), 0) AS confidence,
                     bool_or(verified IS DISTINCT FROM false) AS holds
              FROM stated_attributes GROUP BY attribute_id, chunk_id)
        GROUP BY attribute_id HAVING bool_or(holds) AND 1 - product(1 - confidence ORDER BY chunk_id) >= ?""",
    # A cluster of names is called by its first name, in the form that is written most.
    "written_forms": """
        SELECT entity_id, name, count(*) AS times, bool_or(is_first) AS is_first
        FROM mention_rows GROUP BY entity_id, name""",
    "degrees": """
        SELECT entity_id, count(*) AS degree
        FROM (SELECT head_id AS entity_id FROM relation_facts UNION ALL SELECT tail_id FROM relation_facts)
        GROUP BY entity_id""",
}

TABLES_OF_A_GRAPH = {
    "chunks": """
        SELECT chunk_id, document_id, start, "end", text, tokens, state, reason, rungs
        FROM found_chunks ORDER BY chunk_id""",
    "entities": """
        WITH forms AS (
            SELECT entity_id, list(name ORDER BY is_first DESC, times DESC, name) AS names
            FROM written_forms GROUP BY entity_id)
        SELECT m.entity_id, any_value(f.names)[1] AS name, any_value(m.type) AS type,
               coalesce(any_value(s.text),
                        arg_max(m.described, (m.confidence, m.chunk_id, m.start, m."end"))
                        FILTER (WHERE m.described IS NOT NULL),
                        arg_max(m.sentence, (m.confidence, m.chunk_id, m.start, m."end"))
                        FILTER (WHERE m.start IS NOT NULL), '') AS description,
               list_sort(any_value(f.names)[2:]) AS aliases, count(m.start) AS mentions,
               coalesce(any_value(d.degree), 0) AS degree,
               least(1.0, sum(m.confidence ORDER BY m.chunk_id, m.start, m."end") / count(*)) AS confidence,
               coalesce(max(m.sense), '') AS sense
        FROM mention_rows m JOIN forms f USING (entity_id) LEFT JOIN degrees d USING (entity_id)
             LEFT JOIN summaries s USING (entity_id)
        GROUP BY m.entity_id ORDER BY m.entity_id""",
    "mentions": """
        SELECT entity_id, chunk_id, start, "end", surface, confidence, described_start AS description_start,
               described_end AS description_end
        FROM mention_rows WHERE start IS NOT NULL ORDER BY entity_id, chunk_id, start, "end\"""",
    "relations": """
        SELECT relation_id, head_id, type, tail_id, weight, confidence, description
        FROM relation_facts ORDER BY relation_id""",
    "relation_evidence": """
        SELECT relation_id, chunk_id, max(confidence) AS confidence, bool_or(verified) AS verified
        FROM stated_relations WHERE relation_id IN (SELECT relation_id FROM relation_facts)
        GROUP BY relation_id, chunk_id ORDER BY relation_id, chunk_id""",
    "attributes": """
        SELECT attribute_id, entity_id, type, value, confidence FROM attribute_facts ORDER BY attribute_id""",
    "attribute_evidence": """
        SELECT attribute_id, chunk_id, start, "end", max(confidence) AS confidence,
               bool_or(verified) AS verified
        FROM stated_attributes WHERE attribute_id IN (SELECT attribute_id FROM attribute_facts)
        GROUP BY attribute_id, chunk_id, start, "end" ORDER BY attribute_id, chunk_id, start, "end\"""",
    "merges": """
        WITH forms AS (
            SELECT name_id, arg_max(name, (times, name)) AS name
            FROM (SELECT name_id, name, count(*) AS times FROM name_mentions GROUP BY name_id, name)
            GROUP BY name_id)
        SELECT d.merge_id, w.entity_id, tf.name, t.type, af.name AS merged_name, a.type AS merged_type,
               CASE WHEN d.in_document THEN l.document_id END AS document_id, l.kind, l.score, l.chunk_id,
               l.start, l."end"
        FROM decided d JOIN links l USING (link)
        JOIN names a ON a.number = l.alias JOIN names t ON t.number = l.target
        JOIN forms af ON af.name_id = a.name_id JOIN forms tf ON tf.name_id = t.name_id
        JOIN whose w ON w.document_id = l.document_id AND w.name_id = a.name_id
        ORDER BY d.merge_id""",
}

DROPPED = {
    "relations": "SELECT (SELECT count(*) FROM found_relations) - (SELECT count(*) FROM stated_relations)",
    "attributes": "SELECT (SELECT count(*) FROM found_attributes) - (SELECT count(*) FROM stated_attributes)",
}
