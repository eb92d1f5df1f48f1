// Files and messages that were sent with this page, kept in this browser, and what became of them.

import { ask, named } from "./api.js";
import { onEvents } from "./events.js";
import { fromDtn, nodeOf } from "./format.js";
import { KeptList } from "./kept.js";
import { Rate } from "./state.js";

/** Maximum number of files and messages that are kept. */
const KEPT_MAX = 1000;
/** Number of bundles whose progress is asked for at a time. */
const ASKED_MAX = 8;
/** Time between two requests for progress, ms: while something is being sent, and otherwise. */
const SOON_MS = 1000;
const IDLE_MS = 10_000;
/** Number of events that are kept for bundles whose acceptance is not known yet. */
const EARLY_MAX = 1000;

let list = null;
const listeners = new Set();
const early = [];
const progress = new Map();
let round = 0;
let timer = null;
let isAsking = false;

/** Sent bundles, the latest first: id, to, kind (`file` or `message`), name or text, bytes, at, lifetime_s, state and what is known of it. */
export function sent() {
  return list?.all ?? [];
}

/** Calls a listener after each change. */
export function onSent(listener) {
  listeners.add(listener);
}

function changed() {
  for (const listener of listeners) listener();
}

/** Adds a bundle that the node has stored. */
export function addSent(entry) {
  const added = { at: Date.now(), state: "stored", ...entry };
  // Its events may have come before the answer.
  for (const event of early.filter((event) => event.id === entry.id)) apply(added, event);
  list.putAnyhow(added);
  soon(0);
}

export function find(id) {
  return list?.get(id) ?? null;
}

/** File name or first words of a bundle that was sent with this page; null if they are not known. */
export function nameOf(id) {
  const entry = find(id);
  if (!entry) return null;
  return entry.kind === "message" ? `Message: ${entry.text.slice(0, 60)}` : entry.name;
}

/** Removes entries from the list; bundles do not depend on it. */
export function forget(isForgotten) {
  list.remove(isForgotten);
}

/** What the node says of a bundle that it has: the bundle, and the rate of its transmission; null if it is not known. */
export function progressOf(id) {
  return progress.get(id) ?? null;
}

/** Puts what an event says into an entry. Returns false if it says nothing new. */
function apply(entry, event) {
  const at = fromDtn(event.dtn_ms) ?? Date.now();
  const before = JSON.stringify(entry);
  const isWaiting = entry.state === "stored" || entry.state === "gone";
  if (event.event === "report" && event.believed !== false) {
    const isThere = nodeOf(event.reporter) === nodeOf(entry.to);
    if (event.status === "delivered" && entry.state !== "delivered") {
      // Only the destination itself knows.
      Object.assign(entry, { state: isThere ? "delivered" : "reported", ended: at, by: event.reporter });
    } else if (event.status === "deleted" && isOpen(entry)) {
      Object.assign(entry, { state: "deleted", ended: at, by: event.reporter, why: null });
    }
  } else if (event.event === "bundle_forwarded" && isWaiting) {
    Object.assign(entry, { state: "forwarded", forwarded: at });
  } else if (event.event === "bundle_delivered" && entry.state !== "delivered") {
    Object.assign(entry, { state: "delivered", ended: at, by: null });
  } else if (event.event === "bundle_deleted" && isOpen(entry)) {
    Object.assign(entry, { state: "deleted", ended: at, by: null, why: event.reason });
  }
  return JSON.stringify(entry) !== before;
}

const isOpen = (entry) => !["delivered", "reported", "deleted"].includes(entry.state);

/** Reads what was sent from this node, and follows what becomes of it. */
export function watchSent(node) {
  list = new KeptList(`longwire.sent ${node}`, KEPT_MAX, changed);
  onEvents((batch) => {
    for (const event of batch) {
      if (!event.id) continue;
      early.push(event);
      const entry = find(event.id);
      if (entry && apply(entry, event)) list.putAnyhow(entry);
    }
    early.splice(0, Math.max(0, early.length - EARLY_MAX));
    soon(SOON_MS);
  });
  changed();
  soon(0);
}

function soon(delayMs) {
  if (isAsking) return;
  clearTimeout(timer);
  timer = setTimeout(follow, delayMs);
}

/** Asks for the bundles that wait at this node, a few at a time, one after the other. */
async function follow() {
  isAsking = true;
  const waiting = sent().filter((entry) => entry.state === "stored");
  for (const id of progress.keys()) if (!waiting.some((entry) => entry.id === id)) progress.delete(id);
  round = round < waiting.length ? round : 0;
  const asked = waiting.slice(round, round + ASKED_MAX);
  round += ASKED_MAX;
  let isMoving = false;
  for (const entry of asked) {
    try {
      const { bundles } = await ask("GET", named("/bundles", entry.id));
      const known = progress.get(entry.id) ?? { rate: new Rate() };
      known.rate.sample(bundles[0].transmitted_bytes, performance.now());
      progress.set(entry.id, { bundle: bundles[0], rate: known.rate });
      isMoving ||= bundles[0].state === "on_the_way";
    } catch (error) {
      if (error.status !== 404) break;
      progress.delete(entry.id);
      // An event says what became of it, if one was recorded.
      if (entry.state === "stored") list.putAnyhow(Object.assign(entry, { state: "gone" }));
    }
  }
  isAsking = false;
  if (asked.length > 0) changed();
  soon(isMoving || round < waiting.length ? SOON_MS : IDLE_MS);
}
