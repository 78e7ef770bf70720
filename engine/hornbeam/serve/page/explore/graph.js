// The picture: sigma.js draws it with WebGL, graphology holds it. Both are loaded when they are first needed.

import { h, replace } from "../dom.js";
import { t } from "../strings.js";
import { words } from "../format.js";
import { told } from "../notices.js";
import { arrange } from "./layout.js";
import { typeColour, variable } from "./colours.js";
import { paceOf } from "./pace.js";

const LIBRARIES = ["graphology-0.26.0.umd.min.js", "sigma-3.0.3.min.js"];
const LONGEST_LABEL = 26;
let loading = null;

export function libraries() {
  loading ??= Promise.all(LIBRARIES.map(script));
  return loading;
}

function script(name) {
  const url = new URL(`vendor/${name}`, document.querySelector("script[type=module]").src);
  return new Promise((resolve, reject) => {
    const element = h("script", { src: url.href, onload: resolve, onerror: () => reject(new Error(`${url.pathname} cannot be loaded`)) });
    element.async = false; // together, but run in their order
    document.head.append(element);
  });
}

function hasWebgl() {
  return document.createElement("canvas").getContext("webgl2") !== null;
}

export function graphView({ choose }) {
  const box = h("div", { class: "graph", "aria-hidden": "true" });
  const available = hasWebgl();
  let renderer = null;
  let wanted = null; // what was to be shown before the libraries were there
  let shown = null;
  let hovered = null;
  let gone = false;
  let dragged = false;
  const pace = paceOf(() => light(true));

  if (!available) replace(box, h("p", { class: "empty muted" }, t("graphUnavailable")));

  async function start() {
    if (!available) return;
    try {
      await libraries();
    } catch (error) {
      told(error);
      return;
    }
    if (gone) return;
    renderer = new globalThis.Sigma(new globalThis.graphology.Graph({ multi: true, type: "mixed" }), box, settings());
    renderer.on("clickNode", ({ node }) => choose(...renderer.getGraph().getNodeAttribute(node, "opens")));
    renderer.on("enterNode", ({ node }) => hover(node));
    renderer.on("leaveNode", () => hover(null));
    const mouse = renderer.getMouseCaptor();
    mouse.on("mousedown", () => {
      dragged = true;
      pace.begin();
    });
    mouse.on("mousemovebody", () => box.classList.toggle("is-moved-light", dragged && renderer.getSetting("hideEdgesOnMove")));
    mouse.on("mouseup", stop);
    if (wanted) draw(wanted);
  }

  function settings() {
    return {
      allowInvalidContainer: true,
      renderEdgeLabels: true,
      defaultEdgeType: "line",
      labelFont: "system-ui, sans-serif",
      labelSize: 13,
      labelColor: { color: variable("--ink") },
      edgeLabelSize: 11,
      edgeLabelColor: { color: variable("--muted") },
      labelDensity: 0.9,
      labelGridCellSize: 90,
      labelRenderedSizeThreshold: 5,
      stagePadding: 48,
      zIndex: true,
      minCameraRatio: 0.05,
      maxCameraRatio: 4,
      defaultDrawNodeHover: drawHover,
      nodeReducer: (node, attributes) =>
        hovered && node !== hovered && !renderer.getGraph().areNeighbors(node, hovered)
          ? { ...attributes, color: variable("--faint"), label: "", zIndex: 0 }
          : node === hovered
            ? { ...attributes, label: attributes.whole, zIndex: 3 }
            : attributes,
      edgeReducer: (edge, attributes) =>
        hovered && !renderer.getGraph().hasExtremity(edge, hovered)
          ? { ...attributes, hidden: true }
          : hovered
            ? { ...attributes, color: variable("--accent"), forceLabel: true }
            : { ...attributes, label: attributes.always ? attributes.label : "" },
    };
  }

  function stop() {
    dragged = false;
    pace.end();
    box.classList.remove("is-moved-light");
  }

  // Whether links and names are left out while the picture is moved.
  function light(yes) {
    renderer.setSetting("hideEdgesOnMove", yes);
    renderer.setSetting("hideLabelsOnMove", yes);
  }

  function hover(node) {
    if (dragged && node !== null) return; // what passes under the pointer is not pointed at
    if (node === hovered) return;
    hovered = node;
    box.classList.toggle("is-pointing", node !== null);
    renderer.refresh({ skipIndexation: true });
  }

  function draw(picture) {
    shown = wanted = picture;
    if (!renderer) return;
    hovered = null;
    box.classList.remove("is-pointing");
    box.classList.toggle("has-edge-names", picture.edges.some((edge) => edge.name));
    pace.again();
    light(false);
    const graph = renderer.getGraph();
    graph.clear();
    const place = new Map(picture.nodes.map((node, at) => [node.id, at]));
    const edges = picture.edges.filter((edge) => place.has(edge.from) && place.has(edge.to) && edge.from !== edge.to);
    const places = arrange(picture.nodes, edges.map((edge) => [place.get(edge.from), place.get(edge.to), edge.weight]));
    picture.nodes.forEach((node, at) =>
      graph.addNode(node.id, { ...places[at], size: node.size, label: short(node.name), whole: node.name, color: node.colour(), opens: node.opens, forceLabel: node.centre, zIndex: node.centre ? 2 : 1 }),
    );
    for (const edge of edges) {
      graph.addEdge(edge.from, edge.to, {
        size: edge.size,
        label: edge.name,
        always: edge.always,
        color: variable("--line-strong"),
        type: edge.directed ? "arrow" : "line",
      });
    }
    renderer.getCamera().setState({ x: 0.5, y: 0.5, ratio: 1, angle: 0 });
    renderer.refresh();
  }

  // Communities with the links between them, or the members of one with their relations.
  function showLevel(found) {
    const scale = Math.min(1, Math.min(box.clientWidth, box.clientHeight) / 640);
    const largest = Math.max(1, ...found.communities.map((one) => one.size));
    draw({
      nodes: [
        ...found.communities.map((one) => ({
          id: `community ${one.id}`,
          name: one.name,
          size: scale * (6 + 18 * Math.sqrt(one.size / largest)),
          colour: () => variable("--community"),
          opens: ["community", one.id],
        })),
        ...found.entities.map(entityNode(null)),
      ],
      edges: [
        ...found.links.map((link) => ({ from: `community ${link.source}`, to: `community ${link.target}`, weight: link.relations, size: 1 + Math.log2(link.relations) * 0.6, name: "" })),
        ...found.relations.map(relationEdge(found.relations.length)),
      ],
    });
  }

  function showNeighbourhood(found, centre, filters) {
    const types = new Set(filters.types);
    const relations = found.relations.filter((one) => one.confidence >= filters.confidence);
    const entities = found.entities.filter((one) => one.id === centre || !types.size || types.has(one.type));
    const degrees = new Map();
    for (const one of relations) for (const end of [one.head.id, one.tail.id]) degrees.set(end, (degrees.get(end) ?? 0) + 1);
    draw({
      nodes: entities.map((one) => entityNode(centre)({ ...one, degree: degrees.get(one.id) ?? 0 })),
      edges: relations.map(relationEdge(relations.length)),
    });
  }

  function end() {
    gone = true;
    stop(); // a picture that is left while it is dragged is told of no "mouseup"
    renderer?.kill();
    renderer = null;
  }

  const camera = () => renderer?.getCamera();
  return {
    element: box,
    available,
    start,
    showLevel,
    showNeighbourhood,
    restyle() {
      if (!renderer) return;
      renderer.setSetting("labelColor", { color: variable("--ink") });
      renderer.setSetting("edgeLabelColor", { color: variable("--muted") });
      draw(shown ?? { nodes: [], edges: [] });
    },
    zoomIn: () => camera()?.animatedZoom({ duration: 200 }),
    zoomOut: () => camera()?.animatedUnzoom({ duration: 200 }),
    fit: () => camera()?.animatedReset({ duration: 250 }),
    end,
  };
}

function entityNode(centre) {
  return (one) => ({
    id: `entity ${one.id}`,
    name: one.name,
    size: (one.id === centre ? 11 : 5) + Math.min(9, 1.5 * Math.log2(1 + one.degree)),
    colour: () => typeColour(one.type),
    opens: ["entity", one.id],
    centre: one.id === centre,
  });
}

function short(name) {
  const letters = Array.from(name);
  return letters.length > LONGEST_LABEL ? `${letters.slice(0, LONGEST_LABEL - 1).join("").trimEnd()}…` : name;
}

const relationEdge = (count) => (one) => ({
  from: `entity ${one.head.id}`,
  to: `entity ${one.tail.id}`,
  weight: 1,
  size: 1 + 1.5 * one.confidence,
  name: words(one.type),
  directed: true,
  always: count <= 24,
});

// A plate under the name of what is pointed at, in the page's colours.
function drawHover(context, data, settings) {
  const size = settings.labelSize;
  context.font = `600 ${size}px ${settings.labelFont}`;
  const width = data.label ? context.measureText(data.label).width + 16 + data.size : 0;
  context.fillStyle = variable("--surface");
  context.strokeStyle = variable("--line-strong");
  context.beginPath();
  if (width) context.roundRect(data.x - data.size - 3, data.y - size, width + data.size + 6, 2 * size, size);
  else context.arc(data.x, data.y, data.size + 3, 0, 2 * Math.PI);
  context.fill();
  context.stroke();
  context.fillStyle = variable("--ink");
  if (data.label) context.fillText(data.label, data.x + data.size + 5, data.y + size / 3);
}
