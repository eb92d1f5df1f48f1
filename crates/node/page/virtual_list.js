// A list of any length of which only the visible rows are in the document.

import { make } from "./dom.js";

/** Rows kept above and below the visible ones. */
const MARGIN = 6;
/** Maximum height of the list, pixels: beyond it, browsers place elements inexactly. */
const HEIGHT_MAX = 8_000_000;

export class VirtualList {
  #rows = new Map();
  #free = [];
  #length = 0;
  #frame = 0;
  #make;
  #fill;
  #visible;

  /**
   * `makeRow` makes an empty row, `fillRow(row, index)` shows an entry in it, and `visible(first, last)` hears which are in view.
   * The height of a row is that of the custom property --row of the style sheet.
   */
  constructor(label, makeRow, fillRow, visible = () => {}) {
    this.#make = makeRow;
    this.#fill = fillRow;
    this.#visible = visible;
    this.inner = make("div", { class: "rows", role: "list", "aria-label": label });
    this.element = make("div", { class: "list", tabindex: 0, role: "region", "aria-label": label }, this.inner);
    this.element.addEventListener("scroll", () => this.#later(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.#key(event));
    this.observer = new ResizeObserver(() => this.#later());
    this.observer.observe(this.element);
  }

  get length() {
    return this.#length;
  }

  /** Sets the number of entries, and shows again those in view. */
  update(length) {
    this.#length = length;
    this.#later();
  }

  scrollToTop() {
    this.element.scrollTop = 0;
  }

  #rowHeight() {
    return parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 64;
  }

  #later() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#show();
    });
  }

  #show() {
    const height = this.#rowHeight();
    const shown = Math.min(this.#length, Math.floor(HEIGHT_MAX / height));
    this.inner.style.height = `${shown * height}px`;
    const top = this.element.scrollTop;
    const first = Math.max(0, Math.floor(top / height) - MARGIN);
    const last = Math.min(shown - 1, Math.ceil((top + this.element.clientHeight) / height) + MARGIN);
    for (const [index, row] of this.#rows) {
      const isFocused = row.contains(document.activeElement) && index < shown;
      if ((index < first || index > last) && !isFocused) {
        this.#rows.delete(index);
        row.remove();
        this.#free.push(row);
      }
    }
    for (let index = first; index <= last; index += 1) this.#place(index, height);
    this.#free.length = Math.min(this.#free.length, 2 * MARGIN);
    if (last >= first) this.#visible(first, last);
  }

  #place(index, height) {
    let row = this.#rows.get(index);
    if (!row) {
      row = this.#free.pop() ?? this.#make();
      row.setAttribute("role", "listitem");
      row.setAttribute("aria-posinset", index + 1);
      row.style.transform = `translateY(${index * height}px)`;
      this.#rows.set(index, row);
      this.inner.append(row);
    } else if (row.style.transform !== `translateY(${index * height}px)`) {
      row.style.transform = `translateY(${index * height}px)`;
    }
    row.setAttribute("aria-setsize", this.#length);
    this.#fill(row, index);
  }

  /** Arrow keys, Page Up and Down, Home and End move the focus from row to row. */
  #key(event) {
    const current = [...this.#rows].find(([, row]) => row.contains(document.activeElement));
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.#rowHeight()) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (!current || step === undefined) return;
    event.preventDefault();
    const target = Math.min(this.#length - 1, Math.max(0, current[0] + step));
    const height = this.#rowHeight();
    const top = target * height;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    const bottom = top + height - this.element.clientHeight;
    if (bottom > this.element.scrollTop) this.element.scrollTop = bottom;
    this.#show();
    this.#rows.get(target)?.querySelector("button, a")?.focus({ preventScroll: true });
  }
}
