// A document at the side, with the span of a citation marked.

import { at, get } from "./api.js";
import { h, replace } from "./dom.js";
import { t } from "./strings.js";
import { number } from "./format.js";
import { session } from "./session.js";
import { told } from "./notices.js";
import { openDialog } from "./dialogs.js";

const AROUND = 3000; // characters; more with every click

// `where`: document_id, source, title, start, end.
export async function openDocument(where) {
  const body = h("div", { class: "document", "aria-busy": "true" }, h("p", { class: "muted" }, t("loading")));
  const dialog = openDialog(where.title || where.source || t("document"), body, { side: true });
  const signal = new AbortController();
  dialog.addEventListener("close", () => signal.abort());
  let around = AROUND;

  async function draw(first) {
    const found = await get(
      at(session.name, `documents/${encodeURIComponent(where.document_id)}`),
      { start: where.start, end: where.end, around },
      signal.signal,
    );
    body.removeAttribute("aria-busy");
    const mark = h("mark", { tabindex: "-1" });
    // Offsets count characters, JavaScript's strings count halves of some.
    const text = Array.from(found.text);
    const [from, to] = [where.start - found.start, where.end - found.start];
    mark.textContent = text.slice(from, to).join("");
    const more = (label) =>
      h("button", { type: "button", class: "quiet more", onclick: () => ((around *= 4), draw(false).catch(told)) }, label);
    replace(
      body,
      h("p", { class: "muted small source" }, found.source, " · ", t("documentSpan", { start: number(where.start), end: number(where.end) })),
      found.start > 0 && around < 20000 ? more(t("documentEarlier")) : edge(found.start > 0, "documentStart"),
      h("div", { class: "document-text" }, text.slice(0, from).join(""), mark, text.slice(to).join("")),
      found.end < found.characters && around < 20000 ? more(t("documentLater")) : edge(found.end < found.characters, "documentEnd"),
    );
    if (first) mark.scrollIntoView({ block: "center" });
    mark.focus({ preventScroll: !first });
  }

  try {
    await draw(true);
  } catch (error) {
    dialog.close();
    told(error);
  }
}

function edge(more, key) {
  return h("p", { class: "edge muted small" }, more ? "…" : t(key));
}
