// A build that runs: its stages, rate, time left, tokens and cost.

import { h, replace } from "../dom.js";
import { t } from "../strings.js";
import { compact, duration, money, number } from "../format.js";
import { told } from "../notices.js";

export function progressCard(build, cancel) {
  const title = h("h2", {}, t("buildRunning"));
  const said = h("p", { class: "muted small build-said" });
  const stages = h("ol", { class: "stages" });
  const figures = h("dl", { class: "figures" });
  const rows = new Map();
  let asked = build.state === "stopping";
  const stop = h("button", { type: "button", onclick: request }, t(asked ? "buildCancelNow" : "buildCancel"));
  const element = h("section", { class: "panel is-running", "aria-label": t("buildRunning") }, h("div", { class: "panel-head" }, title, stop), stages, figures, said);

  async function request() {
    stop.disabled = true;
    try {
      await cancel(asked);
      asked = true;
      title.textContent = t("buildStopping");
      stop.textContent = t("buildCancelNow");
    } catch (error) {
      told(error);
    }
    stop.disabled = false;
  }

  function take(event) {
    if (event.event === "said") said.textContent = event.said;
    if (event.event !== "progress") return;
    const stage = rows.get(event.stage) ?? newStage(event.stage);
    const measured = { done: number(event.done), total: number(event.total ?? 0), unit: event.unit };
    stage.said.textContent = t(event.total === null ? "stageDone" : "stageOf", measured);
    stage.rate.textContent = event.ended ? duration(event.seconds) : t("rate", { rate: number(event.rate, 1), unit: event.unit });
    if (event.total === null && !event.ended) stage.bar.removeAttribute("value");
    else {
      stage.bar.max = Math.max(1, event.total ?? event.done);
      stage.bar.value = event.ended ? stage.bar.max : event.done;
    }
    stage.item.classList.toggle("is-done", event.ended === true);
    const cost = event.cost;
    figure("elapsed", duration(event.elapsed_s));
    figure("stageLeft", event.left_s === null || event.ended ? "–" : duration(event.left_s));
    if (event.tokens) figure("tokens", compact(event.tokens.prompt + event.tokens.output));
    if (cost) figure("cost", cost.total === null ? t("costUnknown") : money(cost.total, cost.currency));
  }

  function newStage(name) {
    const label = t(`stage_${name}`);
    const bar = h("progress", { "aria-label": label });
    const words = h("span", { class: "stage-said" });
    const rate = h("span", { class: "stage-rate muted small" });
    const item = h("li", { class: "stage" }, h("div", { class: "stage-head" }, h("span", {}, label), words, rate), bar);
    stages.append(item);
    const stage = { item, bar, said: words, rate };
    rows.set(name, stage);
    return stage;
  }

  const drawn = new Map();
  function figure(key, value) {
    if (!drawn.has(key)) {
      drawn.set(key, h("dd", {}));
      figures.append(h("div", {}, h("dt", {}, t(key)), drawn.get(key)));
    }
    replace(drawn.get(key), value);
  }

  return { element, take };
}
