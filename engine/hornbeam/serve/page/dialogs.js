// Dialogs: the API key, the keys of the keyboard, and the panel at the side. `<dialog>` holds the focus.

import { h, icon } from "./dom.js";
import { t } from "./strings.js";
import { key, setKey } from "./api.js";

export function openDialog(title, content, { side = false } = {}) {
  const heading = h("h2", { id: `dialog-${Math.random().toString(36).slice(2)}` }, title);
  const dialog = h(
    "dialog",
    { class: side ? "side" : "card-dialog", "aria-labelledby": heading.id },
    h(
      "div",
      { class: "dialog-head" },
      heading,
      h("button", { type: "button", class: "quiet round", "aria-label": t("close"), onclick: () => dialog.close() }, icon("close")),
    ),
    h("div", { class: "dialog-body" }, content),
  );
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // the backdrop
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export function openKeyDialog(changed, reason = "") {
  const field = h("input", { type: "password", id: "key-field", autocomplete: "off", spellcheck: "false", value: key(), placeholder: "hb_…" });
  const use = (secret) => {
    setKey(secret.trim());
    dialog.close();
    dialog.remove(); // at once: the event of closing may come later than the answer that asks for a key again
    changed();
  };
  const form = h(
    "form",
    {
      class: "stack",
      onsubmit: (event) => {
        event.preventDefault();
        use(field.value);
      },
    },
    reason && h("p", { class: "reason" }, reason),
    h("label", { for: "key-field" }, t("key")),
    field,
    h("p", { class: "muted small" }, t("keyHelp")),
    h(
      "div",
      { class: "row end" },
      key() && h("button", { type: "button", class: "quiet", onclick: () => use("") }, t("keyForget")),
      h("button", { type: "submit", class: "primary" }, t("keySave")),
    ),
  );
  const dialog = openDialog(t("keyTitle"), form);
  field.focus();
}

export function openHelp() {
  const row = (keys, text) => h("div", { class: "help-row" }, h("dt", {}, keys.map((one) => h("kbd", {}, one))), h("dd", {}, text));
  openDialog(
    t("helpTitle"),
    h(
      "dl",
      { class: "help" },
      row(["/"], t("helpFocus")),
      row(["Alt", "1–5"], t("helpViews")),
      row(["↑", "↓", "→", "←"], t("helpTree")),
      row(["Enter"], t("helpSend")),
      row(["Esc"], t("helpEscape")),
    ),
  );
}

// Where somebody may not: says why, and lets a key be given.
export function operateHint(changed) {
  return h(
    "p",
    { class: "hint" },
    icon("key"),
    h("span", {}, t("operateNeeded")),
    h("button", { type: "button", class: "link", onclick: () => openKeyDialog(changed) }, t("enterKey")),
  );
}
