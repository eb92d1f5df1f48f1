// Messages: plain text between people, with receipts.

import { Failure, save, send } from "./api.js";
import { confirm, open, tell } from "./dialog.js";
import { button, choice, empty, field, make, problem, replace, say } from "./dom.js";
import { acceptFile, fateOf } from "./files.js";
import { bytes, endpointOf, moment, nodeEntered, nodeOf, plural, shortNode } from "./format.js";
import { airTime, knownNodes, suggest } from "./nodes.js";
import { receiving } from "./receiving.js";
import { accept, arrivedAt, boxes, contentOf, forgetReceived, onReceived, pathOf, received, sentAt } from "./received.js";
import { addSent, forget, onSent, sent } from "./sent.js";
import { onStatus, refresh } from "./state.js";

/** Maximum length of a message, bytes. */
const BYTES_MAX = 60_000;
/** Number of messages of a conversation that are shown. */
const SHOWN_MAX = 200;
/** Number of messages at the node whose texts are loaded; the others follow when these are accepted. */
const LOADED_MAX = 100;
const LIFETIME_S = 86_400;

export const title = "Messages";

let chooser;
let thread;
let composer;
let banner;
let partner = null;
let more;
let tidy;
const texts = new Map();
const drafts = new Map();

export function build(root) {
  banner = receiving("messages");
  chooser = make("div", { class: "people", role: "group", "aria-label": "Conversations" });
  thread = make("ol", { class: "thread", role: "log", "aria-label": "Messages" });
  composer = buildComposer();
  more = make("p", { class: "note", hidden: true });
  tidy = button("Remove old messages …", forgetFinished, { class: "quiet", hidden: true });
  root.append(banner.element, chooser, more, thread, composer.element, tidy);
  onReceived(update);
  onSent(update);
  onStatus(update);
}

export function show() {
  update();
}

export function hide() {}

/** Number of messages that are not accepted, for the tab. */
export function badge() {
  return boxes.messages.deliveries.length;
}

function update() {
  banner.update();
  loadTexts();
  render();
}

/** Deliveries that are shown. */
const loadable = () => boxes.messages.deliveries.slice(0, LOADED_MAX);

/** Loads the texts of messages that have arrived. */
function loadTexts() {
  const present = new Set(loadable().map((delivery) => delivery.bundle));
  for (const bundle of texts.keys()) if (!present.has(bundle)) texts.delete(bundle);
  for (const delivery of loadable()) if (!texts.has(delivery.bundle)) loadText(delivery);
}

function loadText(delivery) {
  texts.set(delivery.bundle, { state: "loading" });
  contentOf(delivery).then(
    (content) => texts.set(delivery.bundle, { state: "loaded", ...content }),
    (error) => texts.set(delivery.bundle, { state: "failed", error }),
  ).then(render);
}

/** What was loaded of a delivery. */
export function contentKnown(delivery) {
  const known = texts.get(delivery.bundle);
  return known?.state === "loaded" ? known : null;
}

/** Node of the other person; of an anonymous message, its source `dtn:none`. */
const partnerOf = (endpoint) => nodeOf(endpoint) ?? endpoint;

/** Messages by conversation: the node of the other person, and the messages in order. */
function conversations() {
  const all = new Map();
  const enter = (node, message) => {
    if (!all.has(node)) all.set(node, []);
    all.get(node).push(message);
  };
  for (const entry of sent()) if (entry.kind === "message") enter(partnerOf(entry.to), { key: entry.id, at: entry.at, text: entry.text, entry });
  for (const entry of received()) {
    if (entry.kind === "message") enter(partnerOf(entry.from), { key: entry.id, at: entry.at, text: entry.text, from: entry.from, kept: entry });
  }
  const kept = new Set(received().map((entry) => entry.id));
  for (const delivery of loadable()) {
    if (kept.has(delivery.bundle)) continue;
    enter(partnerOf(delivery.source), { key: delivery.bundle, at: arrivedAt(delivery), from: delivery.source, delivery, content: texts.get(delivery.bundle) });
  }
  for (const messages of all.values()) messages.sort((a, b) => a.at - b.at);
  return all;
}

function render() {
  const all = conversations();
  suggest(composer.suggestions, knownNodes());
  const nodes = [...all.keys()];
  if (partner !== null && !nodes.includes(partner)) nodes.push(partner);
  nodes.sort((a, b) => (all.get(b)?.at(-1)?.at ?? Infinity) - (all.get(a)?.at(-1)?.at ?? Infinity));
  if (partner === null && nodes.length > 0) choose(nodes[0], false);
  renderPeople(nodes, all);
  const messages = all.get(partner) ?? [];
  renderThread(messages);
  const further = boxes.messages.deliveries.length - loadable().length;
  say(more, further > 0 ? `${plural(further, "further message")} at the node. They are shown when some of these are accepted.` : "");
  more.hidden = further <= 0;
  tidy.hidden = !messages.some(isFinished);
  // Nobody can answer an anonymous message.
  composer.element.hidden = partner === null || nodeOf(partner) === null;
}

function renderPeople(nodes, all) {
  const now = JSON.stringify([partner, nodes.map((node) => [node, unread(all.get(node))])]);
  if (now === chooser.dataset.drawn) return;
  chooser.dataset.drawn = now;
  const focused = chooser.contains(document.activeElement) ? document.activeElement.dataset.node : null;
  replace(chooser, nodes.map((node) => {
    const count = unread(all.get(node));
    const words = count ? `${shortNode(node)} (${count} new)` : shortNode(node);
    return button(words, () => choose(node), { "aria-pressed": String(node === partner), data: { node } });
  }), button("New …", newConversation, { data: { node: "" } }));
  if (focused !== null) [...chooser.children].find((child) => child.dataset.node === focused)?.focus();
}

/** Elements of the messages that are shown, by their keys: what has not changed is not announced again. */
const items = new Map();

function renderThread(messages) {
  const isAtEnd = thread.scrollTop + thread.clientHeight >= thread.scrollHeight - 40;
  const shown = messages.slice(-SHOWN_MAX);
  const elements = shown.map((message) => {
    const now = JSON.stringify([message.kept, message.entry && [message.entry.text, fateOf(message.entry)], message.content, message.delivery?.id]);
    const known = items.get(message.key);
    if (known?.now === now) return known.element;
    const element = messageItem(message);
    items.set(message.key, { now, element });
    return element;
  });
  const keys = new Set(shown.map((message) => message.key));
  for (const key of items.keys()) if (!keys.has(key)) items.delete(key);
  if (elements.length === 0) {
    const words = partner === null ? "No messages yet." : `No messages with ${shortNode(partner)} yet.`;
    if (thread.dataset.empty === words && thread.children.length === 1) return;
    thread.dataset.empty = words;
    replace(thread, make("li", { class: "plain-item" }, empty(words, partner === null ? "Choose \"New\" to write to a person at another node." : null)));
    return;
  }
  thread.dataset.empty = "";
  for (const child of [...thread.children]) if (!elements.includes(child)) child.remove();
  elements.forEach((element, index) => {
    if (thread.children[index] !== element) thread.insertBefore(element, thread.children[index] ?? null);
  });
  if (isAtEnd) thread.scrollTop = thread.scrollHeight;
}

const unread = (messages) => (messages ?? []).filter((message) => message.delivery).length;

/** True for a message that nothing more will happen to. */
const isFinished = ({ entry, kept }) => (entry ? !["stored", "forwarded"].includes(entry.state) : Boolean(kept?.accepted));

async function forgetFinished() {
  const gone = new Set((conversations().get(partner) ?? []).filter(isFinished).map((message) => message.key));
  const text = `${plural(gone.size, "message")} with ${shortNode(partner)} will be removed from this browser. Export the log first, if you need it. This cannot be undone.`;
  await confirm("Remove old messages?", text, "Remove them", async () => {
    forget((entry) => gone.has(entry.id));
    forgetReceived((entry) => gone.has(entry.id));
  });
}

/** What became of a message that has arrived. */
function fateOfReceived({ kept }) {
  if (!kept) return ["●", "at the node, not accepted yet"];
  if (kept.accepted === null) return ["…", "kept in this browser; the node has not confirmed it yet"];
  return kept.wasGone ? ["✓", "kept in this browser; the node had no copy any more"] : ["✓", `accepted at ${moment(kept.accepted)}`];
}

function messageItem(message) {
  const { entry, delivery, content, kept } = message;
  const [sign, words] = entry ? fateOf(entry) : fateOfReceived(message);
  const who = entry ? "You" : shortNode(partnerOf(message.from));
  const created = kept?.created ?? (delivery ? sentAt(delivery) : null);
  const when = entry ? moment(message.at) : created ? `sent ${moment(created)}` : moment(message.at);
  const state = entry?.state ?? (delivery || kept?.accepted === null ? "arrived" : "accepted");
  const fate = make("p", { class: "fate" }, `${who}, ${when} · `, make("span", { "aria-hidden": "true" }, `${sign} `), words);
  const body = delivery ? arrivedBody(delivery, content, who) : [make("p", { class: "text", dir: "auto" }, message.text)];
  return make("li", { class: entry ? "mine" : "theirs", data: { state } }, body[0], fate, body.slice(1));
}

/** Content of a delivery, and what can be done with it: only text that is kept as it is can be accepted without a question. */
function arrivedBody(delivery, content, who) {
  if (!content || content.state === "loading") return [make("p", { class: "soft" }, "loading …")];
  if (content.state === "failed") {
    return [make("p", { class: "soft" }, `It could not be loaded: ${content.error.message}.`), make("div", { class: "buttons" }, button("Try again", () => loadText(delivery)))];
  }
  const text = content.isText ? make("p", { class: "text", dir: "auto" }, content.text) : make("p", { class: "soft" }, "This is not text.");
  if (content.isText && content.isWhole && content.name === null) {
    return [text, make("div", { class: "buttons" }, button("Accept", (event) => acceptMessage(delivery, content, event.target), { "aria-label": `Accept the message of ${who}` }))];
  }
  const file = { delivery, name: content.name, length: content.length, isSaved: false };
  const words = content.name !== null ? `A file, ${content.name}.` : content.isText ? "The message is longer than this page shows and keeps." : "This page cannot keep it.";
  return [text, make("p", { class: "soft" }, `${words} Save it before you accept it.`), make("div", { class: "buttons" },
    button("Save as a file", async () => {
      try {
        await save(pathOf(delivery), content.name ?? "message.bin");
        file.isSaved = true;
      } catch (error) {
        tell(error.message, true);
      }
    }),
    button("Accept …", () => acceptFile(file)))];
}

async function acceptMessage(delivery, { text }, pressed) {
  pressed.disabled = true;
  try {
    await accept(delivery, { kind: "message", text, bytes: delivery.payload_bytes });
    composer.text.focus();
  } catch (error) {
    pressed.disabled = false;
    tell(error.hint ? `${error.message}. Hint: ${error.hint}` : error.message, true);
  }
}

function choose(node, focuses = true) {
  if (partner !== null) drafts.set(partner, composer.text.value);
  partner = node;
  items.clear();
  composer.text.value = drafts.get(node) ?? "";
  replace(composer.trouble);
  composer.measure();
  if (!focuses) return;
  render();
  thread.scrollTop = thread.scrollHeight;
  composer.text.focus();
}

function newConversation() {
  const to = make("input", { id: "messages-to", list: "messages-nodes", required: true, autocomplete: "off", spellcheck: "false", placeholder: "bob" });
  const trouble = make("div");
  const form = make("form", { class: "form" },
    field("Name or node ID", to, "The message goes to the endpoint for messages of that node: dtn://bob/messages, or service 2 of an ipn node."),
    trouble, make("div", { class: "buttons" }, button("Cancel", () => dialog.close()), make("button", { type: "submit" }, "Write")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const node = nodeEntered(to.value);
    if (!node) {
      replace(trouble, problem(new Failure(0, `"${to.value}" is no node`, "for example bob, dtn://bob/ or ipn:7.0")));
      return;
    }
    dialog.close();
    choose(node);
  });
  const dialog = open("Write to", form);
  to.focus();
}

function buildComposer() {
  const text = make("textarea", { id: "messages-text", rows: 3, "aria-label": "Your message" });
  const size = make("small", { "aria-live": "off" });
  const trouble = make("div");
  const priority = choice([["normal", "normal"], ["expedited", "expedited"]], "normal", { "aria-label": "Priority" });
  const submit = make("button", { type: "submit" }, "Send");
  const suggestions = make("datalist", { id: "messages-nodes" });
  const element = make("form", { class: "composer" }, text, make("div", { class: "bar" }, size, make("div", { class: "send" }, priority, submit)), trouble, suggestions);
  let isSending = false;
  const length = () => new TextEncoder().encode(text.value).length;
  const measure = () => {
    const count = length();
    submit.disabled = isSending || count === 0 || count > BYTES_MAX;
    const time = count > BYTES_MAX ? "too long; send it as a file" : airTime(count, partner);
    say(size, count === 0 ? "" : time ? `${bytes(count)}; ${time}` : bytes(count));
  };
  text.addEventListener("input", measure);
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) element.requestSubmit();
  });
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (submit.disabled) return;
    const [node, words, size] = [partner, text.value, length()];
    const to = endpointOf(node, "messages");
    replace(trouble);
    text.value = "";
    isSending = true;
    measure();
    try {
      const parameters = { to, priority: priority.value, lifetime_s: LIFETIME_S, report_delivery: "true" };
      const accepted = await send(parameters, new Blob([words]));
      addSent({ id: accepted.id, kind: "message", to, text: words, bytes: size, lifetime_s: LIFETIME_S, wantsReceipt: true });
      thread.scrollTop = thread.scrollHeight;
      refresh();
    } catch (error) {
      // A text that was not sent is in the field again, before what was written meanwhile.
      const draft = node === partner ? text.value : drafts.get(node) ?? "";
      const both = draft ? `${words}\n${draft}` : words;
      if (node === partner) {
        text.value = both;
        replace(trouble, problem(error));
      } else {
        drafts.set(node, both);
        tell(`The message to ${shortNode(node)} was not sent: ${error.message}`, true);
      }
    }
    isSending = false;
    measure();
  });
  return { element, text, trouble, suggestions, measure };
}
