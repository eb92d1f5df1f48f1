// Time line of the channel of each TNC: which station transmits when.

import { ask } from "./api.js";
import { draw, facts, make, replace } from "./dom.js";
import { clock, duration, plural } from "./format.js";

/** Span of the time line, seconds. */
const SPAN_S = 300;
/** Maximum number of stations with a line of their own: those heard last. */
const STATIONS_MAX = 12;
const LINE_HEIGHT = 24;

/** A time line in `element`; `update(tncs)` asks for the transmissions and draws them. */
export function channel() {
  const element = make("div", { class: "entries" });
  let isAsking = false;
  const update = async (tncs) => {
    if (tncs.length === 0) {
      replace(element, make("div", { class: "card" }, make("p", { class: "soft" }, "This node has no TNC, so it sees no channel.")));
      return;
    }
    if (isAsking) return;
    isAsking = true;
    try {
      const { transmissions } = await ask("GET", "/transmissions");
      const open = new Set([...element.querySelectorAll("details[open]")].map((details) => details.dataset.tnc));
      replace(element, tncs.map((tnc) => card(tnc, open.has(tnc.name), transmissions.filter((known) => known.tnc === tnc.name))));
    } catch {
      // The header shows that the node cannot be reached.
    }
    isAsking = false;
  };
  return { element, update };
}

function card(tnc, isOpen, transmissions) {
  const shown = transmissions.filter((known) => known.began_s - known.lasts_s < SPAN_S);
  const stations = [...new Set(shown.map((known) => known.from))].slice(0, STATIONS_MAX);
  const head = make("div", { class: "head" }, make("h4", {}, `TNC ${tnc.name}, ${tnc.callsign}`), make("span", { class: "soft" }, shareOf(shown)));
  if (stations.length === 0) {
    return make("div", { class: "card" }, head, make("p", { class: "soft" }, `Nobody has transmitted in the last ${duration(SPAN_S)}.`));
  }
  const latest = transmissions.slice(0, 8).map((known) => [
    clock(Date.now() - known.began_s * 1000, true),
    `${known.from}${known.own ? " (this station)" : ""}${known.source === known.from ? "" : ` for ${known.source}`} to ${known.to}: ${known.lasts_s.toFixed(1)} s, ${plural(known.frames, "frame")}`,
  ]);
  return make("div", { class: "card" }, head, drawLines(stations, shown), make("details", { open: isOpen, data: { tnc: tnc.name } }, make("summary", {}, "Latest transmissions"), facts(latest)));
}

/** Part of a transmission within the span of the time line, seconds. */
function withinSpan(known) {
  // One that is under way ends in the future.
  return Math.max(0, Math.min(known.lasts_s, known.began_s) - Math.max(0, known.began_s - SPAN_S));
}

/** Share of the time for which the channel was in use. */
function shareOf(shown) {
  const inUse = shown.reduce((sum, known) => sum + withinSpan(known), 0);
  return `in use for ${Math.min(100, Math.round((100 * inUse) / SPAN_S))} % of the last ${duration(SPAN_S)}`;
}

/** A line for each station, with a bar for each transmission; bars of this station are framed. */
function drawLines(stations, shown) {
  const height = stations.length * LINE_HEIGHT + 20;
  const place = (ago) => `${(22 + 78 * (1 - Math.min(SPAN_S, Math.max(0, ago)) / SPAN_S)).toFixed(2)}%`;
  const width = (seconds) => `${Math.max(0.3, (78 * seconds) / SPAN_S).toFixed(2)}%`;
  const names = stations.map((station, line) => draw("text", { x: 0, y: line * LINE_HEIGHT + 15 }, station));
  const rules = stations.map((_, line) => draw("line", { x1: "22%", x2: "100%", y1: line * LINE_HEIGHT + 18, y2: line * LINE_HEIGHT + 18 }));
  const bars = shown.filter((known) => stations.includes(known.from)).map((known) => draw("rect", {
    class: known.own ? "own" : "", x: place(known.began_s), y: stations.indexOf(known.from) * LINE_HEIGHT + 4, height: 13, width: width(withinSpan(known)),
  }));
  const times = [SPAN_S, SPAN_S / 2, 0].map((ago) => draw("text", { x: place(ago), y: height - 2, "text-anchor": ago === 0 ? "end" : ago === SPAN_S ? "start" : "middle" },
    ago === 0 ? "now" : `-${duration(ago)}`));
  const label = `Transmissions of ${plural(stations.length, "station")} in the last ${duration(SPAN_S)}; the list below has the latest`;
  return draw("svg", { class: "timeline", role: "img", "aria-label": label, height }, rules, names, bars, times);
}
