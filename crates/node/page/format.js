// Figures, times and endpoint IDs as text.

/** DTN time zero, 2000-01-01 UTC, in milliseconds since 1970. */
const DTN_EPOCH_MS = 946_684_800_000;

export function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = count;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** A rate of payload, given in bytes a second. */
export function rate(bytesPerSecond) {
  return bitRate(bytesPerSecond * 8);
}

export function bitRate(bitsPerSecond) {
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
  let value = bitsPerSecond;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value.toFixed(value >= 99.95 || unit === 0 ? 0 : 1)} ${units[unit]}`;
}

/** A duration in its two largest units. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "unknown";
  const whole = Math.max(0, Math.round(seconds));
  const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, length]) => whole >= length);
  if (first < 0) return "0 s";
  const [name, length] = units[first];
  const count = Math.floor(whole / length);
  const next = units[first + 1];
  const rest = next ? Math.floor((whole - count * length) / next[1]) : 0;
  return rest > 0 && (count < 10 || length >= 3600) ? `${count} ${name} ${rest} ${next[0]}` : `${count} ${name}`;
}

export function count(number) {
  return number.toLocaleString("en");
}

/** "1 bundle", "2 bundles". */
export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** Milliseconds since 1970 of a DTN time; null without a clock. */
export function fromDtn(dtnMs) {
  return dtnMs ? dtnMs + DTN_EPOCH_MS : null;
}

const two = (number) => String(number).padStart(2, "0");

/** Local date as 2026-11-27. */
export function date(unixMs) {
  const at = new Date(unixMs);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** Local time as 12:03, or as 12:03:05. */
export function clock(unixMs, seconds = false) {
  const at = new Date(unixMs);
  const minutes = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return seconds ? `${minutes}:${two(at.getSeconds())}` : minutes;
}

/** Local time, with the date if it is not today. */
export function moment(unixMs, seconds = false) {
  const today = date(unixMs) === date(Date.now());
  return today ? clock(unixMs, seconds) : `${date(unixMs)} ${clock(unixMs, seconds)}`;
}

/** Node ID of an endpoint ID; null if it is none. */
export function nodeOf(endpoint) {
  const dtn = /^(dtn:\/\/[^/]+\/)/.exec(endpoint);
  if (dtn) return dtn[1];
  const ipn = /^(ipn:(?:\d+\.)?\d+)\.\d+$/.exec(endpoint);
  return ipn ? `${ipn[1]}.0` : null;
}

/** Service numbers of the endpoints on nodes of the scheme `ipn`. */
const SERVICES = { files: 1, messages: 2 };

/** Endpoint of a node for `files` or `messages`. */
export function endpointOf(node, service) {
  if (node.startsWith("ipn:")) return node.replace(/\.0$/, `.${SERVICES[service]}`);
  return `${node}${service}`;
}

/** Node ID for what a person has entered: a node ID, an endpoint ID, or the name alone. */
export function nodeEntered(text) {
  const entered = text.trim();
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(entered)) return `dtn://${entered}/`;
  if (/^dtn:\/\/[^/]+$/.test(entered)) return `${entered}/`;
  return nodeOf(entered);
}

/** Short name of a node: what follows the scheme. */
export function shortNode(node) {
  return node.replace(/^dtn:\/\//, "").replace(/\/$/, "");
}
