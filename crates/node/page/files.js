// Files: sending them, and those that have arrived.

import { Failure, save, send } from "./api.js";
import { confirm, tell } from "./dialog.js";
import { button, choice, empty, facts, field, make, problem, replace, say } from "./dom.js";
import { bytes, duration, endpointOf, moment, nodeEntered, nodeOf, plural, rate } from "./format.js";
import { airTime, knownNodes, suggest } from "./nodes.js";
import { SIZES, isPhoto, shrink } from "./photo.js";
import { receiving } from "./receiving.js";
import { accept, boxes, contentOf, forgetReceived, headOf, onReceived, pathOf, payloadOf, received, sentAt } from "./received.js";
import { addSent, forget, onSent, progressOf, sent } from "./sent.js";
import { onStatus, refresh, status } from "./state.js";

/** Maximum length of a picture that is shown before it is accepted, bytes. */
const PICTURE_BYTES_MAX = 20_000_000;
/** Number of files that are shown in each list. */
const SHOWN_MAX = 50;

export const title = "Files";

const chosen = [];
let form;

export function build(root) {
  form = buildForm();
  const arrived = make("div", { class: "entries" });
  const banner = receiving("files");
  const earlier = make("div", { class: "entries" });
  const columns = make("div", { class: "columns" },
    make("div", { class: "entries" }, make("h3", {}, "Send"), form.element, make("h3", {}, "Sent files"), form.sent),
    make("div", { class: "entries received" }, make("h3", {}, "Received files"), banner.element, arrived, earlier));
  root.append(columns);
  const showArrived = () => {
    banner.update();
    // On a phone, what waits for a decision comes first.
    columns.classList.toggle("arrived", boxes.files.deliveries.length > 0);
    renderArrived(arrived);
    renderEarlier(earlier);
  };
  onReceived(showArrived);
  onSent(renderSent);
  onStatus(() => {
    suggest(form.suggestions, knownNodes().map((node) => endpointOf(node, "files")));
    renderChosen();
  });
  showArrived();
  renderSent();
}

export function show() {
  renderSent();
}

export function hide() {}

/** Number of files that wait for a decision, for the tab. */
export function badge() {
  return boxes.files.deliveries.length;
}

// Sending

function buildForm() {
  const picker = make("input", { type: "file", multiple: true, class: "hidden", tabindex: -1, id: "files-picker", "aria-label": "Files to send" });
  const drop = make("div", { class: "drop" },
    make("p", {}, "Drop files here, or"), button("Choose files …", () => picker.click(), { class: "main" }), picker);
  const suggestions = make("datalist", { id: "files-destinations" });
  const to = make("input", { id: "files-to", list: "files-destinations", required: true, autocomplete: "off", spellcheck: "false", placeholder: "dtn://bob/files" });
  const priority = choice([["bulk", "bulk: when nothing else waits"], ["normal", "normal"], ["expedited", "expedited: first"]], "normal", { id: "files-priority" });
  const lifetime = choice([["3600", "1 hour"], ["21600", "6 hours"], ["86400", "1 day"], ["604800", "1 week"]], "86400", { id: "files-lifetime" });
  const report = make("input", { type: "checkbox", id: "files-report", checked: true });
  const list = make("ul", { class: "chosen" });
  const trouble = make("div");
  const submit = make("button", { type: "submit", disabled: true }, "Send");
  const element = make("form", { class: "card form" }, drop, list,
    field("To", to, "A name or a node ID sends to the endpoint for files of that node."),
    make("div", { class: "two" }, field("Priority", priority), field("Lifetime", lifetime)),
    make("label", { class: "check" }, report, "Ask for a receipt when it is delivered"),
    trouble, make("div", { class: "buttons" }, submit), suggestions);
  picker.addEventListener("change", () => {
    choose([...picker.files]);
    picker.value = "";
  });
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  element.addEventListener("dragleave", () => drop.classList.remove("over"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    choose([...event.dataTransfer.files]);
  });
  to.addEventListener("input", renderChosen);
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    sendAll();
  });
  return { element, list, to, priority, lifetime, report, trouble, submit, suggestions, sent: make("div", { class: "entries" }) };
}

/** Endpoint for what is entered; null if it is none. */
function destination() {
  const entered = form.to.value.trim();
  if (/^dtn:\/\/[^/]+\/.+/.test(entered) || /^ipn:[\d.]+\.[1-9]\d*$/.test(entered)) return entered;
  const node = nodeEntered(entered);
  return node && endpointOf(node, "files");
}

/** Removes an item, unless it was removed already. */
function drop(item) {
  const index = chosen.indexOf(item);
  if (index >= 0) chosen.splice(index, 1);
  renderChosen();
}

function choose(files) {
  for (const file of files) chosen.push({ original: file, file, side: "", trouble: null, state: "chosen", uploaded: 0 });
  renderChosen();
}

function renderChosen() {
  const to = destination();
  const node = to && nodeOf(to);
  for (const item of chosen) {
    item.view ??= chosenView(item);
    item.view.update(node);
  }
  const views = chosen.map((item) => item.view.element);
  if (views.length !== form.list.children.length || views.some((view, index) => form.list.children[index] !== view)) replace(form.list, views);
  const waiting = chosen.filter((item) => item.state === "chosen");
  form.submit.disabled = waiting.length === 0 || chosen.some((item) => item.state === "shrinking");
  say(form.submit, waiting.length > 1 ? `Send ${waiting.length} files` : "Send");
}

function chosenView(item) {
  const state = make("p", { class: "soft" });
  const trouble = make("div");
  const bar = make("progress", { max: 1, value: 0, "aria-label": `Upload of ${item.original.name} to the node` });
  const remove = button("Remove", () => {
    item.abort?.abort();
    drop(item);
  }, { "aria-label": `Remove ${item.original.name}` });
  const sizes = isPhoto(item.original) ? choice(SIZES, "", { "aria-label": `Size of the photo ${item.original.name}` }) : null;
  sizes?.addEventListener("change", () => resize(item, sizes.value));
  const element = make("li", {},
    make("div", { class: "head" }, make("strong", {}, item.original.name), remove), sizes, state, bar, trouble);
  return {
    element,
    update(node) {
      const size = item.side ? `${bytes(item.original.size)} made smaller to ${bytes(item.file.size)}` : bytes(item.file.size);
      const words = {
        chosen: `${size}; ${airTime(item.file.size, node) ?? "the time on the air is not known"}`,
        shrinking: "being made smaller …",
        uploading: `${bytes(item.uploaded)} of ${bytes(item.file.size)} are at the node`,
      };
      say(state, words[item.state]);
      bar.hidden = item.state !== "uploading";
      bar.value = item.file.size ? item.uploaded / item.file.size : 0;
      if (sizes) sizes.disabled = item.state === "uploading";
      if (sizes) sizes.value = item.side;
      const now = item.trouble?.message ?? "";
      if (trouble.dataset.now !== now) {
        trouble.dataset.now = now;
        replace(trouble, item.trouble ? problem(item.trouble) : null);
      }
    },
  };
}

async function resize(item, side) {
  item.trouble = null;
  item.side = side;
  item.file = item.original;
  if (side) {
    item.state = "shrinking";
    renderChosen();
    try {
      const smaller = await shrink(item.original, Number(side));
      if (item.side !== side) return;
      item.file = smaller;
    } catch (error) {
      if (item.side !== side) return;
      item.trouble = error;
      item.side = "";
    }
    item.state = "chosen";
  }
  renderChosen();
}

async function sendAll() {
  const to = destination();
  if (!to) {
    replace(form.trouble, problem(new Failure(0, `"${form.to.value}" is no destination`, "for example bob, dtn://bob/files or ipn:7.1")));
    form.to.focus();
    return;
  }
  replace(form.trouble);
  const parameters = {
    to,
    priority: form.priority.value,
    lifetime_s: form.lifetime.value,
    report_delivery: form.report.checked ? "true" : null,
  };
  for (const item of chosen.filter((item) => item.state === "chosen")) await sendOne(item, parameters);
}

async function sendOne(item, parameters) {
  if (!chosen.includes(item)) return;
  const { file } = item;
  Object.assign(item, { state: "uploading", trouble: null, uploaded: 0, abort: new AbortController() });
  renderChosen();
  try {
    const room = status ? status.stored_bytes_max - status.stored_bytes : Infinity;
    if (file.size > room) {
      throw new Failure(507, `${file.name} does not fit into the store of the node: ${bytes(Math.max(0, room))} are free`,
        "wait until bundles have left (see Queue), or make the photo smaller");
    }
    const accepted = await send({ ...parameters, name: file.name }, file, (uploaded) => {
      item.uploaded = Math.min(uploaded, file.size);
      renderChosen();
    }, item.abort.signal);
    const { to, lifetime_s, report_delivery } = parameters;
    addSent({ id: accepted.id, kind: "file", to, name: file.name, bytes: file.size, lifetime_s: Number(lifetime_s), wantsReceipt: report_delivery !== null });
    drop(item);
    tell(`${file.name} is stored at the node, and will be sent to ${parameters.to}`);
    refresh();
  } catch (error) {
    Object.assign(item, { state: "chosen", trouble: error });
  }
  renderChosen();
}

/** What became of a file or message, in words, with a sign. */
export function fateOf(entry) {
  switch (entry.state) {
    case "delivered":
      return ["✓", `delivered at ${moment(entry.ended)}${entry.by ? ` (receipt of ${entry.by})` : ""}`];
    case "reported":
      return ["→", `${entry.by} says at ${moment(entry.ended)} that it was delivered`];
    case "deleted":
      return ["✕", entry.by ? `a copy was deleted at ${entry.by}, ${moment(entry.ended)}` : `deleted here at ${moment(entry.ended)}: ${(entry.why ?? "").replaceAll("_", " ")}`];
    case "forwarded":
      return ["→", `passed to the next node${entry.wantsReceipt ? "; no receipt yet" : ""}`];
    case "gone":
      return ["?", entry.lifetime_s && entry.at + entry.lifetime_s * 1000 < Date.now() ? "its lifetime has passed without a receipt" :
        "no longer at this node; it is not known whether it was passed on or has expired"];
    default:
      return ["…", progressOf(entry.id)?.bundle.why ?? "waits at this node; see Queue"];
  }
}

function renderSent() {
  const files = sent().filter((entry) => entry.kind === "file");
  const now = JSON.stringify(files.slice(0, SHOWN_MAX).map((entry) => [entry, fateOf(entry), progressOf(entry.id)?.bundle.transmitted_bytes]));
  if (now === form.drawn) return;
  form.drawn = now;
  if (files.length === 0) {
    replace(form.sent, empty("No file was sent with this browser.", "The node sends what it has stored also while this page is closed."));
    return;
  }
  const finished = files.filter((entry) => entry.state !== "stored" && entry.state !== "forwarded");
  const tidy = finished.length === 0 ? null : make("div", { class: "buttons" },
    button(`Remove ${plural(finished.length, "finished file")} from this list`, () => forget((entry) => finished.includes(entry))));
  replace(form.sent, files.slice(0, SHOWN_MAX).map(sentEntry), tidy);
}

function sentEntry(entry) {
  const [sign, words] = fateOf(entry);
  const known = entry.state === "stored" ? progressOf(entry.id) : null;
  const bundle = known?.bundle;
  const share = bundle?.payload_bytes ? bundle.transmitted_bytes / bundle.payload_bytes : 0;
  const perSecond = known?.rate.perSecond;
  const left = perSecond && bundle ? `, ${rate(perSecond)}, ${duration((bundle.payload_bytes - bundle.transmitted_bytes) / perSecond)} left` : "";
  return make("article", { class: "entry", data: { state: entry.state } },
    make("span", { class: "sign", "aria-hidden": "true" }, sign),
    make("div", {},
      make("strong", {}, entry.name), make("span", { class: "soft" }, ` ${bytes(entry.bytes)} to ${entry.to}, ${moment(entry.at)}`),
      make("p", {}, words, share > 0 ? ` (${Math.floor(share * 100)} %${left})` : ""),
      share > 0 ? make("progress", { max: 1, value: share, "aria-label": `Transmission of ${entry.name}` }) : null));
}

// Receiving

const views = new Map();

function renderArrived(place) {
  const deliveries = boxes.files.deliveries;
  const present = new Set(deliveries.map((delivery) => delivery.bundle));
  for (const bundle of views.keys()) if (!present.has(bundle)) views.delete(bundle);
  // Each of them costs a request; the others follow when these are accepted.
  for (const delivery of deliveries.slice(0, SHOWN_MAX)) {
    if (!views.has(delivery.bundle)) views.set(delivery.bundle, arrivedView(delivery));
    views.get(delivery.bundle).delivery = delivery;
  }
  const shown = deliveries.slice(0, SHOWN_MAX).map((delivery) => views.get(delivery.bundle).element);
  if (shown.length === 0) {
    replace(place, boxes.files.isRegistered ? empty("No file has arrived.", "A file appears here as soon as all of it is at this node.") : null);
    return;
  }
  const further = deliveries.length - shown.length;
  const isSame = shown.every((element, index) => place.children[index] === element) && Number(place.dataset.further) === further &&
    place.children.length === shown.length + (further > 0 ? 1 : 0);
  if (isSame) return;
  place.dataset.further = further;
  replace(place, shown, further > 0 ? make("p", { class: "note" }, `${plural(further, "further file")} at the node. They are shown when some of these are accepted.`) : null);
}

function arrivedView(delivery) {
  const name = make("strong", {}, "…");
  const preview = make("div");
  const trouble = make("div");
  const view = { delivery, name: null, isSaved: false };
  const run = async (action) => {
    replace(trouble);
    try {
      await action();
    } catch (error) {
      replace(trouble, problem(error));
    }
  };
  const at = sentAt(delivery);
  view.element = make("article", { class: "card" },
    make("div", {}, name, make("span", { class: "soft" },
      ` ${bytes(delivery.payload_bytes)} from ${delivery.source}${at ? `, sent ${moment(at)}` : ""}`)),
    preview, trouble,
    make("div", { class: "buttons" },
      button("Show", () => run(() => preview.firstChild ? replace(preview) : showContent(view, preview))),
      button("Save", () => run(async () => {
        await save(pathOf(view.delivery), view.name ?? "delivery.bin");
        view.isSaved = true;
      }), { class: "main" }),
      button("Accept …", () => run(() => acceptFile(view)))));
  run(async () => {
    const { name: said, length } = await headOf(delivery);
    view.name = said;
    view.length = length;
    say(name, said ?? "(payload without a name)");
  });
  return view;
}

const PICTURES = { jpg: "image/jpeg", jpeg: "image/jpeg", png: "image/png", gif: "image/gif", webp: "image/webp" };

async function showContent(view, place) {
  const { name } = await headOf(view.delivery);
  const type = PICTURES[(name ?? "").split(".").pop().toLowerCase()];
  if (type) {
    const payload = await payloadOf(view.delivery, PICTURE_BYTES_MAX);
    if (!payload) throw new Failure(0, "the picture is too large to be shown", "save it");
    const picture = make("img", { alt: `Picture ${name}` });
    for (const end of ["load", "error"]) picture.addEventListener(end, () => URL.revokeObjectURL(picture.src));
    picture.addEventListener("error", () => replace(place, make("p", { class: "note" }, "This is no picture that the browser can show.")));
    picture.src = URL.createObjectURL(payload.slice(0, payload.size, type));
    replace(place, picture);
    return;
  }
  const { text, isText, isWhole } = await contentOf(view.delivery);
  if (!isText) {
    replace(place, make("p", { class: "note" }, "This is neither text nor a picture that can be shown. Save it to open it with another program."));
  } else {
    replace(place, make("pre", { tabindex: 0 }, text), isWhole ? null : make("p", { class: "soft" }, "The beginning of the text; save it for the rest."));
  }
}

/** Asks before a delivery of which this browser keeps only a note is accepted. */
export async function acceptFile(view) {
  const name = view.name ?? "the file";
  const text = view.isSaved ?
    `The node deletes its copy of ${name}. Make sure first that your browser has saved all of it.` :
    `You have not saved ${name} with this page. The node deletes its copy, and the file is lost unless you have it elsewhere.`;
  const entry = { kind: "file", name: view.name, bytes: view.length ?? view.delivery.payload_bytes };
  const isDone = await confirm("Accept this file?", `${text} The sender gets a receipt, if it has asked for one.`, "Accept and delete it on the node",
    () => accept(view.delivery, entry));
  if (isDone) tell(`Accepted ${name}`);
}

function renderEarlier(place) {
  const files = received().filter((entry) => entry.kind === "file" && entry.accepted !== null);
  const now = JSON.stringify(files);
  if (place.dataset.drawn === now) return;
  place.dataset.drawn = now;
  if (files.length === 0) {
    replace(place);
    return;
  }
  const rows = files.slice(0, SHOWN_MAX).map((entry) => [`${moment(entry.accepted)}, ${entry.wasGone ? "the node had no copy any more" : "accepted"}`, `${entry.name ?? "(no name)"}, ${bytes(entry.bytes)}, from ${entry.from}`]);
  replace(place, make("details", {}, make("summary", {}, `Accepted earlier: ${plural(files.length, "file")}`), facts(rows),
    make("div", { class: "buttons" }, button("Forget this list", () => forgetReceived((entry) => entry.kind === "file")))));
}
