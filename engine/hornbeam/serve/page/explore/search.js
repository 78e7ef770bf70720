// Entities by name, while it is typed: a combobox with a list, as in the ARIA pattern.

import { at, get } from "../api.js";
import { h, replace } from "../dom.js";
import { t } from "../strings.js";
import { words } from "../format.js";
import { announce, told } from "../notices.js";
import { typeColour } from "./colours.js";

const PAUSE_MS = 140;
const SHOWN = 12;

export function searchBox(index, choose, types) {
  const list = h("ul", { class: "found", id: "found", role: "listbox", "aria-label": t("searchEntities"), hidden: true });
  const field = h("input", {
    type: "search",
    class: "search",
    "data-first": true,
    placeholder: t("searchEntities"),
    "aria-label": t("searchEntities"),
    role: "combobox",
    "aria-controls": "found",
    "aria-expanded": "false",
    "aria-autocomplete": "list",
    autocomplete: "off",
    maxlength: 200,
    oninput: soon,
    onkeydown: keys,
    onblur: () => setTimeout(close, 150),
  });
  let timer = 0;
  let asked = null;
  let found = [];
  let lit = -1;

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(() => look().catch(told), PAUSE_MS);
  }

  async function look() {
    asked?.abort();
    const text = field.value.trim();
    if (!text) return close();
    asked = new AbortController();
    const answer = await get(at(index, "entities"), { text, types: types(), limit: SHOWN }, asked.signal);
    found = answer.entities;
    lit = -1;
    replace(list, found.map(row));
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
    announce(t("found", { count: found.length }));
    if (!found.length) list.append(h("li", { class: "muted small", role: "none" }, t("found", { count: 0 })));
  }

  function row(one, place) {
    const dot = h("span", { class: "dot", "aria-hidden": "true" });
    dot.style.background = typeColour(one.type);
    return h(
      "li",
      { id: `found-${place}`, role: "option", "aria-selected": "false", onmousedown: (event) => (event.preventDefault(), take(place)) },
      dot,
      h("span", { class: "found-name" }, one.name),
      h("span", { class: "muted small" }, words(one.type)),
    );
  }

  function keys(event) {
    if (event.key === "Escape") close();
    if (list.hidden || !found.length) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      light((lit + (event.key === "ArrowDown" ? 1 : found.length - 1) + (lit < 0 && event.key === "ArrowUp" ? 1 : 0)) % found.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      take(Math.max(0, lit));
    }
  }

  function light(place) {
    lit = place;
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === place)));
    field.setAttribute("aria-activedescendant", `found-${place}`);
  }

  function take(place) {
    field.value = "";
    close();
    choose(found[place]);
  }

  function close() {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }

  return { element: h("div", { class: "search-box" }, field, list) };
}
