// Deliveries for this node's endpoints `files` and `messages`. The node keeps each until it is accepted; accepted messages, and a
// note of accepted files, are kept in this browser.

import { Failure, ask, named, query, request } from "./api.js";
import { onEvents } from "./events.js";
import { endpointOf, fromDtn } from "./format.js";
import { readList } from "./kept.js";
import { status } from "./state.js";

/** Maximum number of accepted entries that are kept. */
const KEPT_MAX = 2000;
/** Time without use after which the node ends a registration, seconds. */
const LEASE_S = 300;
/** Time between two looks at the deliveries without events, ms: well within the lease. */
const IDLE_MS = 60_000;
/** Maximum length of a text that is shown, bytes. */
export const TEXT_BYTES_MAX = 64_000;

/** State of each endpoint: its ID, whether it is registered, its deliveries, and why it could not be registered. */
export const boxes = {
  messages: { endpoint: null, isRegistered: false, deliveries: [], trouble: null },
  files: { endpoint: null, isRegistered: false, deliveries: [], trouble: null },
};

/** Accepted entries, the latest first: id, kind, from, text or name, bytes, at, accepted. */
export let received = [];
let key = null;
let onKey = null;

const listeners = new Set();
const contents = new Map();
let timer = null;
let isLooking = false;
let isStale = false;

/** Calls a listener after each change. */
export function onReceived(listener) {
  listeners.add(listener);
}

function changed() {
  for (const listener of listeners) listener();
}

/** Whether the user wants to receive with this browser. */
export function receives() {
  return localStorage.getItem(onKey) === "on";
}

/** Registers both endpoints, from now on whenever the page is open. */
export async function beginReceiving() {
  localStorage.setItem(onKey, "on");
  await look();
}

/** Ends both registrations; deliveries wait at the node. */
export async function endReceiving() {
  localStorage.setItem(onKey, "off");
  for (const box of Object.values(boxes)) {
    if (box.isRegistered) await ask("DELETE", named("/registrations", box.endpoint)).catch(() => null);
    Object.assign(box, { isRegistered: false, deliveries: [], trouble: null });
  }
  changed();
}

/** Reads what was accepted from this node, and begins to follow its deliveries. */
export function watchReceived(node) {
  [key, onKey] = [`longwire.received ${node}`, `longwire.receives ${node}`];
  received = readList(key);
  const mine = ["bundle_arrived", "bundle_delivered", "bundle_deleted", "missed"];
  onEvents((batch) => {
    if (batch.some((event) => mine.includes(event.event))) soon(300);
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) soon(0);
  });
  soon(0);
}

function soon(delayMs) {
  if (isLooking) {
    isStale = true;
    return;
  }
  clearTimeout(timer);
  timer = setTimeout(look, delayMs);
}

/** Looks at the deliveries of both endpoints, and registers them where that is wanted. */
export async function look() {
  clearTimeout(timer);
  isLooking = true;
  isStale = false;
  try {
    if (status) {
      const { registrations } = await ask("GET", "/registrations");
      const known = new Set(registrations.map((registration) => registration.endpoint));
      for (const [service, box] of Object.entries(boxes)) {
        box.endpoint = endpointOf(status.node, service);
        await lookAt(box, known);
      }
      changed();
    }
  } catch {
    // The header shows that the node cannot be reached.
  }
  isLooking = false;
  timer = setTimeout(look, isStale ? 300 : status ? IDLE_MS : 500);
}

async function lookAt(box, known) {
  try {
    if (!known.has(box.endpoint)) {
      box.isRegistered = false;
      box.deliveries = [];
      if (!receives()) return;
      await ask("POST", "/registrations", { endpoint: box.endpoint, lease_s: LEASE_S });
    }
    box.deliveries = (await ask("GET", query("/deliveries", { endpoint: box.endpoint }))).deliveries;
    box.isRegistered = true;
    box.trouble = null;
  } catch (error) {
    box.trouble = error;
  }
}

/** Time at which a delivery was sent, in ms since 1970; null if its node has no clock. */
export function sentAt(delivery) {
  return fromDtn(delivery.created[0]);
}

/** The name of a delivery, and its beginning as text, as far as it is shown. */
export async function contentOf(delivery) {
  if (!contents.has(delivery.bundle)) {
    if (contents.size > 500) contents.clear();
    contents.set(delivery.bundle, load(delivery).catch((error) => {
      contents.delete(delivery.bundle);
      throw error;
    }));
  }
  return contents.get(delivery.bundle);
}

async function load(delivery) {
  if (delivery.payload_bytes === 0) return { name: null, text: "", isWhole: true };
  // A request for the header alone has the name; a file without content has no range.
  const path = named("/deliveries", delivery.id);
  const head = await request("HEAD", path);
  const name = nameFrom(head.headers.get("Content-Disposition"));
  const length = Number(head.headers.get("Content-Length"));
  if (length === 0) return { name, length, text: "", isWhole: true };
  const response = await request("GET", path, { headers: { Range: `bytes=0-${TEXT_BYTES_MAX - 1}` } });
  const bytes = await response.arrayBuffer();
  return { name, length, text: new TextDecoder().decode(bytes), isWhole: length <= TEXT_BYTES_MAX };
}

/** File name of a download (RFC 8187); null without one. */
function nameFrom(disposition) {
  const coded = /filename\*=UTF-8''([^;]+)/.exec(disposition ?? "");
  if (!coded) return null;
  try {
    return decodeURIComponent(coded[1]);
  } catch {
    return null;
  }
}

/** The payload of a delivery for a picture on the page; null if it is larger than this many bytes. */
export async function payloadOf(delivery, bytesMax) {
  if (delivery.payload_bytes > bytesMax) return null;
  return (await request("GET", named("/deliveries", delivery.id))).blob();
}

/** Whether an entry was kept in this browser before. */
export function isKept(bundle) {
  return received.some((entry) => entry.id === bundle);
}

/**
 * Accepts a delivery: it is kept in this browser first, and then the node deletes its copy.
 */
export async function accept(delivery, entry) {
  if (!isKept(delivery.bundle)) {
    const all = [{ id: delivery.bundle, from: delivery.source, at: sentAt(delivery) ?? Date.now(), accepted: Date.now(), ...entry }, ...received];
    all.length = Math.min(all.length, KEPT_MAX);
    try {
      localStorage.setItem(key, JSON.stringify(all));
    } catch {
      throw new Failure(0, "this browser has no room for it, so it was not accepted and stays at the node",
        "export the log and remove old messages, or accept it with another browser");
    }
    received = all;
  }
  await ask("DELETE", named("/deliveries", delivery.id));
  for (const box of Object.values(boxes)) box.deliveries = box.deliveries.filter((other) => other.bundle !== delivery.bundle);
  changed();
}

/** Removes accepted entries from this browser. */
export function forgetReceived(isForgotten) {
  received = received.filter((entry) => !isForgotten(entry));
  localStorage.setItem(key, JSON.stringify(received));
  changed();
}
