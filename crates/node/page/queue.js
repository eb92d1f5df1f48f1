// The queue: bundles in the store, how far each is, and why it waits.

import { ask, named, query } from "./api.js";
import { confirm, open, tell } from "./dialog.js";
import { button, choice, empty, facts, make, problem, replace, say } from "./dom.js";
import { onEvents } from "./events.js";
import { bytes, count, duration, fromDtn, moment, plural, rate } from "./format.js";
import { nameOf } from "./sent.js";
import { Rate, onStatus, refresh, status } from "./state.js";
import { VirtualList } from "./virtual_list.js";

/** Bundles of one page of the list. */
const PAGE = 100;
/** Minimum time between two refreshes of the visible bundles, ms. */
const SOON_MS = 1000;

/** States of a bundle, as the interface names them, in words and with a sign that does not depend on colour. */
const STATES = {
  on_the_way: ["▶", "being sent"],
  queued: ["…", "queued"],
  links_down: ["✕", "links down"],
  no_route: ["?", "no route"],
  no_contact: ["◷", "waits for a contact"],
  better_hop: ["◷", "waits for a better route"],
  spread: ["⁂", "copied to nodes met"],
  resting: ["↻", "refused, tried again later"],
  in_custody: ["⚑", "in custody"],
  arriving: ["▼", "arriving"],
  storing: ["▼", "being stored"],
  checking: ["▼", "being verified"],
  without_key: ["⚿", "waits for a key"],
  in_parts: ["▤", "waits for fragments"],
  nobody_registered: ["✉", "no application"],
  not_taken: ["✉", "not accepted yet"],
};

const PRIORITIES = { bulk: "bulk", normal: "normal", expedited: "expedited" };

/** Loaded pages, from the beginning of the list: `after` of each, and its bundles. */
let pages = [];
let isComplete = false;
let filter = {};
let inView = [0, 0];
let generation = 0;
let isLoading = false;
let isStale = false;
let timer = null;
/** Time at which the last load began, ms. */
let loadedAt = -Infinity;
let list;
let summary;
let trouble;
let nothing;
let isShown = false;
const rates = new Map();

export const title = "Queue";

export function build(root) {
  list = new VirtualList("Bundles in the store", makeRow, fillRow, (first, last) => {
    inView = [first, last];
    wantPages();
  });
  summary = make("p", { class: "summary" });
  trouble = make("div");
  nothing = make("div");
  const states = [["", "All states"], ...Object.entries(STATES).map(([state, [, words]]) => [state, words])];
  const state = choice(states, "", { "aria-label": "Filter by state" });
  const to = make("input", { type: "search", placeholder: "destination, such as dtn://bob/*", "aria-label": "Filter by destination" });
  const changed = () => {
    filter = { state: state.value, destination: pattern(to.value) };
    startAgain();
  };
  state.addEventListener("change", changed);
  let pause;
  to.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(changed, 300);
  });
  root.append(make("div", { class: "bar" }, summary, make("div", { class: "filters" }, state, to)), trouble, nothing, list.element);
  onEvents((batch) => {
    if (batch.some((event) => event.event.startsWith("bundle") || event.event.startsWith("link") || event.event === "missed")) soon();
  });
  onStatus(() => {
    showSummary();
    soon();
  });
}

export function show() {
  isShown = true;
  if (pages.length === 0) startAgain();
  else soon(0);
}

export function hide() {
  isShown = false;
}

/** What is entered is the beginning of a destination. */
function pattern(text) {
  const entered = text.trim();
  return entered === "" || entered.endsWith("*") ? entered : `${entered}*`;
}

function startAgain() {
  generation += 1;
  pages = [];
  isComplete = false;
  isLoading = false;
  list.scrollToTop();
  soon(0);
}

function loaded() {
  const whole = pages.length === 0 ? 0 : (pages.length - 1) * PAGE;
  return whole + (pages.at(-1)?.bundles.length ?? 0);
}

function bundleAt(index) {
  return pages[Math.floor(index / PAGE)]?.bundles[index % PAGE] ?? null;
}

/** Number of rows: those that are known, and as many as there can be besides. */
function rows() {
  if (isComplete) return loaded();
  const isFiltered = filter.state || filter.destination;
  return isFiltered ? loaded() + (pages.length ? PAGE : 0) : Math.max(loaded(), status?.bundles ?? 0);
}

function soon(delayMs = Math.max(0, loadedAt + SOON_MS - performance.now())) {
  if (!isShown) return;
  if (isLoading) {
    isStale = true;
    return;
  }
  if (timer !== null && delayMs > 0) return;
  clearTimeout(timer);
  timer = setTimeout(load, delayMs);
}

/** Loads pages up to the visible ones, which the user has just scrolled to. */
function wantPages() {
  if (!isComplete && !isLoading && Math.floor(inView[1] / PAGE) >= pages.length) soon(0);
}

async function load() {
  timer = null;
  loadedAt = performance.now();
  isLoading = true;
  isStale = false;
  const mine = generation;
  try {
    const last = Math.floor(inView[1] / PAGE);
    // Pages between the known and the visible ones come first: the place of a page follows from those before it.
    for (let page = Math.min(pages.length, Math.floor(inView[0] / PAGE)); page <= Math.floor(inView[1] / PAGE); page += 1) {
      if (isComplete && page >= pages.length) break;
      if (!(await loadPage(page, mine))) return;
      if (page > last + 200) break;
    }
    showTrouble(null);
  } catch (error) {
    // The token is asked for by a dialog.
    if (mine === generation && error.status !== 401) showTrouble(error);
  }
  if (mine !== generation) return;
  isLoading = false;
  showRows();
  if (isStale || pages.some((page) => page.isMoving)) soon();
}

/** Shows why the list could not be loaded; the same reason is not announced again. */
function showTrouble(error) {
  const now = error?.message ?? "";
  if (trouble.dataset.now === now) return;
  trouble.dataset.now = now;
  replace(trouble, error ? problem(error) : null);
}

async function loadPage(page, mine) {
  const after = page === 0 ? null : pages[page - 1].next;
  const answer = await ask("GET", query("/bundles", { limit: PAGE, after, ...filter }));
  if (mine !== generation) return false;
  const isMoving = answer.bundles.some((bundle) => bundle.state === "on_the_way" || bundle.state === "arriving");
  const before = pages[page];
  pages[page] = { next: answer.next, bundles: answer.bundles, isMoving };
  // If this page ends elsewhere than before, those behind it begin elsewhere.
  if (before && before.next !== answer.next) pages.length = page + 1;
  if (answer.next === null) pages.length = page + 1;
  isComplete = pages.at(-1).next === null;
  sampleRates(answer.bundles);
  showRows();
  return true;
}

function key(bundle) {
  return bundle.fragment ? `${bundle.id} ${bundle.fragment.offset_bytes}` : bundle.id;
}

function sampleRates(bundles) {
  const now = performance.now();
  for (const bundle of bundles) {
    if (bundle.state !== "on_the_way") {
      rates.delete(key(bundle));
      continue;
    }
    if (!rates.has(key(bundle))) rates.set(key(bundle), new Rate());
    rates.get(key(bundle)).sample(bundle.transmitted_bytes, now);
  }
  if (rates.size > 2000) rates.clear();
}

function showRows() {
  const number = rows();
  const isFiltered = filter.state || filter.destination;
  if (number === 0 && isComplete) {
    const words = isFiltered ? "No bundle matches the filter." : "Nothing waits. All bundles have been delivered, forwarded or accepted.";
    replace(nothing, empty(words, isFiltered ? null : "Send a file or a message, and it appears here until the next node has it."));
  } else if (nothing.firstChild) {
    replace(nothing);
  }
  list.element.hidden = number === 0;
  list.update(number);
  showSummary();
}

function showSummary() {
  if (!status) return;
  const share = Math.round((100 * status.stored_bytes) / Math.max(1, status.stored_bytes_max));
  const full = share >= 1 ? ` (${share} % of the store)` : "";
  const matching = isComplete && (filter.state || filter.destination) ? `${count(loaded())} shown, ` : "";
  say(summary, `${matching}${plural(status.bundles, "bundle")}, ${bytes(status.stored_bytes)}${full}`);
}

function makeRow() {
  const parts = {
    sign: make("span", { class: "sign", "aria-hidden": "true" }),
    title: make("span", { class: "title" }),
    id: make("span", { class: "id" }),
    why: make("span", { class: "why" }),
    size: make("span", { class: "size" }),
    priority: make("span", { class: "priority" }),
    progress: make("progress", { max: 1, "aria-label": "Transmitted" }),
    pace: make("span", { class: "pace" }),
  };
  const open = make("button", { type: "button", class: "open" }, parts.title, parts.id);
  const row = make("div", { class: "row bundle" }, parts.sign, make("div", { class: "what" }, open, parts.why),
    make("div", { class: "figures" }, make("span", {}, parts.priority, parts.size), parts.progress, parts.pace));
  row.parts = parts;
  open.addEventListener("click", () => row.bundle && details(row.bundle));
  return row;
}

function fillRow(row, index) {
  const bundle = bundleAt(index);
  const { sign, title, id, why, size, priority, progress, pace } = row.parts;
  row.bundle = bundle;
  row.classList.toggle("pending", bundle === null);
  if (bundle === null) {
    [sign, id, why, size, priority, pace].forEach((part) => say(part, ""));
    say(title, "loading …");
    progress.hidden = true;
    return;
  }
  const [mark, words] = STATES[bundle.state] ?? ["·", bundle.state];
  row.dataset.state = bundle.state;
  say(sign, mark);
  say(title, nameOf(bundle.id) ?? bundle.destination);
  say(id, nameOf(bundle.id) ? `to ${bundle.destination}` : bundle.id);
  say(why, bundle.why || words);
  say(size, bytes(bundle.payload_bytes));
  say(priority, bundle.priority === "normal" ? "" : PRIORITIES[bundle.priority]);
  priority.dataset.priority = bundle.priority;
  const isMoving = bundle.state === "on_the_way" || bundle.transmitted_bytes > 0;
  progress.hidden = !isMoving;
  progress.value = bundle.payload_bytes ? bundle.transmitted_bytes / bundle.payload_bytes : 0;
  say(pace, isMoving ? paceOf(bundle) : `expires in ${duration(bundle.lifetime_left_s)}`);
}

/** Frames of a bundle that is sent over radio: those of its link, if it is the only one that is sent there. */
function framesOf(bundle) {
  if (bundle.state !== "on_the_way") return "";
  const over = (status?.links ?? []).filter((link) => link.radio?.frames_in_all && bundle.why.includes(`\`${link.name}\``));
  return over.length === 1 ? `, ${over[0].radio.frames_acknowledged} of ${over[0].radio.frames_in_all} frames` : "";
}

/** How much is transmitted, how fast, and the time left. */
function paceOf(bundle) {
  const percent = bundle.payload_bytes ? Math.floor((100 * bundle.transmitted_bytes) / bundle.payload_bytes) : 0;
  const share = `${percent} %${framesOf(bundle)}`;
  const perSecond = rates.get(key(bundle))?.perSecond;
  if (!perSecond || bundle.state !== "on_the_way") return share;
  const left = (bundle.payload_bytes - bundle.transmitted_bytes) / perSecond;
  return `${share}, ${rate(perSecond)}, ${duration(left)} left`;
}

/** Opens a dialog with all that is known of a bundle. */
export function details(bundle) {
  const created = fromDtn(Array.isArray(bundle.created) ? bundle.created[0] : null);
  const fragment = bundle.fragment && `from byte ${count(bundle.fragment.offset_bytes)} of ${count(bundle.fragment.total_bytes)}`;
  const content = facts([
    ["State", STATES[bundle.state]?.[1] ?? bundle.state],
    ["Why it is here", bundle.why],
    ["File", nameOf(bundle.id)],
    ["Destination", bundle.destination],
    ["Source", bundle.source],
    ["ID", bundle.id],
    ["Created", created && moment(created, true)],
    ["Priority", PRIORITIES[bundle.priority]],
    ["Payload", `${bytes(bundle.payload_bytes)} (${count(bundle.payload_bytes)} bytes)`],
    ["Fragment", fragment],
    ["Transmitted", `${count(bundle.transmitted_bytes)} bytes`],
    ["Acknowledged", `${count(bundle.safe_bytes)} bytes`],
    ["Arrived over", bundle.arrived_over && `link ${bundle.arrived_over}`],
    ["Refused by peers", bundle.refusals ? `${bundle.refusals} times for lack of space` : null],
    ["Age", duration(bundle.age_s)],
    ["Lifetime left", duration(bundle.lifetime_left_s)],
    ["Custodian", bundle.custodian],
    ["Version", `Bundle Protocol ${bundle.version}`],
  ]);
  const dialog = open("Bundle", content, [
    button("Close", () => dialog.close(), { autofocus: true }),
    button("Cancel this bundle …", () => {
      dialog.close();
      cancel(bundle);
    }, { class: "danger" }),
  ]);
}

async function cancel(bundle) {
  const text = `${nameOf(bundle.id) ?? "The bundle"} to ${bundle.destination} (${bytes(bundle.payload_bytes)}) will be deleted on this ` +
    "node, with all its fragments. Copies on other nodes stay. This cannot be undone.";
  const isDone = await confirm("Cancel this bundle?", text, "Delete it", () => ask("DELETE", named("/bundles", bundle.id)));
  if (!isDone) return;
  tell("The bundle was deleted on this node");
  refresh();
  soon(0);
}
