// Which types of entities are shown, and from which confidence on relations are.

import { at, get } from "../api.js";
import { h, icon, replace } from "../dom.js";
import { t } from "../strings.js";
import { number, words } from "../format.js";
import { told } from "../notices.js";
import { typeColour } from "./colours.js";

export function filterBar(index, changed, signal) {
  const chosen = new Set();
  const types = h("div", { class: "filter-types", role: "group", "aria-label": t("filterTypes") });
  const said = h("label", { for: "filter-confidence", class: "small" });
  const slider = h("input", {
    type: "range",
    id: "filter-confidence",
    min: 0,
    max: 1,
    step: 0.05,
    value: 0,
    oninput: label,
    onchange: () => changed().catch(told),
  });
  const badge = h("span", { class: "filter-count" });
  const element = h("details", { class: "filters" }, h("summary", {}, icon("open"), t("filters"), badge), h("div", { class: "stack" }, types, said, slider));
  label();
  load().catch(told);

  async function load() {
    const found = await get(at(index, "entities"), { limit: 1 }, signal);
    replace(
      types,
      found.types.map((type) => {
        const dot = h("span", { class: "dot", "aria-hidden": "true" });
        dot.style.background = typeColour(type);
        return h(
          "label",
          { class: "filter-type" },
          h("input", {
            type: "checkbox",
            onchange: (event) => {
              if (event.target.checked) chosen.add(type);
              else chosen.delete(type);
              label();
              changed().catch(told);
            },
          }),
          dot,
          words(type),
        );
      }),
    );
  }

  function label() {
    said.textContent = t("filterConfidence", { value: number(Number(slider.value), 2) });
    const set = chosen.size + (Number(slider.value) > 0 ? 1 : 0);
    badge.textContent = set ? String(set) : "";
  }

  return {
    element,
    get types() {
      return [...chosen];
    },
    get confidence() {
      return Number(slider.value);
    },
  };
}
