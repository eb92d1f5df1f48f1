// Requests to the node. All data of the page come from here; with a token, every request carries it.

const TOKEN = "longwire.token";

/** An error that the node or the connection to it has reported. */
export class Failure extends Error {
  constructor(status, message, hint = null) {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

export const unreachable = () =>
  new Failure(0, "the node does not answer", "check that the node runs and that this device is in its network; the page tries again by itself");

const wanted = new Set();

/** Calls a listener when the node asks for a token. */
export function onTokenWanted(listener) {
  wanted.add(listener);
}

/** Keeps the token for this tab, until it is closed. */
export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

export function forgetToken() {
  sessionStorage.removeItem(TOKEN);
}

export function hasToken() {
  return sessionStorage.getItem(TOKEN) !== null;
}

function headers() {
  const token = sessionStorage.getItem(TOKEN);
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}

function failure(status, text) {
  let said = null;
  try {
    said = JSON.parse(text);
  } catch {
    // An answer without a document, such as that of a proxy.
  }
  if (status === 401) wanted.forEach((listener) => listener());
  return new Failure(status, said?.error ?? `the node answered with status ${status}`, said?.hint ?? null);
}

/** Time without an answer after which a request has failed, ms: a phone that leaves the network gets no error. */
const ANSWER_MAX_MS = 15_000;

/** Sends a request and returns the response, which has succeeded; its body may take longer. */
export async function request(method, path, options = {}) {
  const abort = new AbortController();
  options.signal?.addEventListener("abort", () => abort.abort());
  const limit = setTimeout(() => abort.abort(), ANSWER_MAX_MS);
  let response;
  try {
    response = await fetch(path, {
      method,
      cache: "no-store",
      credentials: "omit",
      headers: { ...headers(), ...options.headers },
      body: options.body,
      signal: abort.signal,
    });
  } catch {
    throw unreachable();
  } finally {
    clearTimeout(limit);
  }
  if (!response.ok) throw failure(response.status, await response.text().catch(() => ""));
  return response;
}

/** Sends a request and returns the document of the answer. */
export async function ask(method, path, document) {
  const body = document === undefined ? undefined : JSON.stringify(document);
  const type = body === undefined ? {} : { "Content-Type": "application/json" };
  const abort = new AbortController();
  const response = await request(method, path, { body, headers: type, signal: abort.signal });
  const limit = setTimeout(() => abort.abort(), ANSWER_MAX_MS);
  try {
    return await response.json();
  } catch {
    throw unreachable();
  } finally {
    clearTimeout(limit);
  }
}

/** A path with a name in it. */
export function named(path, name, rest = "") {
  return `${path}/${encodeURIComponent(name)}${rest}`;
}

/** A path with a query; parameters that are null or empty are left out. */
export function query(path, parameters) {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") all.set(name, value);
  }
  const text = all.toString();
  return text ? `${path}?${text}` : path;
}

/**
 * Sends a bundle. `progress` gets the bytes that have been uploaded. Resolves with the answer once the node has stored the bundle.
 */
export function send(parameters, payload, progress = () => {}, signal = null) {
  return new Promise((resolve, reject) => {
    const upload = new XMLHttpRequest();
    upload.open("POST", query("/bundles", parameters));
    for (const [name, value] of Object.entries(headers())) upload.setRequestHeader(name, value);
    let isUploaded = false;
    upload.upload.addEventListener("progress", (event) => progress(event.loaded));
    upload.upload.addEventListener("load", () => {
      isUploaded = true;
    });
    upload.addEventListener("load", () => {
      try {
        if (upload.status === 201) resolve(JSON.parse(upload.responseText));
        else reject(failure(upload.status, upload.responseText));
      } catch {
        reject(unreachable());
      }
    });
    // All of it may be stored although the answer is lost.
    const interrupted = (words) => isUploaded ?
      new Failure(0, "the answer of the node was lost, and it is not known whether it has stored the bundle", "look for it in Queue before you send it again") :
      new Failure(0, `${words}; nothing was sent`, "the payload may exceed a limit of the node, or the connection was lost");
    upload.addEventListener("error", () => reject(interrupted("the upload was interrupted")));
    upload.addEventListener("abort", () => reject(interrupted("the upload was cancelled")));
    signal?.addEventListener("abort", () => upload.abort());
    upload.send(payload);
  });
}

/** Saves a delivery as a file. Without a token the browser itself loads it, of any size. */
export async function save(path, name) {
  const link = document.createElement("a");
  link.download = name;
  if (hasToken()) {
    const response = await request("GET", path);
    link.href = URL.createObjectURL(await response.blob());
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } else {
    link.href = path;
  }
  link.click();
}

/** Saves a text as a file. */
export function saveText(text, type, name) {
  const link = document.createElement("a");
  link.download = name;
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
