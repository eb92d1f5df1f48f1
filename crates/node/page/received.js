// Deliveries for this node's endpoints `files` and `messages`. The node keeps each until it is accepted; accepted messages, and a
// note of accepted files, are kept in this browser.

import { Failure, ask, named, query, request } from "./api.js";
import { onConnected, onEvents } from "./events.js";
import { endpointOf, fromDtn } from "./format.js";
import { KeptList } from "./kept.js";
import { status } from "./state.js";

/** Maximum number of accepted entries that are kept. */
const KEPT_MAX = 2000;
/** Time without use after which the node ends a registration, seconds. */
const LEASE_S = 300;
/** Time between two looks at the deliveries without events, ms: well within the lease; and after a failed one. */
const IDLE_MS = 60_000;
const RETRY_MS = 2000;
/** Maximum length of a text that is shown, bytes. */
export const TEXT_BYTES_MAX = 64_000;
/** Number of requests for contents at a time. */
const LOADS_MAX = 4;

/** State of each endpoint: its ID, whether it is registered, its deliveries, and why it could not be registered. */
export const boxes = {
  messages: { endpoint: null, isRegistered: false, deliveries: [], trouble: null },
  files: { endpoint: null, isRegistered: false, deliveries: [], trouble: null },
};

const listeners = new Set();
const firstSeen = new Map();
const waitingLoads = [];
let list = null;
let onKey = null;
let loads = 0;
let timer = null;
let isLooking = false;
let isStale = false;

/** Accepted entries, the latest first: id, kind, from, text or name, bytes, at (arrival), created, and accepted, which is null until the
 * node has confirmed it. */
export function received() {
  return list?.all ?? [];
}

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
  for (const box of Object.values(boxes)) await leave(box);
  changed();
}

async function leave(box) {
  if (box.isRegistered) await ask("DELETE", named("/registrations", box.endpoint)).catch(() => null);
  Object.assign(box, { isRegistered: false, deliveries: [], trouble: null });
}

/** Reads what was accepted from this node, and follows its deliveries. */
export function watchReceived(node) {
  onKey = `longwire.receives ${node}`;
  list = new KeptList(`longwire.received ${node}`, KEPT_MAX, changed);
  const mine = ["bundle_arrived", "bundle_delivered", "bundle_deleted", "missed"];
  onEvents((batch) => {
    if (batch.some((event) => mine.includes(event.event))) soon(300);
  });
  onConnected(() => soon(0));
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

/** Looks at the deliveries of both endpoints, and registers them where that is wanted; one look after the other. */
export function look() {
  looks = looks.then(lookOnce);
  return looks;
}
let looks = Promise.resolve();

async function lookOnce() {
  clearTimeout(timer);
  isLooking = true;
  isStale = false;
  let isFailed = false;
  try {
    const known = await registered();
    for (const [service, box] of Object.entries(boxes)) {
      box.endpoint = endpointOf(status.node, service);
      await lookAt(box, known.has(box.endpoint));
    }
  } catch {
    // The header shows that the node cannot be reached. Numbers of deliveries may be those of others when it is back.
    isFailed = true;
    for (const box of Object.values(boxes)) Object.assign(box, { isRegistered: false, deliveries: [] });
  }
  for (const { deliveries } of Object.values(boxes)) {
    for (const { bundle } of deliveries) if (!firstSeen.has(bundle)) firstSeen.set(bundle, Date.now());
  }
  isLooking = false;
  changed();
  timer = setTimeout(look, isStale ? 300 : isFailed ? RETRY_MS : IDLE_MS);
}

/** Endpoints that are registered over HTTP. */
async function registered() {
  const { registrations } = await ask("GET", "/registrations");
  return new Set(registrations.map((registration) => registration.endpoint));
}

/** Registers an endpoint, which another tab may have registered at the same moment. */
async function register(endpoint) {
  try {
    await ask("POST", "/registrations", { endpoint, lease_s: LEASE_S });
  } catch (error) {
    if (error.status !== 400 || !(await registered()).has(endpoint)) throw error;
  }
}

async function lookAt(box, isKnown) {
  if (!receives()) {
    // A list would keep the registration of another program.
    Object.assign(box, { isRegistered: false, deliveries: [], trouble: null });
    return;
  }
  try {
    if (!isKnown) await register(box.endpoint);
    box.isRegistered = true;
    if (!receives()) {
      await leave(box);
      return;
    }
    box.deliveries = (await ask("GET", query("/deliveries", { endpoint: box.endpoint }))).deliveries;
    box.trouble = null;
    // Entries that are kept here, but not confirmed by the node.
    for (const delivery of box.deliveries.filter(({ bundle }) => list.get(bundle))) await confirmAccepted(box, delivery).catch(() => null);
  } catch (error) {
    if (error.status === 0) throw error;
    Object.assign(box, { isRegistered: false, deliveries: [], trouble: error });
  }
}

/** Time at which a delivery was sent, in ms since 1970; null if its node has no clock. */
export function sentAt(delivery) {
  return fromDtn(delivery.created[0]);
}

/** Time at which this page has first seen a delivery. */
export function arrivedAt(delivery) {
  return firstSeen.get(delivery.bundle) ?? Date.now();
}

/** Path of a delivery: its number may be that of another one after a restart, so the bundle is named, too. */
export function pathOf(delivery) {
  return query(named("/deliveries", delivery.id), { bundle: delivery.bundle });
}

/** Waits for one of a few places for loading, and loads. */
async function load(action) {
  while (loads >= LOADS_MAX) await new Promise((resolve) => waitingLoads.push(resolve));
  loads += 1;
  try {
    return await action();
  } finally {
    loads -= 1;
    waitingLoads.shift()?.();
  }
}

/** Name and length of a delivery, without its content. */
export async function headOf(delivery) {
  if (delivery.payload_bytes === 0) return { name: null, length: 0 };
  const head = await load(() => request("HEAD", pathOf(delivery)));
  return { name: nameFrom(head.headers.get("Content-Disposition")), length: Number(head.headers.get("Content-Length")) };
}

/** Name of a delivery, and its beginning as text; `isText` is false if it is none, `isWhole` if there is more. */
export async function contentOf(delivery) {
  const { name, length } = await headOf(delivery);
  if (length === 0) return { name, length, text: "", isText: true, isWhole: true };
  const bytes = await load(async () => {
    const response = await request("GET", pathOf(delivery), { headers: { Range: `bytes=0-${TEXT_BYTES_MAX - 1}` } });
    return new Uint8Array(await response.arrayBuffer());
  });
  const isWhole = length <= TEXT_BYTES_MAX;
  try {
    // A cut in the middle of a character is no fault.
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: !isWhole });
    return { name, length, text, isText: !text.includes("\u0000"), isWhole };
  } catch {
    return { name, length, text: "", isText: false, isWhole };
  }
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
  return (await request("GET", pathOf(delivery))).blob();
}

/** Accepts a delivery: it is kept in this browser first, and then the node deletes its copy. */
export async function accept(delivery, entry) {
  if (!list.get(delivery.bundle)) {
    const kept = { id: delivery.bundle, from: delivery.source, at: arrivedAt(delivery), created: sentAt(delivery), accepted: null, ...entry };
    try {
      list.put(kept);
    } catch {
      throw new Failure(0, "this browser has no room for it, so it was not accepted and stays at the node",
        "export the log and remove old messages, or accept it with another browser");
    }
  }
  const box = Object.values(boxes).find(({ deliveries }) => deliveries.includes(delivery)) ?? boxes.messages;
  // A look at the same time would confirm it, too, and the later of both would find nothing at the node.
  const confirmed = looks.then(() => (list.get(delivery.bundle).accepted === null ? confirmAccepted(box, delivery) : null));
  looks = confirmed.catch(() => null);
  await confirmed;
  changed();
}

/** Lets the node delete its copy of what is kept here. */
async function confirmAccepted(box, delivery) {
  const entry = list.get(delivery.bundle);
  try {
    await ask("DELETE", pathOf(delivery));
  } catch (error) {
    if (error.status !== 404 && error.status !== 410) throw error;
    // It was accepted by another client, or has expired: the node has no copy any more.
    entry.wasGone = true;
  }
  list.putAnyhow(Object.assign(entry, { accepted: entry.accepted ?? Date.now() }));
  box.deliveries = box.deliveries.filter(({ bundle }) => bundle !== delivery.bundle);
}

/** Removes accepted entries from this browser. */
export function forgetReceived(isForgotten) {
  list.remove((entry) => entry.accepted !== null && isForgotten(entry));
}
