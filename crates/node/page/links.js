// Links: state, peer, rates, planned contacts; closing and opening them.

import { ask, named } from "./api.js";
import { confirm, tell } from "./dialog.js";
import { button, draw, empty, facts, make, replace } from "./dom.js";
import { bitRate, bytes, clock, count, duration, fromDtn, moment, plural, rate } from "./format.js";
import { isBetweenContacts, linkRates, onStatus, refresh, status } from "./state.js";

/** Span of the time line of contacts, hours. */
const SPAN_H = 12;

export const title = "Links";

let summary;
let cards;
let isShown = false;
let drawn = "";

export function build(root) {
  summary = make("p", { class: "summary" });
  cards = make("div", { class: "cards" });
  root.append(summary, cards);
  onStatus(() => {
    if (isShown) render();
  });
}

export function show() {
  isShown = true;
  render();
  refresh();
}

export function hide() {
  isShown = false;
}

function render() {
  if (!status) return;
  const links = [...status.links].sort((a, b) => a.calls - b.calls || a.name.localeCompare(b.name));
  const up = links.filter((link) => link.up).length;
  summary.textContent = links.length ? `${up} of ${plural(links.length, "link")} up. Router: ${status.router}.` : "";
  const now = JSON.stringify(links.map((link) => [link, linkRates(link.name)]));
  // Nothing is drawn again while the keyboard is in it, except what has changed.
  if (now === drawn) return;
  drawn = now;
  const focused = cards.contains(document.activeElement) ? document.activeElement.dataset.of : null;
  if (links.length === 0) {
    replace(cards, empty("This node has no links.", "Add a [[link]] to its configuration, or wait until another node connects."));
  } else {
    replace(cards, links.map(card));
  }
  if (focused) cards.querySelector(`[data-of="${CSS.escape(focused)}"]`)?.focus();
}

/** State of a link: kind of the sign, sign, words. */
function stateOf(link) {
  if (link.up) return ["good", "▲", "up"];
  if (link.down_reason === "cut") return ["plain", "■", "closed by the operator"];
  if (link.found && (!link.down_reason || link.down_reason === "idle")) return ["plain", "…", "opens when a bundle needs it"];
  if (isBetweenContacts(link)) return ["plain", "◷", "waits for its contact"];
  if (!link.down_reason) return ["plain", "…", link.group ? "group" : "not yet open"];
  return ["warn", "▼", "down"];
}

function card(link) {
  const [kind, sign, words] = stateOf(link);
  const { sent, received } = linkRates(link.name);
  const pace = (perSecond, total) => `${perSecond ? rate(perSecond) : "idle"}, ${bytes(total ?? 0)} in total`;
  const counters = link.counters;
  const peer = link.peer ?? (link.claims ? `${link.claims} (claimed; another session has this node ID)` : null);
  return make("article", { class: "card" },
    make("div", { class: "head" },
      make("h3", {}, link.name),
      make("span", { class: `pill ${kind}` }, make("span", { "aria-hidden": "true" }, sign), ` ${words}`)),
    facts([
      ["Peer", peer ?? (link.group ? "a group" : "not yet known")],
      ["Since", `${duration(link.since_s)}${link.up || link.was_up ? "" : ", never up since the node started"}`],
      ["Reason", link.why_down],
      ["Kind", `${link.carrier}${link.tcpcl ? `, version ${link.tcpcl}` : ""}${link.calls ? ", incoming" : ""}`],
      ["Address", link.address],
      ["Rate", link.rate_bps ? bitRate(link.rate_bps) : null],
      ["Sent", counters.payload_sent !== undefined ? pace(sent, counters.payload_sent) : null],
      ["Received", counters.payload_received !== undefined ? pace(received, counters.payload_received) : null],
      ["Delivery", link.unacknowledged ? "without acknowledgements" : null],
      ["Security", link.tls ? `${link.tls.version}, ${link.tls.node_ids.join(", ") || "no node ID proven"}` : null],
      ["Refused", link.would_help.length ? `bundles that accept = ${link.would_help.join(", ")} would take` : null],
    ]),
    link.radio ? radio(link.radio) : null,
    link.contacts?.length ? contacts(link) : null,
    link.calls || link.group ? null : buttons(link));
}

function radio(radio) {
  const via = radio.via.length ? ` via ${radio.via.join(", ")}` : "";
  const all = radio.frames_in_all;
  const isSending = all !== null && radio.frames_acknowledged !== null;
  return make("div", { class: "radio" },
    facts([
      ["Radio", `${radio.callsign} to ${radio.peer || "any station"}${via}, TNC ${radio.tnc}`],
      ["State", radio.state],
      ["Window", radio.window_frames ? `${radio.frames_in_flight} of ${radio.window_frames} frames unacknowledged` : null],
      ["Retries", radio.retries ? `${radio.retries} of ${radio.retries_max}` : null],
      ["Members", radio.members ? `${radio.members_that_have_it} of ${radio.members} have it` : null],
    ]),
    isSending ? make("p", { class: "soft" }, `${count(radio.frames_acknowledged)} of ${count(all)} frames acknowledged`) : null,
    isSending ? make("progress", { max: Math.max(1, all), value: radio.frames_acknowledged, "aria-label": `${count(radio.frames_acknowledged)} of ${count(all)} frames` }) : null);
}

/** Time line of the planned contacts, and the next of them in words. */
function contacts(link) {
  if (!status.dtn_ms) return make("p", { class: "note" }, "The node has no clock: its contacts cannot be placed in time.");
  const now = status.dtn_ms;
  const end = now + SPAN_H * 3_600_000;
  const place = (at) => (Math.min(1, Math.max(0, (at - now) / (end - now))) * 100).toFixed(2);
  const shown = link.contacts.filter((contact) => contact.end_dtn_ms > now && contact.start_dtn_ms < end);
  const hours = [0, 3, 6, 9, 12].map((hour) => {
    const at = now + hour * 3_600_000;
    const anchor = hour === 0 ? "start" : hour === SPAN_H ? "end" : "middle";
    return draw("text", { x: `${place(at)}%`, y: 34, "text-anchor": anchor }, hour === 0 ? "now" : clock(fromDtn(at)));
  });
  const bars = shown.map((contact) => draw("rect", {
    x: `${place(contact.start_dtn_ms)}%`, y: 4, height: 14,
    width: `${Math.max(0.5, place(contact.end_dtn_ms) - place(contact.start_dtn_ms))}%`, rx: 2,
  }));
  const line = draw("svg", { class: "timeline", role: "img", "aria-label": `Contacts in the next ${SPAN_H} hours; the list below has them`, height: 38 },
    draw("line", { x1: 0, x2: "100%", y1: 20, y2: 20 }), bars, hours);
  const words = (contact) => {
    const lasts = duration((contact.end_dtn_ms - contact.start_dtn_ms) / 1000);
    const isOpen = contact.start_dtn_ms <= now && now < contact.end_dtn_ms;
    const from = isOpen ? `now, for ${duration((contact.end_dtn_ms - now) / 1000)} more` :
      contact.end_dtn_ms <= now ? `${moment(fromDtn(contact.start_dtn_ms))}, over` :
        `${moment(fromDtn(contact.start_dtn_ms))}, in ${duration((contact.start_dtn_ms - now) / 1000)}, for ${lasts}`;
    return make("li", {}, `${from}${contact.rate_bps ? `, ${bitRate(contact.rate_bps)}` : ""}`);
  };
  return make("div", { class: "contacts" }, make("h4", {}, "Contacts"), line, make("ul", {}, link.contacts.slice(0, 3).map(words)));
}

function buttons(link) {
  const isClosed = link.down_reason === "cut";
  const label = isClosed ? "Open again …" : "Close …";
  return make("div", { class: "buttons" }, button(label, () => change(link, isClosed), { data: { of: link.name } }));
}

async function change(link, opens) {
  const text = opens ?
    `The node opens link ${link.name} again, and bundles for it are sent.` :
    `Link ${link.name} is closed until you open it again. Bundles for it wait; nothing is lost.`;
  const verb = opens ? "Open it" : "Close it";
  const isDone = await confirm(`${opens ? "Open" : "Close"} link ${link.name}?`, text, verb, () =>
    ask("POST", named("/links", link.name, opens ? "/heal" : "/cut")));
  if (isDone) tell(`Link ${link.name} was ${opens ? "opened" : "closed"}`);
  refresh();
}
