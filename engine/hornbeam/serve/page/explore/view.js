// Explore: the knowledge tree on the left, a picture of what is selected, and what is known about it.
//
// The server gives a level at a time, the largest or best connected first, so an index of any size is as quick.

import { at, get } from "../api.js";
import { h, icon, replace } from "../dom.js";
import { t } from "../strings.js";
import { number } from "../format.js";
import { session } from "../session.js";
import { told } from "../notices.js";
import { onTheme } from "../theme.js";
import { treeView } from "./tree.js";
import { graphView } from "./graph.js";
import { communityDetail, entityDetail } from "./detail.js";
import { filterBar } from "./filters.js";
import { searchBox } from "./search.js";

const SHOWN = 80;

export function exploreView(main, [kind, identifier]) {
  const index = session.name;
  const signal = new AbortController();
  const detail = h("section", { class: "detail", "aria-live": "polite", "aria-label": t("entity") });
  const caption = h("p", { class: "graph-caption muted small" });
  const path = h("nav", { class: "path", "aria-label": t("partOf") });
  const graph = graphView({ choose });
  const tree = treeView(index, { choose, signal: signal.signal });
  const filters = filterBar(index, redraw, signal.signal);
  const search = searchBox(index, (one) => choose("entity", one.id), () => filters.types);
  const tools = h(
    "div",
    { class: "graph-tools" },
    graph.available && [
      tool("plus", "zoomIn", graph.zoomIn),
      tool("minus", "zoomOut", graph.zoomOut),
      tool("fit", "zoomFit", graph.fit),
    ],
  );
  let chosen = null; // what the picture shows

  replace(
    main,
    h("h1", { class: "visually-hidden" }, t("explore")),
    h(
      "div",
      { class: "explore" },
      h("section", { class: "tree-side", "aria-label": t("tree") }, search.element, filters.element, h("h2", { class: "side-title" }, t("tree")), tree.element),
      h("section", { class: "graph-side", "aria-label": t("graph") }, path, h("div", { class: "graph-box" }, graph.element, tools), caption),
      detail,
    ),
  );
  const forget = onTheme(graph.restyle);
  graph.start();
  if (kind === "entity" || kind === "community") choose(kind, identifier);
  else choose("top", null);

  // Show a thing: its picture, and what is known about it.
  async function choose(kind, id) {
    chosen = { kind, id };
    history.replaceState(null, "", kind === "top" ? "#/explore" : `#/explore/${kind}/${encodeURIComponent(id)}`);
    main.classList.toggle("has-detail", kind !== "top");
    await Promise.all([redraw(), describe()]).catch(told);
  }

  async function redraw() {
    const { kind, id } = chosen;
    const here = chosen;
    const values = { limit: SHOWN, types: filters.types, min_confidence: filters.confidence || null };
    if (kind === "entity") {
      const found = await get(at(index, "neighbourhood"), { entity: id, limit: SHOWN }, signal.signal);
      if (here !== chosen) return;
      graph.showNeighbourhood(found, id, filters);
      caption.textContent = t("graphHelp");
      return;
    }
    const found = await get(at(index, "tree"), { ...values, parent: id }, signal.signal);
    if (here !== chosen) return;
    graph.showLevel(found);
    drawPath(found.path);
    const [shown, all, key] = found.communities.length
      ? [found.communities.length, found.communities_in_all, "shownOf"]
      : [found.entities.length, found.entities_in_all, "shownOfEntities"];
    caption.textContent = all ? t(key, { shown: number(shown), all: number(all) }) : t("graphNone");
  }

  async function describe() {
    const { kind, id } = chosen;
    const here = chosen;
    if (kind === "top") {
      replace(detail);
      return;
    }
    const drawn = kind === "entity" ? await entityDetail(index, id, choose, signal.signal) : await communityDetail(index, id, choose, signal.signal);
    if (here !== chosen) return;
    replace(detail, drawn.elements);
    tree.mark(kind, id);
    if (drawn.path) drawPath(drawn.path);
  }

  function drawPath(steps) {
    replace(
      path,
      h("button", { type: "button", class: "link", onclick: () => choose("top", null) }, t("everything")),
      steps.map((one) => [
        h("span", { class: "path-arrow", "aria-hidden": "true" }, icon("open")),
        h("button", { type: "button", class: "link", onclick: () => choose("community", one.id) }, one.name),
      ]),
    );
  }

  return () => {
    signal.abort();
    forget();
    graph.end();
  };
}

function tool(name, key, onclick) {
  return h("button", { type: "button", class: "round", "aria-label": t(key), title: t(key), onclick }, icon(name));
}
