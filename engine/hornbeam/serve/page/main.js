// The frame of the page: which view is shown, of which index, in which language.

import { h, icon, replace } from "./dom.js";
import { setLanguage, language, t } from "./strings.js";
import { session } from "./session.js";
import { startTheme, toggleTheme } from "./theme.js";
import { openHelp, openKeyDialog } from "./dialogs.js";
import { told } from "./notices.js";
import { askView } from "./ask/view.js";
import { exploreView } from "./explore/view.js";
import { libraries } from "./explore/graph.js";
import { buildsView } from "./operate/builds.js";
import { versionsView } from "./operate/versions.js";
import { schemaView } from "./operate/schema.js";

const VIEWS = { ask: askView, explore: exploreView, builds: buildsView, versions: versionsView, schema: schemaView };
const main = document.getElementById("main");
let leave = () => {};

function place() {
  const [, view = "ask", ...rest] = location.hash.slice(1).split("/");
  return { view: view in VIEWS ? view : "ask", rest: rest.map(decodeURIComponent) };
}

function show() {
  leave();
  leave = () => {};
  const { view, rest } = place();
  document.title = `${t(view)} – Hornbeam`;
  document.documentElement.dataset.view = view;
  drawFrame(view);
  // What index.html has in it is taken over by the view that it is of.
  if (view !== "ask" || !session.index || !main.querySelector(".is-waiting")) replace(main);
  main.className = `view view-${view}`;
  if (!session.index) {
    main.append(h("p", { class: "empty" }, t("noIndexes")));
    return;
  }
  leave = VIEWS[view](main, rest) ?? (() => {});
}

function drawFrame(view) {
  document.getElementById("skip").textContent = t("skip");
  const nav = document.getElementById("views");
  nav.setAttribute("aria-label", t("views"));
  replace(
    nav,
    Object.keys(VIEWS).map((name) =>
      h("a", { href: `#/${name}`, "aria-current": name === view ? "page" : null }, icon(name), h("span", {}, t(name))),
    ),
  );
  const choice = h(
    "select",
    {
      "aria-label": t("index"),
      onchange: (event) => {
        session.choose(event.target.value);
        show();
      },
    },
    session.indexes.map((one) => h("option", { value: one.name, selected: one.name === session.name }, one.name)),
  );
  replace(document.getElementById("index-choice"), session.indexes.length > 0 && choice);
  replace(
    document.getElementById("tools"),
    tool("key", t("key"), () => openKeyDialog(start)),
    h(
      "button",
      {
        type: "button",
        class: "quiet language",
        lang: language() === "zh" ? "en" : "zh-Hans",
        "aria-label": t("languageSwitch"),
        onclick: () => {
          setLanguage(language() === "zh" ? "en" : "zh");
          show();
        },
      },
      t("languageName"),
    ),
    tool("sun", t("theme"), toggleTheme),
    tool("help", t("help"), openHelp),
  );
}

function tool(name, label, onclick) {
  return h("button", { type: "button", class: `quiet round tool-${name}`, "aria-label": label, title: label, onclick }, icon(name));
}

async function start() {
  try {
    await session.load();
  } catch (error) {
    drawFrame(place().view);
    if (error.status === 401) openKeyDialog(start, t(error.message.includes("not known") ? "keyWrong" : "keyNeeded"));
    else told(error);
    return;
  }
  show();
}

addEventListener("hashchange", () => {
  show();
  main.focus();
});
addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, dialog");
  if (event.key === "/" && !typing) {
    const field = main.querySelector("[data-first]");
    if (field) {
      event.preventDefault();
      field.focus();
    }
  } else if (event.key === "?" && !typing) {
    openHelp();
  } else if (event.altKey && "12345".includes(event.key)) {
    event.preventDefault();
    location.hash = `#/${Object.keys(VIEWS)[Number(event.key) - 1]}`;
  }
});

setLanguage(language());
startTheme();
if (place().view === "explore") libraries().catch(() => {}); // the view says so itself, where they do not come
start();
