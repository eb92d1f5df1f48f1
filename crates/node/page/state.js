// State of the node: its status, and rates that follow from its counters.

import { ask } from "./api.js";
import { onEvents } from "./events.js";

/** Minimum time between two requests for the status, ms. */
const SOON_MS = 1000;
/** Time between two requests without events, ms. */
const IDLE_MS = 5000;
/** Span over which rates are measured, ms: over radio, many bytes are acknowledged at once, and then none for a while. */
const RATE_SPAN_MS = 45_000;

/** Latest status; null before the first. */
export let status = null;
/** Latest failure to get it; null if there is none. */
export let trouble = null;

const listeners = new Set();
let timer = null;
let dueAt = 0;
let askedAt = 0;
let running = false;
/** True if the status may have changed since the running request began. */
let isStale = false;

/** Calls a listener with each new status. Returns the function that ends this. */
export function onStatus(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** A rate from samples of a counter, over the last seconds. */
export class Rate {
  #samples = [];

  /** Adds a sample, taken at this time in ms. A counter that has gone back begins again. */
  sample(bytes, at) {
    const last = this.#samples.at(-1);
    if (last && bytes < last.bytes) this.#samples = [];
    if (last && at - last.at < 200) return;
    this.#samples.push({ bytes, at });
    // The sample before the span stays, so that the span is whole.
    while (this.#samples.length > 2 && this.#samples[1].at < at - RATE_SPAN_MS) this.#samples.shift();
  }

  /** Bytes a second; null before the second sample. */
  get perSecond() {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (!first || first === last) return null;
    return (last.bytes - first.bytes) / ((last.at - first.at) / 1000);
  }
}

const rates = new Map();

/** Payload rates of a link: sent and received, in bytes a second; null before the second sample. */
export function linkRates(name) {
  const known = rates.get(name);
  return { sent: known?.sent.perSecond ?? null, received: known?.received.perSecond ?? null };
}

/** Asks for the status at once, or a second after the last time. */
export function refresh() {
  schedule(Math.max(0, askedAt + SOON_MS - performance.now()));
}

function schedule(delayMs) {
  const due = performance.now() + delayMs;
  isStale = isStale || running;
  if (running || (timer !== null && dueAt <= due)) return;
  clearTimeout(timer);
  dueAt = due;
  timer = setTimeout(update, delayMs);
}

async function update() {
  timer = null;
  running = true;
  isStale = false;
  askedAt = performance.now();
  try {
    status = await ask("GET", "/status");
    trouble = null;
    sampleRates();
  } catch (error) {
    trouble = error;
  }
  running = false;
  for (const listener of listeners) listener(status, trouble);
  if (trouble?.status !== 401) schedule(isStale ? SOON_MS : document.hidden ? 4 * IDLE_MS : IDLE_MS);
}

function sampleRates() {
  const names = new Set();
  for (const link of status.links) {
    names.add(link.name);
    if (!rates.has(link.name)) rates.set(link.name, { sent: new Rate(), received: new Rate() });
    const { sent, received } = rates.get(link.name);
    sent.sample(link.counters.payload_sent ?? 0, askedAt);
    received.sample(link.counters.payload_received ?? 0, askedAt);
  }
  for (const name of rates.keys()) if (!names.has(name)) rates.delete(name);
}

/** Begins to follow the state. */
export function watch() {
  onEvents(refresh);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) refresh();
  });
  refresh();
}

/** Reasons why the node does not do all that it should, each in a sentence. */
export function degradations(now) {
  const all = [];
  if (!now.ready) all.push("The store is being read.");
  if (now.clock_ahead_s !== 0) all.push("The clock has jumped; lifetimes follow elapsed time until it is confirmed.");
  if (now.store.damaged > 0) all.push(`The store has ${now.store.damaged} damaged places; the data were set aside.`);
  if (now.bundles >= now.bundles_max * 0.95 || now.stored_bytes >= now.stored_bytes_max * 0.95) {
    all.push("The store is nearly full: new bundles are refused when it is.");
  }
  if (now.configuration.refused) all.push(`The configuration was refused: ${now.configuration.refused}.`);
  for (const tnc of now.tncs) if (!tnc.up) all.push(`TNC ${tnc.name} is not connected: ${tnc.why_down ?? "not yet reached"}.`);
  for (const folder of now.folders) if (folder.trouble) all.push(`Folder ${folder.folder}: ${folder.trouble}.`);
  for (const gateway of now.gateways) if (gateway.trouble) all.push(`Gateway ${gateway.name}: ${gateway.trouble}.`);
  if (now.discovery?.trouble) all.push(`Discovery: ${now.discovery.trouble}.`);
  for (const link of now.links) {
    const rests = link.found && link.down_reason === "idle";
    if (!link.up && !link.calls && !rests && link.down_reason && link.down_reason !== "cut" && !isBetweenContacts(link)) {
      all.push(`Link ${link.name} is down: ${link.why_down}.`);
    }
  }
  return all;
}

/** True for a link with planned contacts, outside of them: it is down because it was planned so. */
export function isBetweenContacts(link) {
  if (!link.contacts || link.contacts.length === 0 || !status?.dtn_ms) return false;
  return !link.contacts.some((contact) => contact.start_dtn_ms <= status.dtn_ms && status.dtn_ms < contact.end_dtn_ms);
}
