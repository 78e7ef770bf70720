// The server's routes, as promises and event streams. The key stays in this tab.

import { t } from "./strings.js";

const STORED = "hornbeam.key";

export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function key() {
  return sessionStorage.getItem(STORED) ?? "";
}

export function setKey(secret) {
  if (secret) sessionStorage.setItem(STORED, secret);
  else sessionStorage.removeItem(STORED);
}

function request(path, { method = "GET", body, accept = "application/json", signal } = {}) {
  const headers = { Accept: accept };
  if (key()) headers.Authorization = `Bearer ${key()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  return fetch(new URL(path, document.baseURI), {
    method,
    headers,
    signal,
    body: body === undefined ? undefined : JSON.stringify(body),
    credentials: "omit",
  });
}

async function checked(path, options) {
  let response;
  try {
    response = await request(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, t("offline"));
  }
  if (response.ok) return response;
  let message = response.statusText;
  try {
    message = (await response.json()).error.message;
  } catch {
    // No body of ours, as from a proxy: its status must do.
  }
  throw new Failure(response.status, message);
}

export async function get(path, values = {}, signal) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, one);
  }
  const asked = query.size ? `${path}?${query}` : path;
  return (await checked(asked, { signal })).json();
}

export async function post(path, body, signal) {
  return (await checked(path, { method: "POST", body, signal })).json();
}

// Server-sent events. `response` is told of the response before its first event.
export async function* events(path, { body, signal, response: told } = {}) {
  const response = await checked(path, {
    method: body === undefined ? "GET" : "POST",
    body,
    accept: "text/event-stream",
    signal,
  });
  told?.(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    held += value;
    const parts = held.split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      const data = part.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice(6));
    }
  }
}

export function at(index, rest) {
  return `v1/${encodeURIComponent(index)}/${rest}`;
}
