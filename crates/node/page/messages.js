// Messages: plain text between people, with receipts.

import { Failure, named, save, send } from "./api.js";
import { open, tell } from "./dialog.js";
import { button, choice, empty, field, make, problem, replace, say } from "./dom.js";
import { fateOf } from "./files.js";
import { bytes, endpointOf, moment, nodeEntered, nodeOf, shortNode } from "./format.js";
import { airTime, knownNodes, suggest } from "./nodes.js";
import { receiving } from "./receiving.js";
import { accept, boxes, contentOf, onReceived, received, sentAt } from "./received.js";
import { addSent, onSent, sent } from "./sent.js";
import { onStatus, refresh } from "./state.js";

/** Maximum length of a message, bytes. */
const BYTES_MAX = 60_000;
/** Number of messages of a conversation that are shown. */
const SHOWN_MAX = 200;
const LIFETIME_S = 86_400;

export const title = "Messages";

let chooser;
let thread;
let composer;
let banner;
let partner = null;
let drawn = "";
const texts = new Map();
const drafts = new Map();

export function build(root) {
  banner = receiving("messages");
  chooser = make("div", { class: "people", role: "group", "aria-label": "Conversations" });
  thread = make("ol", { class: "thread", role: "log", "aria-label": "Messages" });
  composer = buildComposer();
  root.append(banner.element, chooser, thread, composer.element);
  onReceived(update);
  onSent(update);
  onStatus(update);
}

export function show() {
  drawn = "";
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

/** Loads the texts of messages that have arrived. */
function loadTexts() {
  for (const delivery of boxes.messages.deliveries) {
    if (texts.has(delivery.bundle)) continue;
    texts.set(delivery.bundle, { text: "loading …" });
    contentOf(delivery).then(
      ({ text, name, isWhole }) => texts.set(delivery.bundle, { text: name ? `(file ${name})\n${text}` : text, isWhole }),
      (error) => {
        texts.delete(delivery.bundle);
        tell(error.message, true);
      },
    ).then(render);
  }
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
  for (const entry of sent) if (entry.kind === "message") enter(partnerOf(entry.to), { key: entry.id, at: entry.at, text: entry.text, entry });
  for (const entry of received) {
    if (entry.kind === "message") enter(partnerOf(entry.from), { key: entry.id, at: entry.at, text: entry.text, from: entry.from, accepted: entry.accepted });
  }
  const kept = new Set(received.map((entry) => entry.id));
  for (const delivery of boxes.messages.deliveries) {
    if (kept.has(delivery.bundle)) continue;
    const known = texts.get(delivery.bundle);
    enter(partnerOf(delivery.source), { key: delivery.bundle, at: sentAt(delivery) ?? Date.now(), text: known?.text ?? "", isWhole: known?.isWhole, from: delivery.source, delivery });
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
  const messages = all.get(partner) ?? [];
  const shown = messages.slice(-SHOWN_MAX);
  const now = JSON.stringify([partner, nodes, shown.map((message) => [message.key, message.text, message.accepted, !!message.delivery, message.entry && fateOf(message.entry)]),
    nodes.map((node) => unread(all.get(node)))]);
  if (now === drawn) return;
  drawn = now;
  replace(chooser, nodes.map((node) => {
    const count = unread(all.get(node));
    return button(count ? `${shortNode(node)} (${count} new)` : shortNode(node), () => choose(node), { "aria-pressed": String(node === partner) });
  }), button("New …", newConversation));
  const isAtEnd = thread.scrollTop + thread.clientHeight >= thread.scrollHeight - 40;
  if (partner === null) {
    replace(thread, make("li", { class: "plain-item" }, empty("No messages yet.", "Choose \"New\" to write to a person at another node.")));
  } else if (shown.length === 0) {
    replace(thread, make("li", { class: "plain-item" }, empty(`No messages with ${shortNode(partner)} yet.`)));
  } else {
    replace(thread, shown.map(messageItem));
  }
  // Nobody can answer an anonymous message.
  composer.element.hidden = partner === null || nodeOf(partner) === null;
  if (isAtEnd) thread.scrollTop = thread.scrollHeight;
}

const unread = (messages) => (messages ?? []).filter((message) => message.delivery).length;

function messageItem(message) {
  const { entry, delivery } = message;
  const [sign, words] = entry ? fateOf(entry) : delivery ? ["●", "at the node, not accepted yet"] : ["✓", `accepted at ${moment(message.accepted)}`];
  const who = entry ? "You" : shortNode(partnerOf(message.from));
  const status = make("p", { class: "fate" }, `${who}, ${moment(message.at)} · `, make("span", { "aria-hidden": "true" }, `${sign} `), words);
  const cut = message.isWhole === false ? make("p", { class: "soft" }, "The message is longer than this page shows and keeps: save it before you accept it.") : null;
  const saves = cut ? button("Save as a file", () => save(named("/deliveries", delivery.id), "message.txt")) : null;
  const accepts = message.isWhole === undefined ? null :
    button("Accept", (event) => acceptMessage(message, event.target), { "aria-label": `Accept the message of ${who}` });
  return make("li", { class: entry ? "mine" : "theirs", data: { state: entry?.state ?? (delivery ? "arrived" : "accepted") } },
    make("p", { class: "text", dir: "auto" }, message.text), cut, status, make("div", { class: "buttons" }, saves, accepts));
}

async function acceptMessage({ delivery, text }, pressed) {
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
  composer.text.value = drafts.get(node) ?? "";
  replace(composer.trouble);
  composer.measure();
  drawn = "";
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
  const length = () => new TextEncoder().encode(text.value).length;
  const measure = () => {
    const count = length();
    submit.disabled = count === 0 || count > BYTES_MAX;
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
    submit.disabled = true;
    replace(trouble);
    const [node, words] = [partner, text.value];
    const to = endpointOf(node, "messages");
    try {
      const parameters = { to, priority: priority.value, lifetime_s: LIFETIME_S, report_delivery: "true" };
      const accepted = await send(parameters, new Blob([words]));
      addSent({ id: accepted.id, kind: "message", to, text: words, bytes: length(), wantsReceipt: true });
      drafts.delete(node);
      if (partner === node) text.value = "";
      thread.scrollTop = thread.scrollHeight;
      refresh();
    } catch (error) {
      replace(trouble, problem(error));
    }
    measure();
  });
  return { element, text, trouble, suggestions, measure };
}
