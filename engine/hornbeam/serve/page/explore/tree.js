// The knowledge tree, opened level by level: communities ⊃ keywords and entities ⊃ facts ⊃ attributes.
// Keys as in the ARIA pattern of a tree: arrows walk, → opens, ← closes, Enter shows.

import { at, get } from "../api.js";
import { h, icon, replace } from "../dom.js";
import { t } from "../strings.js";
import { number, words } from "../format.js";
import { told } from "../notices.js";

const SHOWN = 60;

export function treeView(index, { choose, signal }) {
  const root = h("ul", { class: "tree", role: "tree", "aria-label": t("tree"), onkeydown: keys });
  fill(root, null, 1).catch(told);

  async function fill(list, community, level) {
    replace(list, h("li", { class: "tree-wait muted small", role: "none" }, t("loading")));
    const found = await get(at(index, "tree"), { parent: community, limit: SHOWN }, signal);
    const items = [
      ...found.communities.map((one) => communityItem(one, level)),
      ...found.entities.map((one) => entityItem(one, level)),
    ];
    const hidden = found.communities_in_all + found.entities_in_all - items.length;
    replace(list, items, hidden > 0 && h("li", { class: "tree-wait muted small", role: "none" }, t("moreInTree", { count: number(hidden) })));
    if (list === root && items.length) items[0].tabIndex = 0;
    if (list === root && !items.length) replace(list, h("li", { class: "muted small", role: "none" }, t("graphNone")));
  }

  function communityItem(one, level) {
    const open = async (list) => {
      await fill(list, one.id, level + 1);
      if (one.keywords.length) list.prepend(leaf(level + 1, "keywords", one.keywords.join(" · ")));
    };
    return branch(level, "community", one.id, one.name, number(one.size), open);
  }

  function entityItem(one, level) {
    const open = async (list) => {
      const found = await get(at(index, `entities/${encodeURIComponent(one.id)}`), { relations: SHOWN }, signal);
      replace(
        list,
        found.relations.map((fact) => leaf(level + 1, "fact", `${fact.head.name} — ${words(fact.type)} → ${fact.tail.name}`)),
        found.attributes.map((has) => leaf(level + 1, "attribute", `${words(has.type)}: ${has.value}`)),
      );
      if (!list.children.length) list.append(leaf(level + 1, "none", t("noRelations")));
    };
    return branch(level, "entity", one.id, one.name, words(one.type), open);
  }

  function branch(level, kind, id, name, aside, open) {
    const list = h("ul", { role: "group", hidden: true });
    const item = h(
      "li",
      { role: "treeitem", "aria-level": level, "aria-expanded": "false", "aria-selected": "false", "aria-label": `${name}, ${aside}`, tabindex: -1, class: `tree-${kind}` },
      h(
        "div",
        { class: "tree-row" },
        h("span", { class: "tree-arrow", onclick: (event) => (event.stopPropagation(), toggle(item)) }, icon("open")),
        h("span", { class: "tree-name" }, name),
        h("span", { class: "tree-aside muted small" }, aside),
      ),
      list,
    );
    item.firstChild.addEventListener("click", () => {
      focus(item);
      choose(kind, id);
    });
    item.dataset.kind = kind;
    item.dataset.id = id;
    item.fill = () => open(list);
    return item;
  }

  function leaf(level, kind, text) {
    return h("li", { role: "treeitem", "aria-level": level, tabindex: -1, class: `tree-leaf tree-${kind}` }, h("div", { class: "tree-row" }, text));
  }

  async function toggle(item, open = item.getAttribute("aria-expanded") === "false") {
    const list = item.querySelector(":scope > ul");
    if (!list) return;
    item.setAttribute("aria-expanded", String(open));
    list.hidden = !open;
    if (open && !item.dataset.filled) {
      item.dataset.filled = "yes";
      await item.fill().catch((error) => {
        delete item.dataset.filled;
        told(error);
      });
    }
  }

  function visible() {
    return [...root.querySelectorAll('[role="treeitem"]')].filter((item) => item.offsetParent !== null);
  }

  function focus(item) {
    root.querySelectorAll('[tabindex="0"]').forEach((one) => (one.tabIndex = -1));
    item.tabIndex = 0;
    item.focus();
  }

  function keys(event) {
    const item = event.target.closest('[role="treeitem"]');
    if (!item) return;
    const items = visible();
    const place = items.indexOf(item);
    const expanded = item.getAttribute("aria-expanded");
    const parent = item.parentElement.closest('[role="treeitem"]');
    const moves = {
      ArrowDown: () => items[place + 1],
      ArrowUp: () => items[place - 1],
      Home: () => items[0],
      End: () => items.at(-1),
      ArrowRight: () => (expanded === "false" ? void toggle(item, true) : expanded && items[place + 1]),
      ArrowLeft: () => (expanded === "true" ? void toggle(item, false) : parent),
      Enter: () => void (item.dataset.kind && choose(item.dataset.kind, item.dataset.id)),
      " ": () => void (item.dataset.kind && choose(item.dataset.kind, item.dataset.id)),
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    event.stopPropagation();
    const next = moves[event.key]();
    if (next) focus(next);
  }

  function mark(kind, id) {
    for (const item of root.querySelectorAll("[data-kind]")) {
      item.setAttribute("aria-selected", String(item.dataset.kind === kind && item.dataset.id === id));
    }
  }

  return { element: root, mark };
}
