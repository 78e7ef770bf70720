// Elements from names, attributes and children. Text is always text: nothing here reads HTML.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

export function add(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

const ICONS = {
  ask: "M4 5h16v11H9l-5 4z",
  explore: "M6 6m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0M18 8m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0M11 18m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0M8.4 6.600l7.1 1M7 8.300l3 7.400M16.5 10l-4 6",
  builds: "M4 18h16M6 18v-5M10.7 18V8M15.3 18v-7M20 18V5",
  versions: "M12 3l8 4.5-8 4.5-8-4.5zM4 12l8 4.5 8-4.5M4 16.5L12 21l8-4.5",
  schema: "M5 4h6v5H5zM13 15h6v5h-6zM8 9v8.5h5M8 12h5",
  up: "M7 11v9H4v-9zM7 12l4-8c1.5 0 2.5 1 2.2 2.600L12.5 10H19c1 0 1.6 1 1.3 2l-2 6.5c-.2.9-1 1.5-1.9 1.5H7",
  down: "M17 13V4h3v9zM17 12l-4 8c-1.5 0-2.5-1-2.2-2.600l.7-3.400H5c-1 0-1.6-1-1.3-2l2-6.5C5.9 4.6 6.7 4 7.6 4H17",
  key: "M14.5 9.5m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0M11 13l-7 7M6 18l2.5 2.5",
  close: "M6 6l12 12M18 6L6 18",
  check: "M5 12.5l4.5 4.5L19 7.5",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  sun: "M12 12m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0M12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.600l1.1 1.100M17.3 17.300l1.1 1.100M18.4 5.600l-1.1 1.100M6.7 17.300l-1.1 1.1",
  help: "M12 12m-9 0a9 9 0 1 0 18 0a9 9 0 1 0-18 0M9.5 9.5c.3-3 5-3 5 0c0 2-2.5 2-2.5 4M12 16.800v.1",
  open: "M9 6l6 6-6 6",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
};

export function icon(name) {
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}
