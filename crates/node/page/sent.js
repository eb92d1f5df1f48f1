// Files and messages that were sent with this page, kept in this browser, and what became of them.

import { onEvents } from "./events.js";
import { fromDtn } from "./format.js";
import { readList } from "./kept.js";

/** Maximum number of files and messages that are kept. */
const KEPT_MAX = 1000;

/** Sent bundles, the latest first: id, to, kind (`file` or `message`), name or text, bytes, at, and what is known of them. */
export let sent = [];
let key = null;
const listeners = new Set();

/** Calls a listener after each change. */
export function onSent(listener) {
  listeners.add(listener);
}

/** Reads what was sent from this node. */
export function loadSent(node) {
  key = `longwire.sent ${node}`;
  sent = readList(key);
  for (const listener of listeners) listener(sent);
}

function write() {
  sent.length = Math.min(sent.length, KEPT_MAX);
  try {
    localStorage.setItem(key, JSON.stringify(sent));
  } catch {
    // Without room the list lasts until the page is closed; bundles do not depend on it.
  }
  for (const listener of listeners) listener(sent);
}

/** Adds a bundle that the node has stored. */
export function addSent(entry) {
  sent.unshift({ at: Date.now(), state: "stored", ...entry });
  // Its events may have come before the answer.
  for (const event of early.filter((event) => event.id === entry.id)) apply(sent[0], event);
  write();
}
const early = [];

/** File name or first words of a bundle that was sent with this page; null if they are not known. */
export function nameOf(id) {
  const entry = find(id);
  if (!entry) return null;
  return entry.kind === "message" ? `Message: ${entry.text.slice(0, 60)}` : entry.name;
}

export function find(id) {
  return sent.find((entry) => entry.id === id) ?? null;
}

/** Removes entries from the list; bundles do not depend on it. */
export function forget(isForgotten) {
  sent = sent.filter((entry) => !isForgotten(entry));
  write();
}

/** Notes of a bundle that the node no longer has it, and that no event says why. */
export function noteGone(id) {
  const entry = find(id);
  if (!entry || entry.state !== "stored") return;
  entry.state = "forwarded";
  write();
}

function apply(entry, event) {
  const at = fromDtn(event.dtn_ms) ?? Date.now();
  const isEnd = entry.state === "delivered";
  if (event.event === "report" && event.believed !== false) {
    entry.reports = [...(entry.reports ?? []), { status: event.status, reporter: event.reporter, at }].slice(-8);
    if (event.status === "delivered") Object.assign(entry, { state: "delivered", ended: at, by: event.reporter });
    else if (event.status === "deleted" && !isEnd) Object.assign(entry, { state: "deleted", ended: at, by: event.reporter });
  } else if (event.event === "bundle_forwarded" && entry.state === "stored") {
    Object.assign(entry, { state: "forwarded", forwarded: at });
  } else if (event.event === "bundle_delivered" && !isEnd) {
    Object.assign(entry, { state: "delivered", ended: at, by: "this node" });
  } else if (event.event === "bundle_deleted" && !isEnd) {
    Object.assign(entry, { state: "deleted", ended: at, why: event.reason });
  } else {
    return false;
  }
  return true;
}

/** Follows what becomes of the bundles. */
export function watchSent() {
  onEvents((batch) => {
    let isChanged = false;
    for (const event of batch) {
      if (!event.id) continue;
      early.push(event);
      const entry = find(event.id);
      const isNew = entry && !(entry.reports ?? []).some((report) => report.status === event.status && report.reporter === event.reporter);
      if (entry && (event.event !== "report" || isNew)) isChanged = apply(entry, event) || isChanged;
    }
    early.splice(0, Math.max(0, early.length - 1000));
    if (isChanged) write();
  });
}
