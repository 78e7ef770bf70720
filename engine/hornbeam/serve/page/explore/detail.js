// What is known about one entity or community, in words.

import { at, get } from "../api.js";
import { h, icon } from "../dom.js";
import { t } from "../strings.js";
import { number, words } from "../format.js";
import { openDocument } from "../document_panel.js";
import { typeColour } from "./colours.js";

const RELATIONS = 60;

export async function entityDetail(index, id, choose, signal) {
  const one = await get(at(index, `entities/${encodeURIComponent(id)}`), { relations: RELATIONS }, signal);
  const path = one.community_id ? (await get(at(index, "tree"), { parent: one.community_id, limit: 1 }, signal)).path : [];
  const dot = h("span", { class: "dot", "aria-hidden": "true" });
  dot.style.background = typeColour(one.type);
  return {
    path,
    elements: [
      h("header", { class: "detail-head" }, h("p", { class: "kind-line" }, dot, words(one.type)), h("h2", {}, one.name)),
      one.description && h("p", { class: "detail-text" }, one.description),
      one.provenance &&
        h("button", { type: "button", class: "small", onclick: () => openDocument(one.provenance) }, t("showInDocument")),
      h("h3", {}, t("attributes")),
      one.attributes.length
        ? h("dl", { class: "attributes" }, one.attributes.map((has) => [h("dt", {}, words(has.type)), h("dd", {}, has.value)]))
        : h("p", { class: "muted small" }, t("noAttributes")),
      h("h3", {}, t("relationsOf", { count: number(one.relations_in_all) })),
      one.relations.length
        ? h("ul", { class: "relations" }, one.relations.map((fact) => relation(fact, id, choose)))
        : h("p", { class: "muted small" }, t("noRelations")),
    ],
  };
}

export async function communityDetail(index, id, choose, signal) {
  const [level, one] = await Promise.all([
    get(at(index, "tree"), { parent: id, limit: 12 }, signal),
    get(at(index, `communities/${encodeURIComponent(id)}`), {}, signal),
  ]);
  return {
    path: level.path,
    elements: [
      h("header", { class: "detail-head" }, h("p", { class: "kind-line" }, t("community")), h("h2", {}, one.name)),
      h("p", { class: "muted small" }, t("members", { count: number(one.size) })),
      one.summary && h("p", { class: "detail-text" }, one.summary),
      one.keywords.length > 0 && [h("h3", {}, t("keywords")), h("p", { class: "chips" }, one.keywords.map((word) => h("span", { class: "chip is-still" }, word)))],
      level.communities.length > 0 && [h("h3", {}, t("communities")), links(level.communities, "community", choose)],
      level.entities.length > 0 && [h("h3", {}, t("entities")), links(level.entities, "entity", choose)],
    ],
  };
}

function links(things, kind, choose) {
  return h("ul", { class: "plain" }, things.map((one) => h("li", {}, h("button", { type: "button", class: "link", onclick: () => choose(kind, one.id) }, one.name))));
}

function relation(fact, id, choose) {
  const out = fact.head.id === id;
  const other = out ? fact.tail : fact.head;
  return h(
    "li",
    { title: t("confidence", { value: number(fact.confidence, 2) }) },
    h("span", { class: out ? "arrow" : "arrow is-in", "aria-hidden": "true" }, icon("open")),
    h("span", { class: "relation-type" }, words(fact.type)),
    h("button", { type: "button", class: "link", onclick: () => choose("entity", other.id) }, other.name),
  );
}
