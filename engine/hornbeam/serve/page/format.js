// Numbers and times as the reader writes them.

import { language } from "./strings.js";

const locale = () => (language() === "zh" ? "zh-CN" : "en-GB");

export function number(value, digits = 0) {
  return new Intl.NumberFormat(locale(), { maximumFractionDigits: digits }).format(value);
}

export function compact(value) {
  return new Intl.NumberFormat(locale(), { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

export function money(value, currency) {
  try {
    return new Intl.NumberFormat(locale(), { style: "currency", currency, maximumFractionDigits: value < 1 ? 4 : 2 }).format(value);
  } catch {
    return `${number(value, 4)} ${currency}`; // a name that is no code of a currency
  }
}

export function duration(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${number(seconds, seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function moment(unixSeconds) {
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "short" }).format(unixSeconds * 1000);
}

// "born_in" reads as "born in".
export function words(name) {
  return name.replaceAll("_", " ");
}
