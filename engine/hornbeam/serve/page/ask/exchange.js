// One question and its answer, drawn as the events come in.

import { at, post } from "../api.js";
import { h, icon, replace } from "../dom.js";
import { t } from "../strings.js";
import { duration, number } from "../format.js";
import { announce, told } from "../notices.js";
import { openDocument } from "../document_panel.js";
import { session } from "../session.js";
import { evidenceCard } from "./evidence.js";
import { planView } from "./plan.js";

export function exchange(index, question) {
  const standalone = h("p", { class: "muted small", hidden: true });
  const plan = planView();
  const status = h("p", { class: "status" }, h("span", { class: "pulse" }), h("span", {}, t("searching")));
  const answer = h("div", { class: "answer", hidden: true });
  const notes = h("div", { class: "notes" });
  const foot = h("div", { class: "answer-foot", hidden: true });
  const count = h("span", { class: "count" });
  const cards = h("ol", { class: "evidence-list" });
  const side = h("aside", { class: "evidence", hidden: true, "aria-label": t("evidence") }, h("h3", {}, t("evidence"), count), cards);
  const element = h(
    "article",
    { class: "exchange", "aria-label": question, "aria-busy": "true" },
    h("div", { class: "exchange-main" }, h("h2", { class: "question" }, question), standalone, plan.element, status, answer, notes, foot),
    side,
  );
  const pieces = new Map();
  let text = "";
  let ended = false;
  const shown = { element, take, end, requestId: null };

  function take(event) {
    switch (event.event) {
      case "question":
        if (event.standalone !== event.question) {
          standalone.hidden = false;
          standalone.textContent = t("standalone", { question: event.standalone });
        }
        break;
      case "evidence":
        event.evidence.forEach(addEvidence);
        break;
      case "token":
        text += event.text;
        drawAnswer();
        break;
      case "citation":
        addEvidence(event.evidence);
        pieces.get(event.evidence.label).card.classList.add("is-cited");
        drawAnswer();
        break;
      case "final":
        finish(event);
        break;
      case "error":
        end(event.message);
        break;
      default:
        plan.take(event);
    }
  }

  function addEvidence(piece) {
    if (pieces.has(piece.label)) return;
    const card = evidenceCard(piece, () => openDocument(piece));
    pieces.set(piece.label, { piece, card });
    cards.append(card);
    side.hidden = false;
    count.textContent = t("evidenceCount", { count: pieces.size });
    if (!text) status.lastChild.textContent = t("writing");
  }

  // "Polonium [1]." with its marks as buttons.
  function drawAnswer() {
    answer.hidden = false;
    status.hidden = true;
    const parts = text.split(/\s?\[(\d+)\]/);
    replace(answer, parts.map((part, at) => (at % 2 ? citation(Number(part)) : part)));
    if (!ended) answer.append(h("span", { class: "caret", "aria-hidden": "true" }));
  }

  function citation(label) {
    const known = pieces.get(label);
    if (!known) return `[${label}]`;
    const light = (on) => known.card.classList.toggle("is-lit", on);
    return h(
      "button",
      {
        type: "button",
        class: "cite",
        title: known.piece.title || known.piece.source || "",
        "aria-label": t("showSource", { label }),
        disabled: known.piece.document_id === null,
        onclick: () => openDocument(known.piece),
        onmouseenter: () => light(true),
        onmouseleave: () => light(false),
        onfocus: () => light(true),
        onblur: () => light(false),
      },
      label,
    );
  }

  function finish(final) {
    ended = true;
    text = final.answer;
    final.citations.forEach((piece) => {
      addEvidence(piece);
      pieces.get(piece.label).card.classList.add("is-cited");
    });
    drawAnswer();
    answer.classList.toggle("is-rejected", final.rejected);
    const said = [];
    if (final.rejected && final.missing.length) said.push(t("missing", { terms: final.missing.join(", ") }));
    if (final.out_of_time) said.push(t("outOfTime"));
    else if (final.cut) said.push(t("cut"));
    replace(notes, said.map((one) => h("p", { class: "note" }, one)));
    const spent = final.milliseconds;
    foot.hidden = false;
    replace(
      foot,
      h(
        "span",
        { class: "muted small spent" },
        t("used", {
          engine: final.engine,
          first: spent.first_token === undefined ? "–" : duration(spent.first_token / 1000),
          total: duration((spent.total ?? 0) / 1000),
          output: number(final.tokens.output ?? 0),
        }),
      ),
      h(
        "button",
        {
          type: "button",
          class: "quiet round",
          "aria-label": t("copy"),
          title: t("copy"),
          onclick: () => navigator.clipboard.writeText(text).then(() => announce(t("copied")), told),
        },
        icon("copy"),
      ),
      session.feedback && shown.requestId && feedback(index, shown.requestId),
    );
    end();
  }

  function end(problem = "") {
    ended = true;
    element.removeAttribute("aria-busy");
    status.hidden = true;
    answer.querySelector(".caret")?.remove();
    plan.end();
    if (problem) notes.append(h("p", { class: "note bad" }, problem));
  }

  return shown;
}

function feedback(index, requestId) {
  const box = h("span", { class: "feedback" });
  const note = h("input", { type: "text", maxlength: 2000, placeholder: t("feedbackNote"), "aria-label": t("feedbackNote") });
  const send = async (rating, said) => {
    await post(at(index, `questions/${requestId}/feedback`), { rating, note: said });
    announce(t("feedbackThanks"));
  };
  const vote = (rating) =>
    h(
      "button",
      {
        type: "button",
        class: "quiet round",
        "aria-label": t(rating === "up" ? "feedbackUp" : "feedbackDown"),
        title: t(rating === "up" ? "feedbackUp" : "feedbackDown"),
        onclick: () => send(rating, "").then(() => ask(rating), told),
      },
      icon(rating),
    );
  function ask(rating) {
    const thanks = () => replace(box, h("span", { class: "muted small" }, t("feedbackThanks")));
    const form = h(
      "form",
      {
        class: "row",
        onsubmit: (event) => {
          event.preventDefault();
          if (note.value.trim()) send(rating, note.value.trim()).then(thanks, told);
          else thanks();
        },
      },
      note,
      h("button", { type: "submit", class: "small" }, t("feedbackSend")),
    );
    replace(box, form);
    note.focus();
  }
  replace(box, vote("up"), vote("down"));
  return box;
}
