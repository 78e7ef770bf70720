// The schema, the types that were found to be missing in it, accepting and undoing.

import { at, get, post } from "../api.js";
import { h, replace } from "../dom.js";
import { t } from "../strings.js";
import { number, words } from "../format.js";
import { session } from "../session.js";
import { notice, told } from "../notices.js";
import { operateHint } from "../dialogs.js";
import { typeColour } from "../explore/colours.js";

export function schemaView(main) {
  const index = session.name;
  const signal = new AbortController();
  const pending = h("div", {});
  const proposals = h("section", { class: "panel" });
  const types = h("section", { class: "panel" });
  replace(main, h("div", { class: "page" }, h("h1", {}, t("schema")), !session.mayOperate && operateHint(() => location.reload()), pending, proposals, types));
  load().catch(told);

  async function load() {
    const [found, proposed] = await Promise.all([
      get(at(index, "schema"), {}, signal.signal),
      get(at(index, "schema/proposals"), {}, signal.signal),
    ]);
    drawPending(found);
    drawProposals(proposed.proposals);
    drawTypes(found.served);
  }

  function drawPending(found) {
    const next = found.next;
    const differs = next && next.version !== found.served.version;
    replace(
      pending,
      (differs || found.can_undo) &&
        h(
          "div",
          { class: "panel is-pending" },
          h("p", {}, t("schemaNext", { version: next.version, changes: (next.changes ?? []).join(", ") || next.name })),
          found.can_undo && h("button", { type: "button", disabled: !session.mayOperate, onclick: () => undo().catch(told) }, t("schemaUndo")),
        ),
    );
  }

  function drawProposals(all) {
    const passing = all.filter((one) => one.passes);
    const refused = all.filter((one) => !one.passes);
    replace(
      proposals,
      h(
        "div",
        { class: "panel-head" },
        h("h2", {}, t("proposals")),
        passing.length > 1 && h("button", { type: "button", class: "primary", disabled: !session.mayOperate, onclick: () => accept([], false).catch(told) }, t("acceptAll")),
      ),
      h("p", { class: "muted" }, t("proposalsHelp")),
      all.length === 0 && h("p", {}, t("proposalsNone")),
      passing.length > 0 && [h("h3", {}, t("proposalsPass")), h("ul", { class: "proposals" }, passing.map(card))],
      refused.length > 0 &&
        h("details", {}, h("summary", {}, `${t("proposalsRefused")} (${refused.length})`), h("ul", { class: "proposals" }, refused.map(card))),
    );
  }

  function card(one) {
    const facts = [
      t("proposalSupport", { count: number(one.support) }),
      t("confidence", { value: number(one.confidence, 2) }),
      one.nearest && t("proposalNearest", { name: words(one.nearest), value: number(one.similarity, 2) }),
      one.also.length > 0 && t("proposalAlso", { names: one.also.map(words).join(", ") }),
    ];
    const examples = one.examples.slice(0, 4).map((example) => example.places.map((place) => place.surface).join(" → "));
    return h(
      "li",
      { class: "proposal" },
      h(
        "div",
        {},
        h("p", { class: "proposal-name" }, h("span", { class: "badge" }, t(`kind_${one.kind}`)), h("strong", {}, words(one.name)), signature(one)),
        h("p", { class: "muted small" }, facts.filter(Boolean).join(" · ")),
        one.objections.length > 0 && h("p", { class: "bad small" }, one.objections.join("; ")),
        examples.length > 0 && h("p", { class: "small examples" }, examples.map((text) => h("q", {}, text))),
      ),
      h(
        "button",
        { type: "button", disabled: !session.mayOperate, onclick: () => accept([`${one.kind}:${one.name}`], !one.passes).catch(told) },
        t(one.passes ? "accept" : "acceptForce"),
      ),
    );
  }

  function drawTypes(schema) {
    const dot = (name) => {
      const element = h("span", { class: "dot", "aria-hidden": "true" });
      element.style.background = typeColour(name);
      return element;
    };
    const row = (name, mark, detail) => h("li", {}, h("span", { class: "type-name" }, mark, words(name)), detail && h("span", { class: "muted small" }, detail));
    replace(
      types,
      h("h2", {}, t("schemaServed", { name: schema.name, version: schema.version })),
      h(
        "div",
        { class: "type-lists" },
        column("entityTypes", schema.entity_types.map((one) => row(one.name, dot(one.name), one.description))),
        column("relationTypes", schema.relation_types.map((one) => row(one.name, null, `${side(one.domain)} → ${side(one.range)}`))),
        column("attributeTypes", schema.attribute_types.map((one) => row(one.name, null, `${side(one.domain)} · ${one.kind}`))),
      ),
    );
  }

  async function accept(names, force) {
    const done = await post(at(index, "schema/accept"), { types: names, force });
    notice(t("accepted", { version: done.version }), "good");
    await load();
  }

  async function undo() {
    const done = await post(at(index, "schema/undo"), {});
    notice(t("schemaUndone", { version: done.version }), "good");
    await load();
  }

  return () => signal.abort();
}

function column(key, rows) {
  return h("section", {}, h("h3", {}, `${t(key)} (${rows.length})`), h("ul", { class: "plain types" }, rows));
}

function side(names) {
  return names && names.length ? names.map(words).join(", ") : t("schemaAny");
}

function signature(one) {
  if (one.kind === "entity") return null;
  const ends = one.kind === "relation" ? `${side(one.domain)} → ${side(one.range)}` : `${side(one.domain)} · ${one.value_kind}`;
  return h("span", { class: "muted small" }, ends);
}
