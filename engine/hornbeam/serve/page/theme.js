// Light or dark: as the system has it until somebody chooses.

const STORED = "hornbeam.theme";
const watchers = new Set();
const system = matchMedia("(prefers-color-scheme: dark)");

export function startTheme() {
  apply(localStorage.getItem(STORED));
  system.addEventListener("change", tell);
}

export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : system.matches;
}

export function toggleTheme() {
  const theme = isDark() ? "light" : "dark";
  localStorage.setItem(STORED, theme);
  apply(theme);
  tell();
}

// Calls back with every change; returns what ends that.
export function onTheme(callback) {
  watchers.add(callback);
  return () => watchers.delete(callback);
}

function apply(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}

function tell() {
  for (const callback of watchers) callback();
}
