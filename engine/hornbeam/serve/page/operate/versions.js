// Versions: their gates, what differs between them, which one is served.

import { at, get, post } from "../api.js";
import { h, icon, replace } from "../dom.js";
import { t } from "../strings.js";
import { moment, number, words } from "../format.js";
import { session } from "../session.js";
import { notice, told } from "../notices.js";
import { openDialog, operateHint } from "../dialogs.js";
import { differenceTable } from "./difference.js";

export function versionsView(main) {
  const index = session.name;
  const signal = new AbortController();
  const list = h("ol", { class: "versions" });
  const back = h("button", { type: "button", title: t("versionRollbackHelp"), disabled: !session.mayOperate, onclick: () => change("rollback").catch(told) }, t("versionRollback"));
  replace(main, h("div", { class: "page" }, h("div", { class: "page-head" }, h("h1", {}, t("versions")), back), !session.mayOperate && operateHint(() => location.reload()), list));
  load().catch(told);

  async function load() {
    const found = await get(at(index, "versions"), {}, signal.signal);
    const served = found.current ?? found.serving;
    replace(list, found.versions.toReversed().map((one) => card(one, served)));
    if (found.unreadable.length) list.append(h("li", { class: "note bad" }, t("versionUnreadable", { versions: found.unreadable.join(", ") })));
  }

  function card(one, served) {
    const current = one.version === served;
    const counts = ["documents", "entities", "relations", "attributes"].filter((key) => key in one.counts);
    const gates = h("div", { class: "gates" });
    const element = h(
      "li",
      { class: current ? "panel version is-current" : "panel version", "data-version": one.version },
      h("div", { class: "panel-head" }, h("h2", {}, h("code", {}, one.version)), current && h("span", { class: "badge is-done" }, t("versionServing")), h("span", { class: "muted small" }, moment(one.created))),
      h("dl", { class: "figures" }, counts.map((key) => h("div", {}, h("dt", {}, t(key)), h("dd", {}, number(one.counts[key]))))),
      gates,
      h(
        "div",
        { class: "row end" },
        !current && h("button", { type: "button", onclick: () => compare(served, one.version).catch(told) }, t("versionCompare")),
        !current &&
          h(
            "button",
            { type: "button", class: "primary", disabled: !session.mayOperate, onclick: () => promote(one).catch(told) },
            t("versionPromote"),
          ),
      ),
    );
    drawGates(gates, one.version).catch(told);
    return element;
  }

  async function drawGates(box, version) {
    const { gates } = await get(at(index, `versions/${version}`), {}, signal.signal);
    const names = Object.keys(gates);
    const passed = names.filter((name) => gates[name].passed);
    replace(
      box,
      h(
        "details",
        { open: passed.length < names.length },
        h("summary", {}, icon("open"), h("span", { class: passed.length < names.length ? "bad" : "good" }, t("versionGates", { passed: passed.length, all: names.length }))),
        h(
          "div",
          { class: "table-box", tabindex: 0, role: "region", "aria-label": t("versionGatesTitle") },
          h(
            "table",
            {},
            h("thead", {}, h("tr", {}, ["gate", "gateValue", "gateThreshold"].map((key, at) => h("th", { scope: "col", class: at ? "numeric" : null }, t(key))), h("th", {}))),
            h("tbody", {}, names.map((name) => gateRow(name, gates[name]))),
          ),
        ),
      ),
    );
  }

  async function promote(one) {
    if (!one.refused.length) return change("promote", { version: one.version });
    const dialog = openDialog(
      t("versionPromoteForce"),
      h(
        "div",
        { class: "stack" },
        h("p", {}, t("versionPromoteConfirm", { gates: one.refused.map(words).join(", ") })),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", onclick: () => dialog.close() }, t("cancel")),
          h(
            "button",
            {
              type: "button",
              class: "danger",
              onclick: () => {
                dialog.close();
                change("promote", { version: one.version, force: true }).catch(told);
              },
            },
            t("versionPromoteForce"),
          ),
        ),
      ),
    );
    return undefined;
  }

  async function change(what, body = {}) {
    const done = await post(at(index, `versions/${what}`), body);
    notice(t("versionPromoted", { version: done.current }), "good");
    await session.load();
    await load();
  }

  async function compare(before, after) {
    const body = h("p", { class: "muted" }, t("loading"));
    const dialog = openDialog(t("diffTitle", { before, after }), body, { side: true });
    try {
      const found = await get(at(index, `versions/${after}/diff`), { before }, signal.signal);
      body.replaceWith(differenceTable(found));
    } catch (error) {
      dialog.close();
      throw error;
    }
  }

  return () => signal.abort();
}

function gateRow(name, gate) {
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, words(name), gate.offenders && h("div", { class: "muted small" }, gate.offenders.join(" · "))),
    h("td", { class: "numeric" }, number(gate.value, 4)),
    h("td", { class: "numeric" }, number(gate.threshold, 4)),
    h("td", {}, h("span", { class: gate.passed ? "badge is-done" : "badge is-failed" }, t(gate.passed ? "gatePassed" : "gateRefused"))),
  );
}
