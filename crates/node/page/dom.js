// Elements of the page. Text of other nodes reaches the document as text only: there is no way to make markup of it here.

/**
 * Makes an element. Properties: `class`, `on` (listeners by event), `data` (data attributes); anything else is an attribute, which is
 * left out where it is null or false.
 */
export function make(name, properties = {}, ...children) {
  return fill(document.createElement(name), properties, children);
}

/** Makes an element of a drawing. */
export function draw(name, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), properties, children);
}

function fill(element, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") element.setAttribute("class", value);
    else if (key === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (key === "data") Object.assign(element.dataset, value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

/** Adds children, which are elements or text; null is left out. */
export function add(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) parent.append(child);
  }
}

/** Sets the text of an element, where it differs: unchanged text is not announced or laid out again. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Replaces the children of an element. */
export function replace(parent, ...children) {
  parent.replaceChildren();
  add(parent, children);
}

/** A button. */
export function button(text, pressed, properties = {}) {
  return make("button", { type: "button", ...properties, on: { click: pressed } }, text);
}

/** A field with its label and, perhaps, a line of explanation. */
export function field(label, input, note = null) {
  const id = input.id || `field-${++fields}`;
  input.id = id;
  const words = note ? make("small", { id: `${id}-note` }, note) : null;
  if (words) input.setAttribute("aria-describedby", words.id);
  return make("div", { class: "field" }, make("label", { for: id }, label), input, words);
}
let fields = 0;

/** A choice of values, each with its words. */
export function choice(options, selected, properties = {}) {
  const all = options.map(([value, words]) => make("option", { value, selected: value === selected }, words));
  return make("select", properties, all);
}

/** A list of terms and their descriptions; entries without a description are left out. */
export function facts(entries) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return make("dl", { class: "facts" }, shown.map(([term, value]) => [make("dt", {}, term), make("dd", {}, value)]));
}

/** Text for an empty view, with a hint. */
export function empty(text, hint = null) {
  return make("div", { class: "empty" }, make("p", {}, text), hint ? make("p", { class: "hint" }, hint) : null);
}

/** Description of an error, with its hint. */
export function problem(error) {
  const hint = error.hint ? make("p", { class: "hint" }, `Hint: ${error.hint}`) : null;
  return make("div", { class: "problem", role: "alert" }, make("p", {}, sentence(error.message || String(error))), hint);
}

/** A text as a sentence. */
export function sentence(text) {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
