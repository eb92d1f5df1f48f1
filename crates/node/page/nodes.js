// Nodes that this node knows of, and what a transfer to one of them takes.

import { make, replace } from "./dom.js";
import { bitRate, duration, nodeOf } from "./format.js";
import { received } from "./received.js";
import { sent } from "./sent.js";
import { linkRates, status } from "./state.js";

/** IDs of the nodes that are known, in order. */
export function knownNodes() {
  const nodes = new Set();
  for (const link of status?.links ?? []) if (link.peer) nodes.add(link.peer);
  for (const route of status?.learned_routes ?? []) nodes.add(route.node);
  for (const entry of sent()) nodes.add(nodeOf(entry.to));
  for (const entry of received()) nodes.add(nodeOf(entry.from));
  nodes.delete(null);
  nodes.delete(status?.node);
  return [...nodes].sort();
}

/** Fills a list of suggestions. */
export function suggest(list, endpoints) {
  const now = endpoints.join("\n");
  if (list.dataset.shown === now) return;
  list.dataset.shown = now;
  replace(list, endpoints.map((endpoint) => make("option", { value: endpoint })));
}

/** The link that a bundle to a node probably takes: that to the node, to its next hop, or the only one; null if that is not known. */
function linkTo(node) {
  const links = (status?.links ?? []).filter((link) => !link.calls || link.up);
  const to = (peer) => links.find((link) => link.peer === peer && link.up) ?? links.find((link) => link.peer === peer || link.name === peer);
  const next = status?.learned_routes?.find((route) => route.node === node)?.next;
  return to(node) ?? (next && to(next)) ?? (links.length === 1 ? links[0] : null);
}

/** Estimate of the time that bytes take on the way to the next hop, as a part of a sentence; null if no rate is known. */
export function airTime(count, node) {
  const link = node ? linkTo(node) : null;
  if (!link) return null;
  const now = status.dtn_ms;
  const contact = link.contacts?.find((contact) => contact.end_dtn_ms > now);
  const nominal = contact?.rate_bps || link.rate_bps;
  const measured = (linkRates(link.name).sent ?? 0) * 8;
  const bitsPerSecond = nominal || measured;
  if (!bitsPerSecond) return null;
  const time = duration((count * 8) / bitsPerSecond);
  return `at least ${time} over link ${link.name} at ${bitRate(bitsPerSecond)}, without pauses and repetitions`;
}
