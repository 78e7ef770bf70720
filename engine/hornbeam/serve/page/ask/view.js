// Ask: a conversation with an index, answers streaming in with their plan and evidence.

import { at, events, get } from "../api.js";
import { h, icon, replace } from "../dom.js";
import { t } from "../strings.js";
import { session } from "../session.js";
import { announce, told } from "../notices.js";
import { exchange } from "./exchange.js";

const STARTERS = 5;
// As index.html has it, empty.
const standing = document.querySelector(".ask.is-waiting").cloneNode(true);
standing.querySelector("textarea").value = "";
// Of each index, as long as the page is open.
const conversations = new Map();

export function askView(main) {
  const index = session.name;
  if (!conversations.has(index)) conversations.set(index, []);
  const turns = conversations.get(index);
  // The field may have been typed into before the scripts were there: its element is not replaced.
  const waiting = main.querySelector(".ask.is-waiting");
  const ask = waiting ?? standing.cloneNode(true);
  ask.classList.remove("is-waiting");
  const part = (selector) => ask.querySelector(selector);
  const [thread, starters, field, form, button] = [".thread", ".starters", "textarea", ".ask-form", ".send"].map(part);
  field.setAttribute("aria-label", t("askTitle"));
  field.addEventListener("input", () => grow(field));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      submit();
    }
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) running.abort();
    else submit();
  });
  const engine = choice("engine", ["auto", "mix", "local", "global", "naive", "plan"], (name) => t(`engine${capital(name)}`));
  const mode = choice("mode", ["", "open", "reject"], (name) => t(`mode${capital(name || "server")}`));
  const again = h("button", { type: "button", class: "quiet small", onclick: restart }, icon("plus"), t("askNew"));
  button.disabled = false;
  part(".ask-title").textContent = t("askTitle");
  replace(part(".ask-options"), engine.label, mode.label, again);
  let running = null;

  if (!waiting) replace(main, ask);
  grow(field);
  for (const turn of turns) thread.append(turn.element);
  ready();
  if (!turns.length) offerStarters();
  field.focus();

  function ready() {
    running = null;
    const asked = turns.length > 0;
    main.classList.toggle("has-thread", asked);
    field.placeholder = asked ? t("askFollow") : t("askPlaceholder", { index });
    again.hidden = !asked;
    replace(button, icon("send"));
    button.setAttribute("aria-label", t("askButton"));
  }

  async function submit() {
    const question = field.value.trim();
    if (!question || running) return;
    running = new AbortController();
    replace(starters);
    field.value = "";
    grow(field);
    replace(button, icon("stop"));
    button.setAttribute("aria-label", t("askStop"));
    const history = turns.filter((turn) => turn.answer !== null).map(({ question, answer }) => ({ question, answer }));
    const shown = exchange(index, question);
    const turn = { question, answer: null, element: shown.element };
    turns.push(turn);
    main.classList.add("has-thread");
    thread.append(shown.element);
    shown.element.scrollIntoView({ block: "start", behavior: "smooth" });
    const body = { question, engine: engine.select.value, history: history.slice(-8) };
    if (mode.select.value) body.mode = mode.select.value;
    try {
      const stream = events(at(index, "ask"), {
        body,
        signal: running.signal,
        response: (response) => (shown.requestId = response.headers.get("X-Request-Id")),
      });
      for await (const event of stream) {
        shown.take(event);
        if (event.event === "question") turn.question = event.standalone;
        if (event.event === "final") {
          turn.answer = event.rejected ? "" : event.answer.replace(/\s*\[\d+\]/g, "");
          announce(t("answerReady"));
        }
      }
      shown.end();
    } catch (error) {
      shown.end(error.name === "AbortError" ? t("askStopped") : error.message);
    }
    ready();
  }

  function restart() {
    running?.abort();
    turns.length = 0;
    replace(thread);
    ready();
    offerStarters();
    field.focus();
  }

  async function offerStarters() {
    try {
      const found = await get(at(index, "entities"), { limit: STARTERS });
      if (turns.length || !found.entities.length) return;
      replace(
        starters,
        h("p", { class: "muted small" }, t("askAbout")),
        h(
          "div",
          { class: "chips" },
          found.entities.map((one) =>
            h(
              "button",
              {
                type: "button",
                class: "chip",
                onclick: () => {
                  field.value = t("askStarter", { name: one.name });
                  submit();
                },
              },
              one.name,
            ),
          ),
        ),
      );
    } catch (error) {
      told(error);
    }
  }

  return () => running?.abort();
}

function choice(name, values, label) {
  const select = h("select", { id: `ask-${name}` }, values.map((value) => h("option", { value }, label(value))));
  return { select, label: h("label", { class: "option" }, h("span", {}, t(name)), select) };
}

function capital(name) {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function grow(field) {
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight, 220)}px`;
}
