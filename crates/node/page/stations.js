// Stations and nodes: who hears whom, as far as this node knows.

import { ask } from "./api.js";
import { channel } from "./channel.js";
import { draw, empty, facts, make, replace, say } from "./dom.js";
import { count, duration, plural, shortNode } from "./format.js";
import { onStatus, status } from "./state.js";

/** Maximum number of nodes on the map: more are unreadable, and the table has them. */
const MAP_MAX = 40;
/** Time between two requests for the stations heard, ms. */
const HEARD_MS = 5000;

export const title = "Stations";

let map;
let table;
let heardPlace;
let timeline;
let heard = null;
let isAvailable = null;
let isShown = false;
let askedAt = 0;
let drawn = "";

export function build(root) {
  map = make("div", { class: "card" });
  table = make("div", { class: "card wide" });
  heardPlace = make("div", { class: "card wide" });
  timeline = channel();
  root.append(make("h3", {}, "Who hears whom"), map, make("h3", {}, "Connections"), table, make("h3", {}, "Stations heard on the radio"), heardPlace,
    make("h3", {}, "Who transmits when"), timeline.element);
  onStatus(() => {
    if (isShown) update();
  });
  new ResizeObserver(() => {
    if (isShown && status) render();
  }).observe(map);
}

export function show() {
  isShown = true;
  update();
}

export function hide() {
  isShown = false;
}

async function update() {
  if (!status) return;
  render();
  timeline.update(status.tncs);
  if (isAvailable === false || performance.now() - askedAt < HEARD_MS || status.tncs.length === 0) return;
  askedAt = performance.now();
  try {
    heard = (await ask("GET", "/heard")).stations;
    isAvailable = true;
  } catch (error) {
    if (error.status === 404) isAvailable = false;
  }
  render();
}

/** Connections that the node knows: from, to, whether they are up, and how it knows. */
function connections() {
  const all = new Map();
  const enter = (from, to, isUp, how, since) => {
    const key = `${from} ${to}`;
    if (!all.has(key) || (isUp && !all.get(key).isUp)) all.set(key, { from, to, isUp, how, since });
  };
  const here = status.node;
  // A station is the node that is known to have its callsign.
  const owners = new Map(status.tncs.map((tnc) => [tnc.callsign, here]));
  for (const link of status.links) if (link.peer && link.radio?.peer) owners.set(link.radio.peer, link.peer);
  for (const link of status.links) {
    if (link.group) continue;
    const peer = link.peer ?? link.radio?.peer ?? (link.calls ? null : link.name);
    if (peer) enter(here, peer, link.up, `link ${link.name}${link.radio ? `, ${link.radio.callsign} on TNC ${link.radio.tnc}` : ""}`, link.since_s);
  }
  for (const route of status.learned_routes) {
    for (const link of route.links) enter(route.node, link.to, link.down_s === null, `announced by ${route.node}`, route.announced_s);
  }
  for (const station of heard ?? []) {
    enter(owners.get(station.callsign) ?? station.callsign, here, true, `${station.callsign} heard on TNC ${station.tnc}`, null);
  }
  return [...all.values()];
}

function render() {
  const all = connections();
  const now = JSON.stringify([all.map(({ from, to, isUp, how }) => [from, to, isUp, how]), heard, isAvailable, map.clientWidth, Math.floor(performance.now() / 10_000)]);
  if (now === drawn) return;
  drawn = now;
  if (all.length === 0) {
    replace(map, empty("This node knows of no other node.", "Connections appear here when a link is configured, or another node connects."));
    replace(table, empty("No connections."));
  } else {
    replace(map, drawMap(all));
    replace(table, drawTable(all));
  }
  renderHeard();
}

function drawTable(all) {
  const rows = all.map(({ from, to, isUp, how, since }) => make("tr", {},
    make("td", {}, shortNode(from)), make("td", {}, shortNode(to)),
    make("td", {}, isUp ? "▲ up" : "▼ down"), make("td", {}, how), make("td", {}, since === null || since === undefined ? "" : duration(since))));
  return make("table", {}, make("caption", { class: "unseen" }, "Connections between nodes"),
    make("thead", {}, make("tr", {}, ["From", "To", "State", "Known from", "Since"].map((name) => make("th", { scope: "col" }, name)))), make("tbody", {}, rows));
}

/** The nodes on a circle around this one, with a line for each connection: solid if it is up, dashed if it is down. */
function drawMap(all) {
  const here = status.node;
  const names = [...new Set(all.flatMap(({ from, to }) => [from, to]))].filter((name) => name !== here).sort().slice(0, MAP_MAX);
  const width = Math.min(760, Math.max(300, map.clientWidth - 24));
  const height = Math.min(460, 170 + names.length * 20);
  const places = new Map([[here, [width / 2, height / 2]]]);
  names.forEach((name, index) => {
    const angle = (2 * Math.PI * index) / names.length - Math.PI / 2;
    places.set(name, [width / 2 + Math.cos(angle) * (width / 2 - 90), height / 2 + Math.sin(angle) * (height / 2 - 36)]);
  });
  const lines = all.filter(({ from, to }) => places.has(from) && places.has(to)).map(({ from, to, isUp, how }) => {
    const [[x1, y1], [x2, y2]] = [places.get(from), places.get(to)];
    return draw("line", { x1, y1, x2, y2, class: isUp ? "up" : "down" }, draw("title", {}, `${from} to ${to}: ${isUp ? "up" : "down"}, ${how}`));
  });
  const nodes = [...places].map(([name, [x, y]]) => draw("g", { class: name === here ? "here" : "" },
    draw("circle", { cx: x, cy: y, r: name === here ? 9 : 7 }),
    draw("text", { x, y: y + (y < height / 2 && name !== here ? -13 : 24), "text-anchor": "middle" }, shortNode(name).slice(0, 24))));
  const label = `Map of ${plural(places.size, "node")} and their connections; the table below has the same`;
  const more = new Set(all.flatMap(({ from, to }) => [from, to])).size - places.size;
  return [draw("svg", { class: "map", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, lines, nodes),
    make("p", { class: "soft" }, `Solid lines are up, dashed lines are down.${more > 0 ? ` ${plural(more, "further node")} are in the table.` : ""}`)];
}

function renderHeard() {
  if (status.tncs.length === 0) {
    replace(heardPlace, make("p", { class: "soft" }, "This node has no TNC, so it hears no stations."));
  } else if (isAvailable === false) {
    replace(heardPlace, make("p", { class: "soft" }, "Not available: this node keeps no list of the stations that it hears."));
  } else if (heard === null) {
    replace(heardPlace, make("p", { class: "soft" }, "Asking the node …"));
  } else if (heard.length === 0) {
    replace(heardPlace, make("p", { class: "soft" }, "No station has been heard yet."));
  } else {
    const cell = (value) => make("td", {}, value === null || value === undefined ? "" : String(value));
    const rows = heard.slice(0, 500).map((station) => make("tr", {}, cell(station.callsign), cell(station.tnc), cell(`${duration(station.last_s)} ago`),
      cell(station.frames), cell([station.via ?? []].flat().join(", ")), cell(repetitions(station.link)), make("td", {}, make("bdi", {}, station.text ?? ""))));
    replace(heardPlace, make("table", {}, make("caption", { class: "unseen" }, "Stations heard"),
      make("thead", {}, make("tr", {}, ["Callsign", "TNC", "Last heard", "Frames", "Via", "Repeated", "Text"].map((name) => make("th", { scope: "col" }, name)))), make("tbody", {}, rows)));
  }
}

/** Share of the frames of a link that were sent again, which shows its losses; empty without a link. */
function repetitions(link) {
  const sent = link?.information_sent ?? 0;
  return sent === 0 ? "" : `${Math.round((100 * (link.information_repeated ?? 0)) / sent)} % of ${count(sent)} frames`;
}
