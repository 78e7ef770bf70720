// The page's words in the reader's language.

import { en } from "./strings/en.js";
import { zh } from "./strings/zh.js";

const LANGUAGES = { en, zh };
const STORED = "hornbeam.language";

let chosen = stored() ?? ((navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en");

function stored() {
  const name = localStorage.getItem(STORED);
  return name in LANGUAGES ? name : null;
}

export function language() {
  return chosen;
}

export function setLanguage(name) {
  chosen = name;
  localStorage.setItem(STORED, name);
  document.documentElement.lang = name === "zh" ? "zh-Hans" : "en";
}

// t("found", {count: 3}): `{count}` in the string is filled in.
export function t(key, values = {}) {
  const text = LANGUAGES[chosen][key] ?? en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
