// What differs between two versions, counted and with examples.

import { h } from "../dom.js";
import { t } from "../strings.js";
import { number } from "../format.js";

const TABLES = ["documents", "entities", "relations", "attributes", "merges", "communities"];
const KINDS = ["added", "removed", "changed"];

export function differenceTable(found) {
  const tables = TABLES.filter((name) => found[name]);
  const changed = tables.filter((name) => KINDS.some((kind) => found[name][kind] > 0));
  const agreement = found.communities?.ari;
  return h(
    "div",
    { class: "stack difference" },
    changed.length === 0 && h("p", {}, t("diffNone")),
    h(
      "div",
      { class: "table-box" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, h("th", {}), ["diffAdded", "diffRemoved", "diffChanged", "diffSame"].map((key) => h("th", { scope: "col", class: "numeric" }, t(key))))),
        h(
          "tbody",
          {},
          tables.map((name) =>
            h("tr", {}, h("th", { scope: "row" }, t(name)), [...KINDS, "unchanged"].map((kind) => h("td", { class: `numeric diff-${kind}` }, number(found[name][kind])))),
          ),
        ),
      ),
    ),
    agreement !== null && agreement !== undefined && h("p", { class: "muted small" }, t("diffAgreement", { value: number(agreement, 3) })),
    changed.map((name) => examples(name, found[name].examples)),
  );
}

function examples(name, lists) {
  const lines = KINDS.flatMap((kind) => lists[kind].map((text) => h("li", { class: `diff-${kind}` }, text)));
  return lines.length > 0 && h("section", {}, h("h3", {}, `${t(name)}: ${t("diffExamples")}`), h("ul", { class: "plain diff-lines" }, lines));
}
