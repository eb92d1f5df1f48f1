// Dialogs. Each is modal, closes with Escape, and gives the focus back to what had it.

import { add, button, make, problem, replace, sentence } from "./dom.js";

let dialogs = 0;

/** Opens a dialog with a heading, content and buttons. Returns the element; `close()` ends it. */
export function open(heading, content, buttons = []) {
  const title = make("h2", { id: `dialog-heading-${++dialogs}` }, heading);
  const dialog = make("dialog", { "aria-labelledby": title.id });
  add(dialog, [title, make("div", { class: "dialog-content" }, content), make("div", { class: "buttons" }, buttons)]);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * Asks before something is done that cannot be undone, does it, and shows why it failed if it did. Resolves with true once it is done,
 * with false if the user has declined.
 */
export function confirm(heading, text, verb, action) {
  return new Promise((resolve) => {
    const trouble = make("div");
    const yes = button(verb, async () => {
      yes.disabled = no.disabled = true;
      replace(trouble);
      try {
        await action();
      } catch (error) {
        yes.disabled = no.disabled = false;
        if (dialog.open) replace(trouble, problem(error));
        else tell(error.message, true);
        return;
      }
      resolve(true);
      dialog.close();
    }, { class: "danger" });
    const no = button("Keep as it is", () => dialog.close(), { autofocus: true });
    const dialog = open(heading, [make("p", {}, text), trouble], [no, yes]);
    // While it is being done, its end is waited for.
    dialog.addEventListener("cancel", (event) => yes.disabled && event.preventDefault());
    dialog.addEventListener("close", () => yes.disabled || resolve(false));
  });
}

/** Shows a line of news for some seconds, and tells it to screen readers. */
export function tell(text, isAlert = false) {
  const line = make("p", {}, sentence(text));
  const place = document.getElementById(isAlert ? "alerts" : "news");
  place.append(line);
  while (place.children.length > 2) place.firstChild.remove();
  setTimeout(() => line.remove(), isAlert ? 15_000 : 5000);
}
