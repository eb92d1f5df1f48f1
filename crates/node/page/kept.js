// What this browser keeps. Keys have the ID of the node: one address may lead to several nodes, one after the other.

/** Reads a list; an empty one if there is none. */
export function readList(key) {
  try {
    const kept = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}
