// Events of the node, as a stream that resumes after interruptions. It is read with fetch, since an EventSource cannot send a token.

import { ask, request } from "./api.js";

/** Maximum number of events that the page keeps. */
const KEPT_MAX = 5000;
/** Time without any data after which the connection counts as lost, ms; the node sends something every 15 s. */
const SILENCE_MAX_MS = 40_000;

export const events = [];
const listeners = new Set();
let last = 0;
let delayMs = 0;

/** Calls a listener with each batch of new events. Returns the function that ends this. */
export function onEvents(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Calls a listener each time that the stream begins. */
export function onConnected(listener) {
  connected.add(listener);
}
const connected = new Set();

/** Reads events for as long as the page is open, and again after each interruption. */
export async function follow() {
  for (;;) {
    try {
      await beginAgainAfterRestart();
      await read();
    } catch (error) {
      if (error.status === 401) return;
    }
    delayMs = Math.min(15_000, Math.max(500, delayMs * 2));
    await new Promise((resolve) => setTimeout(resolve, delayMs));
  }
}

/** Maximum difference between two clocks in the time since the last look, seconds. */
const CLOCKS_APART_MAX_S = 10;
let looked = null;

/** Numbers of events begin again when the node starts again, which is seen from its uptime. */
async function beginAgainAfterRestart() {
  const { uptime_s } = await ask("GET", "/status");
  const passed = looked ? (Date.now() - looked.at) / 1000 : 0;
  if (looked && uptime_s < looked.uptime_s + passed - CLOCKS_APART_MAX_S) last = 0;
  looked = { uptime_s, at: Date.now() };
}

async function read() {
  const abort = new AbortController();
  const response = await request("GET", `/events?after=${last}`, { signal: abort.signal });
  delayMs = 0;
  for (const listener of connected) listener();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const watchdog = setTimeout(() => abort.abort(), SILENCE_MAX_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(watchdog));
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    take(parts.map(parse).filter((event) => event !== null));
  }
}

function parse(part) {
  const data = part.split("\n").find((line) => line.startsWith("data: "));
  if (!data) return null;
  try {
    return JSON.parse(data.slice(6));
  } catch {
    return null;
  }
}

function take(batch) {
  if (batch.length === 0) return;
  for (const event of batch) {
    // A smaller number is from a new start of the node.
    if (event.sequence !== undefined) last = event.sequence;
    event.key = ++keys;
  }
  events.push(...batch);
  if (events.length > KEPT_MAX) events.splice(0, events.length - KEPT_MAX);
  for (const listener of listeners) listener(batch);
}
let keys = 0;
