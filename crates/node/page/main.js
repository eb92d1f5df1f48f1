// The page: header, views and access. Each view is a module with `title`, `build(root)`, `show()` and `hide()`.

import { forgetToken, hasToken, keepToken, onTokenWanted } from "./api.js";
import { tell } from "./dialog.js";
import { field, make, problem, replace, say } from "./dom.js";
import { follow, onEvents } from "./events.js";
import { plural } from "./format.js";
import * as files from "./files.js";
import * as links from "./links.js";
import * as log from "./log.js";
import * as messages from "./messages.js";
import * as queue from "./queue.js";
import * as stations from "./stations.js";
import { onReceived, watchReceived } from "./received.js";
import { nameOf, watchSent } from "./sent.js";
import { degradations, onStatus, watch } from "./state.js";

const VIEWS = { queue, links, files, messages, stations, log };

const content = document.getElementById("content");
const tabs = document.getElementById("tabs");
const state = document.getElementById("state");
const sections = new Map();
let shown = null;

function start() {
  replace(content);
  for (const [name, view] of Object.entries(VIEWS)) {
    const heading = make("h2", { tabindex: -1 }, view.title);
    const section = make("section", { id: `view-${name}`, hidden: true }, heading);
    const badge = make("span", { class: "badge", hidden: true });
    const tab = make("a", { href: `#${name}` }, view.title, badge);
    sections.set(name, { view, section, heading, tab, badge });
    content.append(section);
    tabs.append(tab);
    view.build(section);
  }
  // A file that is dropped beside its place would replace the page.
  for (const event of ["dragover", "drop"]) window.addEventListener(event, (dropped) => dropped.preventDefault());
  window.addEventListener("hashchange", () => showView(true));
  onStatus(showState);
  onTokenWanted(askForToken);
  onEvents(announce);
  onReceived(showBadges);
  showView(false);
  watch();
}

function showView(takesFocus) {
  const asked = location.hash.slice(1);
  if (asked === "content") return;
  const name = sections.has(asked) ? asked : sections.keys().next().value;
  if (shown === name) return;
  if (shown) sections.get(shown).view.hide();
  for (const [other, { section, tab }] of sections) {
    section.hidden = other !== name;
    if (other === name) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
    if (other === name) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  shown = name;
  const { view, heading } = sections.get(name);
  document.title = titleOf();
  view.show();
  if (takesFocus) heading.focus();
}

/** Shows how many deliveries wait for the user, and announces when there are more. */
function showBadges() {
  for (const [name, { view, badge }] of sections) {
    const count = view.badge?.() ?? 0;
    const before = Number(badge.dataset.count ?? count);
    if (count > before) tell(`${plural(count - before, name === "messages" ? "message" : "file")} arrived`);
    if (badge.dataset.count === String(count)) continue;
    badge.dataset.count = count;
    badge.hidden = count === 0;
    replace(badge, String(count), make("span", { class: "unseen" }, " new"));
  }
}

let node = null;

function titleOf() {
  const view = shown ? `${sections.get(shown).view.title} – ` : "";
  return `${view}${node ?? "Longwire node"}`;
}

function showState(status, trouble) {
  if (trouble) {
    if (trouble.status !== 401) showPill("bad", "✕", "Not reachable", [trouble.message, trouble.hint]);
    return;
  }
  if (node !== status.node) {
    if (node !== null) location.reload();
    node = status.node;
    say(document.getElementById("node"), node);
    document.title = titleOf();
    watchSent(node);
    watchReceived(node);
    follow();
  }
  openedAt = Math.min(openedAt ?? status.uptime_s, status.uptime_s);
  const reasons = degradations(status);
  if (!status.ready) showPill("warn", "…", "Starting", reasons);
  else if (reasons.length > 0) showPill("warn", "▲", `Degraded: ${reasons.length === 1 ? "1 reason" : `${reasons.length} reasons`}`, reasons);
  else showPill("good", "●", "Running", []);
}

let pill = "";

function showPill(kind, sign, words, reasons) {
  const now = JSON.stringify([kind, words, reasons]);
  if (now === pill) return;
  const wasOpen = state.querySelector("details")?.open ?? false;
  pill = now;
  const label = [make("span", { "aria-hidden": "true" }, sign), ` ${words}`];
  if (reasons.length === 0) {
    replace(state, make("span", { class: `pill ${kind}` }, label));
    return;
  }
  const list = make("ul", {}, reasons.filter(Boolean).map((reason) => make("li", {}, reason)));
  replace(state, make("details", { open: wasOpen }, make("summary", { class: `pill ${kind}` }, label), list));
}

/** Uptime of the node when the page was opened, seconds; null before the first status. */
let openedAt = null;

/** Tells news that matter in every view. Events from before the page was opened are no news. */
function announce(batch) {
  if (openedAt === null) return;
  const kinds = ["link_up", "link_down", "store_full", "tnc_down", "report"];
  const fresh = batch.filter((event) => kinds.includes(event.event) && event.uptime_s >= openedAt);
  for (const event of fresh.slice(-4)) {
    if (event.event === "link_up") tell(`Link ${event.link} is up`);
    if (event.event === "link_down") tell(`Link ${event.link} is down: ${event.why}`);
    if (event.event === "store_full") tell("The store is full; new bundles are refused", true);
    if (event.event === "tnc_down") tell(`TNC ${event.tnc} was lost: ${event.why}`, true);
    if (event.event === "report" && event.status === "delivered" && event.believed !== false) tell(`Delivered: ${nameOf(event.id) ?? event.id}`);
  }
}

let isAsking = false;

function askForToken() {
  if (isAsking) return;
  isAsking = true;
  const wasWrong = hasToken();
  forgetToken();
  const token = make("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  const trouble = make("div");
  const form = make("form", { class: "token" },
    make("h2", { id: "dialog-heading" }, "Token"),
    make("p", {}, wasWrong ? "The node has refused this token." : "This node answers only clients with its token."),
    field("Token of the node", token, "The value of http.token, or the content of http.token-file, in the configuration of the node. " +
      "It is kept until this tab is closed, and sent to this node only, in plain text."),
    trouble, make("div", { class: "buttons" }, make("button", { type: "submit" }, "Connect")));
  const dialog = make("dialog", { "aria-labelledby": "dialog-heading" }, form);
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  // Some browsers close it all the same.
  dialog.addEventListener("close", () => dialog.showModal());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // Anything else cannot be sent in a header.
    if (!/^[\x21-\x7e]+$/.test(token.value.trim())) {
      replace(trouble, problem({ message: "a token has only letters, digits and signs of ASCII", hint: "copy it again, without dashes or quotes that a program has changed" }));
      return;
    }
    keepToken(token.value.trim());
    location.reload();
  });
  document.body.append(dialog);
  dialog.showModal();
}

start();
