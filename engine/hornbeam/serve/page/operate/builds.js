// Builds: start one, see how far it has come, what it costs and how long it takes, stop it.

import { at, events, get, post } from "../api.js";
import { h, replace } from "../dom.js";
import { t } from "../strings.js";
import { moment } from "../format.js";
import { session } from "../session.js";
import { announce, told } from "../notices.js";
import { operateHint } from "../dialogs.js";
import { progressCard } from "./progress.js";

const UNDER_WAY = new Set(["running", "stopping"]);

export function buildsView(main) {
  const index = session.name;
  const signal = new AbortController();
  const running = h("div", {});
  const history = h("section", { class: "panel" });
  const source = h("select", { id: "build-source" });
  const full = h("input", { type: "checkbox" });
  const evolve = h("input", { type: "checkbox" });
  const button = h("button", { type: "submit", class: "primary", "data-first": true }, t("buildButton"));
  const form = h(
    "form",
    {
      class: "panel",
      onsubmit: (event) => {
        event.preventDefault();
        start().catch(told);
      },
    },
    h("h2", {}, t("buildStart")),
    h("p", { class: "muted" }, t("buildStartHelp")),
    h("div", { class: "fields" }, h("label", { class: "field" }, h("span", {}, t("buildSource")), source), check(full, "buildFull"), check(evolve, "buildEvolve")),
    h("div", { class: "row end" }, button),
  );

  replace(main, h("div", { class: "page" }, h("h1", {}, t("builds"))));
  const page = main.firstChild;
  if (!session.mayOperate) {
    page.append(operateHint(() => location.reload()));
    return undefined;
  }
  page.append(running, form, history);
  load().catch(told);

  async function load() {
    const found = await get(at(index, "builds"), {}, signal.signal);
    replace(source, h("option", { value: "" }, t("buildSourceAll")), found.sources.map((name) => h("option", { value: name }, name)));
    const current = found.builds.find((one) => UNDER_WAY.has(one.state));
    form.hidden = current !== undefined;
    drawHistory(found.builds.filter((one) => one !== current));
    replace(running);
    if (current) watch(current).catch(told);
  }

  async function start() {
    button.disabled = true;
    try {
      await post(at(index, "builds"), { source: source.value || null, full: full.checked, evolve: evolve.checked });
      await load();
    } finally {
      button.disabled = false;
    }
  }

  async function watch(build) {
    const card = progressCard(build, (now) => post(at(index, `builds/${build.build}/cancel`), { now }));
    replace(running, card.element);
    let ended = false;
    while (!ended && !signal.signal.aborted) {
      for await (const event of events(at(index, `builds/${build.build}/events`), { signal: signal.signal })) {
        card.take(event);
        if (event.event === "end") {
          ended = true;
          announce(t("buildEnded", { state: t(`buildState_${event.state}`) }));
        }
      }
    }
    await session.load();
    await load();
  }

  function drawHistory(builds) {
    replace(
      history,
      h("h2", {}, t("buildHistory")),
      builds.length
        ? h(
            "div",
            { class: "table-box", tabindex: 0, role: "region", "aria-label": t("buildHistory") },
            h(
              "table",
              {},
              h("thead", {}, h("tr", {}, ["when", "what", "result"].map((key) => h("th", { scope: "col" }, t(key))))),
              h("tbody", {}, builds.map(row)),
            ),
          )
        : h("p", { class: "muted" }, t("buildNone")),
    );
  }

  return () => signal.abort();
}

function row(build) {
  const extras = [build.full && t("buildFullShort"), build.evolve && t("buildEvolveShort")].filter(Boolean);
  return h(
    "tr",
    {},
    h("td", {}, moment(build.started)),
    h("td", {}, build.source ?? t("buildSourceAll"), extras.length > 0 && h("span", { class: "muted small" }, ` · ${extras.join(" · ")}`)),
    h(
      "td",
      {},
      h("span", { class: `badge is-${build.state}` }, t(`buildState_${build.state}`)),
      build.version && h("code", { class: "small" }, build.version),
      build.message && h("div", { class: "muted small" }, build.message),
    ),
  );
}

function check(box, key) {
  return h("label", { class: "check" }, box, h("span", {}, t(key)));
}
