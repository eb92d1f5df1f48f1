// Lists that this browser keeps, whose entries each have a key of their own, so that several tabs can change them. Keys have the ID
// of the node: one address may lead to several nodes, one after the other.

export class KeptList {
  #prefix;
  #max;
  #changed;
  #entries = new Map();
  #sorted = null;

  /** A list of at most `max` entries; `changed` is called after each change, also by another tab. */
  constructor(prefix, max, changed) {
    this.#prefix = `${prefix} `;
    this.#max = max;
    this.#changed = changed;
    for (let index = 0; index < localStorage.length; index += 1) this.#read(localStorage.key(index));
    window.addEventListener("storage", (event) => {
      if (event.key === null) this.#entries.clear();
      else if (!this.#read(event.key)) return;
      this.#touch();
    });
  }

  /** Entries, the latest first. */
  get all() {
    this.#sorted ??= [...this.#entries.values()].sort((a, b) => b.at - a.at);
    return this.#sorted;
  }

  get(id) {
    return this.#entries.get(id) ?? null;
  }

  /** Adds or changes an entry, which has an `id` and the time `at`. Fails without changes if the browser has no room. */
  put(entry) {
    localStorage.setItem(this.#prefix + entry.id, JSON.stringify(entry));
    this.#entries.set(entry.id, entry);
    this.#sorted = null;
    if (this.#entries.size > this.#max) for (const old of this.all.slice(this.#max)) this.#drop(old.id);
    this.#touch();
  }

  /** Keeps an entry until the page is closed, where the browser has no room. */
  putAnyhow(entry) {
    try {
      this.put(entry);
    } catch {
      this.#entries.set(entry.id, entry);
      this.#touch();
    }
  }

  /** Removes all entries for which a condition holds. */
  remove(isRemoved) {
    for (const entry of this.all.filter(isRemoved)) this.#drop(entry.id);
    this.#touch();
  }

  #drop(id) {
    localStorage.removeItem(this.#prefix + id);
    this.#entries.delete(id);
    this.#sorted = null;
  }

  #touch() {
    this.#sorted = null;
    this.#changed();
  }

  /** Reads the entry of a key. Returns false if the key is none of this list. */
  #read(key) {
    if (!key?.startsWith(this.#prefix)) return false;
    try {
      const entry = JSON.parse(localStorage.getItem(key));
      if (entry) this.#entries.set(entry.id, entry);
      else this.#entries.delete(key.slice(this.#prefix.length));
    } catch {
      // An entry that is no document, which this page has not written.
    }
    return true;
  }
}
