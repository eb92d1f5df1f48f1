// The lines that say where messages or files arrive, and what becomes of them.

import { button, make, problem, replace } from "./dom.js";
import { beginReceiving, boxes, endReceiving, receives } from "./received.js";

const STORED = {
  files: "A file stays at the node until you accept it, also if you save or show it and if this page is closed. Accepting deletes it there.",
  messages: "A message stays at the node until you accept it. Accepting keeps it in this browser, on this device only, and deletes it at the node.",
};
const CLOSED = "If the page is closed, nothing is lost: what arrives waits at the node, and after five minutes other programs may receive it.";

/** A banner about receiving `files` or `messages`, with `element` and `update()`. */
export function receiving(service) {
  const element = make("div");
  let shown = "";
  const update = () => {
    const { endpoint, isRegistered, trouble } = boxes[service];
    const now = JSON.stringify([endpoint, isRegistered, trouble?.message, receives()]);
    if (now === shown || endpoint === null) return;
    shown = now;
    if (isRegistered) {
      replace(element, make("details", { class: "note" },
        make("summary", {}, `Receiving at ${endpoint}`),
        make("p", {}, STORED[service]), make("p", {}, CLOSED),
        make("div", { class: "buttons" }, button("Stop receiving", endReceiving))));
    } else if (trouble) {
      const hint = "a receive folder or `longwire recv` may use this endpoint; what arrives is there";
      replace(element, problem({ message: trouble.message, hint: trouble.status === 400 ? hint : trouble.hint }));
    } else {
      replace(element, make("div", { class: "note" },
        make("p", {}, `This page does not receive at ${endpoint} yet. What arrives waits at the node until you or another program do. ${STORED[service]}`),
        make("div", { class: "buttons" }, button("Receive files and messages here", beginReceiving, { class: "main" }))));
    }
  };
  return { element, update };
}
