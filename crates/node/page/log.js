// The log: events of the node as they happen, and their export as a communications log.

import { open } from "./dialog.js";
import { button, choice, empty, facts, make, replace, say } from "./dom.js";
import { events, onEvents } from "./events.js";
import { bytes, count, fromDtn, moment, plural } from "./format.js";
import { exportLog } from "./ics309.js";
import { VirtualList } from "./virtual_list.js";

export const title = "Log";

/** Groups of events for the filter. */
const GROUPS = {
  all: ["all events", () => true],
  links: ["links and radios", (event) => /^(link|tnc|caller|transmission)/.test(event.event)],
  bundles: ["bundles and receipts", (event) => /^(bundle_|report)/.test(event.event) && event.event !== "bundles_watched"],
  troubles: ["troubles", (event) => signOf(event) === "✕"],
};

const TROUBLES = new Set(["link_down", "transfer_refused", "store_full", "store_damaged", "caller_refused", "caller_turned_away", "tnc_down",
  "clock_jumped", "configuration_refused", "missed", "bundle_deleted"]);

let list;
let summary;
let nothing;
let shown = [];
let group;
let search;
let isShown = false;
let frame = 0;

export function build(root) {
  list = new VirtualList("Events, the latest first", makeRow, fillRow);
  list.element.classList.add("short-rows");
  summary = make("p", { class: "summary" });
  nothing = make("div");
  group = choice(Object.entries(GROUPS).map(([name, [words]]) => [name, words]), "all", { "aria-label": "Filter by kind" });
  search = make("input", { type: "search", placeholder: "search, such as bob", "aria-label": "Search in the events" });
  group.addEventListener("change", update);
  search.addEventListener("input", update);
  root.append(make("div", { class: "bar" }, summary,
    make("div", { class: "filters" }, group, search), button("Communications log (ICS 309) …", exportLog)), nothing, list.element);
  onEvents(later);
}

export function show() {
  isShown = true;
  update();
}

export function hide() {
  isShown = false;
}

function later() {
  if (!isShown) return;
  frame ||= setTimeout(() => {
    frame = 0;
    update();
  }, 250);
}

function update() {
  const wants = GROUPS[group.value][1];
  const words = search.value.trim().toLowerCase();
  shown = events.filter((event) => wants(event) && (words === "" || `${event.event} ${wordsOf(event)}`.toLowerCase().includes(words))).reverse();
  say(summary, shown.length === events.length ? plural(events.length, "event") : `${count(shown.length)} of ${plural(events.length, "event")}`);
  const hint = events.length === 0 ? "Events appear as they happen. Those of single bundles are recorded while a page is open." : null;
  replace(nothing, shown.length === 0 ? empty(events.length === 0 ? "No events yet." : "No event matches the filter.", hint) : null);
  list.element.hidden = shown.length === 0;
  list.update(shown.length);
}

function makeRow() {
  const parts = { sign: make("span", { class: "sign", "aria-hidden": "true" }), time: make("span", { class: "time" }), words: make("button", { type: "button", class: "open" }) };
  const row = make("div", { class: "row" }, parts.sign, parts.time, parts.words);
  row.parts = parts;
  parts.words.addEventListener("click", () => details(row.event));
  return row;
}

function fillRow(row, index) {
  const event = shown[index];
  if (!event) return;
  const { sign, time, words } = row.parts;
  say(sign, signOf(event));
  say(time, timeOf(event));
  say(words, wordsOf(event));
  row.event = event;
  row.dataset.sign = signOf(event);
}

/** Opens a dialog with all that is known of an event. */
function details(event) {
  const values = Object.entries(event).filter(([name]) => !["key", "dtn_ms", "uptime_s", "event"].includes(name));
  const shown = values.map(([name, value]) => [name.replaceAll("_", " "), Array.isArray(value) ? value.join(", ") : value === null ? null : String(value)]);
  const content = [make("p", {}, wordsOf(event)), facts([["time", timeOf(event)], ...shown])];
  const dialog = open(event.event.replaceAll("_", " "), content, [button("Close", () => dialog.close(), { autofocus: true })]);
}

/** Time of an event: that of the node's clock, or without one the time since its start. */
export function timeOf(event) {
  const at = fromDtn(event.dtn_ms);
  return at ? moment(at, true) : event.uptime_s === undefined ? "" : `${event.uptime_s.toFixed(1)} s after the start`;
}

function signOf(event) {
  if (event.event === "report" && event.status === "deleted") return "✕";
  if (TROUBLES.has(event.event)) return "✕";
  return /^(link_up|tnc_up|bundle_delivered|report)$/.test(event.event) ? "✓" : "·";
}

/** An event in words. */
export function wordsOf(event) {
  const size = event.payload_bytes === undefined ? "" : ` (${bytes(event.payload_bytes)})`;
  const bundle = `${event.id} to ${event.destination}${size}`;
  const peer = event.peer ? `, ${event.peer}` : "";
  const hint = event.hint ? `. Hint: ${event.hint}` : "";
  switch (event.event) {
    case "link_up": return `Link ${event.link} came up${peer}`;
    case "link_down": return `Link ${event.link} went down: ${event.why}${peer}`;
    case "bundle_accepted": return `Stored for sending: ${bundle}`;
    case "bundle_received": return `Received over link ${event.link}: ${bundle}`;
    case "bundle_forwarded": return `Passed to the next node: ${bundle}`;
    case "bundle_arrived": return `Arrived here: ${bundle}`;
    case "bundle_delivered": return `Accepted here: ${bundle}`;
    case "bundle_deleted": return `Deleted, ${event.reason.replaceAll("_", " ")}: ${bundle}`;
    case "transfer_refused": return `Refused a transfer over link ${event.link}${peer}: ${event.what ?? event.reason.replaceAll("_", " ")}${event.clause ? ` (${event.clause})` : ""}`;
    case "report": return `Receipt of ${event.reporter}: ${event.id} ${event.status}${event.believed === false ? " (not trusted)" : ""}`;
    case "store_full": return `The store is full: ${plural(event.bundles, "bundle")}, ${bytes(event.stored_bytes)}`;
    case "store_damaged": return `Damage in the store: ${event.what}`;
    case "caller_refused": return `Refused a connection of ${event.peer ?? event.address}: ${event.why}`;
    case "caller_turned_away": return `Too many connections: refused ${event.address}`;
    case "tnc_up": return `TNC ${event.tnc} is connected, callsign ${event.callsign}`;
    case "tnc_down": return `TNC ${event.tnc} was lost: ${event.why}; ${event.kept}${hint}`;
    case "clock_jumped": return `The clock jumped by ${event.by_s.toFixed(1)} s`;
    case "clock_trusted": return "The clock was confirmed";
    case "configuration_read": return `The configuration was read${event.applied.length ? `; changed: ${event.applied.join(", ")}` : ""}` +
        `${event.needs_restart.length ? `; a restart is needed for ${event.needs_restart.join(", ")}` : ""}`;
    case "configuration_refused": return `The configuration was refused: ${event.what}${hint}`;
    case "bundles_watched": return event.on ? "Events of single bundles are recorded from here on" :
      "Events of single bundles are not recorded from here on: no page or program listens";
    case "missed": return `${plural(event.count, "event")} were lost: this page read too slowly`;
    default: return Object.entries(event).filter(([name]) => !["sequence", "uptime_s", "dtn_ms", "key"].includes(name)).map(([name, value]) => `${name} ${value}`).join(", ");
  }
}
