// One numbered piece of evidence.

import { h } from "../dom.js";
import { t } from "../strings.js";

export function evidenceCard(piece, open) {
  const has = piece.document_id !== null;
  const head = [
    h("span", { class: "label" }, piece.label),
    h("span", { class: `kind kind-${piece.kind}` }, t(`kind_${piece.kind}`)),
    h("span", { class: "where" }, piece.title || piece.source || ""),
  ];
  return h(
    "li",
    { class: "card-item" },
    h(
      "button",
      {
        type: "button",
        class: "evidence-card",
        disabled: !has,
        title: has ? "" : t("noSource"),
        "aria-label": `${t("showSource", { label: piece.label })}: ${piece.text.slice(0, 200)}`,
        onclick: open,
      },
      h("span", { class: "evidence-head" }, head),
      h("span", { class: "evidence-text" }, piece.text),
    ),
  );
}
