// What is said to the reader beside the content: aloud to a screen reader, and in the corner where it is an error.

import { h, icon } from "./dom.js";
import { t } from "./strings.js";

const SHOWN_MS = 9000;

export function announce(text) {
  document.getElementById("announcements").textContent = text;
}

export function notice(text, kind = "plain") {
  const box = h("div", { class: `notice ${kind}` }, h("span", {}, text));
  box.append(h("button", { class: "quiet round", type: "button", "aria-label": t("close"), onclick: () => box.remove() }, icon("close")));
  document.getElementById("notices").append(box);
  setTimeout(() => box.remove(), SHOWN_MS);
}

export function told(error) {
  if (error.name === "AbortError") return;
  notice(error.status === 0 ? error.message : t("failed", { message: error.message }), "bad");
}
