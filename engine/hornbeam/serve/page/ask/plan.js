// The plan of a question: its sub-questions with their answers, and what was looked for again.

import { h, icon, replace } from "../dom.js";
import { t } from "../strings.js";

export function planView() {
  const list = h("ol", { class: "plan-list" });
  const steps = h("ul", { class: "steps" });
  const element = h("section", { class: "plan", hidden: true, "aria-label": t("plan") }, h("h3", {}, t("plan")), list, steps);
  const rows = new Map();

  function row(number, question) {
    if (!rows.has(number)) {
      const state = h("span", { class: "plan-state" });
      const asked = h("span", { class: "plan-question" });
      const answer = h("span", { class: "plan-answer" });
      const item = h("li", { class: "plan-item", "data-state": "open" }, state, h("span", {}, asked, answer));
      rows.set(number, { item, state, asked, answer });
      list.append(item);
    }
    const found = rows.get(number);
    if (question) found.asked.textContent = question;
    return found;
  }

  function take(event) {
    switch (event.event) {
      case "plan":
        if (event.sub_questions.length < 2) return;
        element.hidden = false;
        event.sub_questions.forEach((one) => row(one.number, one.question));
        break;
      case "sub_question_started": {
        element.hidden = false;
        const one = row(event.number, event.question);
        one.item.dataset.state = "running";
        replace(one.state, h("span", { class: "pulse", role: "img", "aria-label": t("subQuestionRunning") }));
        break;
      }
      case "sub_question_finished": {
        const one = row(event.number, event.question);
        one.item.dataset.state = event.answer ? "done" : "empty";
        replace(one.state, icon(event.answer ? "check" : "minus"));
        one.answer.textContent = event.answer || t("subQuestionEmpty");
        break;
      }
      case "step":
        element.hidden = false;
        steps.append(h("li", {}, said(event)));
        break;
      default: // events that came later than this page, and the usage
    }
  }

  function end() {
    element.querySelectorAll(".pulse").forEach((one) => one.classList.add("is-still"));
  }

  return { element, take, end };
}

function said(step) {
  if (step.action === "search") return t("stepSearch", { query: step.query, count: step.new_evidence });
  if (step.action === "answer") return t("stepAnswer");
  return t("stepStop", { reason: step.reason });
}
