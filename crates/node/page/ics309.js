// Communications log in the form of ICS 309 (FEMA, "Communications Log"): time, from, to and subject of each message and file, with
// the incident, the operational period and the operator; as CSV, as text, and printed.

import { saveText } from "./api.js";
import { open } from "./dialog.js";
import { button, field, make, replace } from "./dom.js";
import { bytes, clock, date, moment } from "./format.js";
import { contentKnown } from "./messages.js";
import { arrivedAt, boxes, received, sentAt } from "./received.js";
import { sent } from "./sent.js";
import { status } from "./state.js";

const KEY = "longwire.ics309";
/** Maximum length of the subject, characters: a line of the printed form. */
const SUBJECT_MAX = 90;

/** Asks for what the form needs, and exports it. */
export function exportLog() {
  const kept = readKept();
  const today = date(Date.now());
  const input = (name, value, properties = {}) => make("input", { id: `ics-${name}`, value, autocomplete: "off", ...properties });
  const fields = {
    incident: input("incident", kept.incident ?? ""),
    from: input("from", `${today}T00:00`, { type: "datetime-local", required: true }),
    to: input("to", `${today}T23:59`, { type: "datetime-local", required: true }),
    operator: input("operator", kept.operator ?? ""),
    station: input("station", kept.station ?? status?.node ?? ""),
    net: input("net", kept.net ?? ""),
  };
  const found = make("p", { class: "soft", role: "status" });
  const form = make("form", { class: "form" },
    field("Incident name", fields.incident),
    make("div", { class: "two" }, field("Operational period from", fields.from), field("to", fields.to)),
    make("div", { class: "two" }, field("Operator (name, callsign)", fields.operator), field("Station ID", fields.station)),
    field("Net or position", fields.net),
    found,
    make("p", { class: "soft" }, "It lists messages and files that were sent, accepted or have arrived with this browser."));
  const read = () => {
    const value = Object.fromEntries(Object.entries(fields).map(([name, input]) => [name, input.value.trim()]));
    keep({ incident: value.incident, operator: value.operator, station: value.station, net: value.net });
    const [from, to] = [new Date(value.from).getTime(), new Date(value.to).getTime() + 59_999];
    return { ...value, entries: all.filter((entry) => entry.at >= from && entry.at <= to) };
  };
  const show = () => replace(found, `${read().entries.length} entries in this period.`);
  const all = entries();
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  const name = (log) => `ics309-${log.from.slice(0, 10)}`;
  const dialog = open("Communications log (ICS 309)", form, [
    button("Close", () => dialog.close()),
    button("CSV", () => {
      const log = read();
      saveText(csv(log), "text/csv", `${name(log)}.csv`);
    }),
    button("Text", () => {
      const log = read();
      saveText(text(log), "text/plain", `${name(log)}.txt`);
    }),
    button("Print", () => print(read()), { class: "main" }),
  ]);
  show();
}

function keep(value) {
  try {
    localStorage.setItem(KEY, JSON.stringify(value));
  } catch {
    // Without room they are asked for again.
  }
}

function readKept() {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}") ?? {};
  } catch {
    return {};
  }
}

/** All messages and files that this browser knows of, in order of their sending here and their arrival here. */
function entries() {
  const station = status?.node ?? "";
  const subject = (entry) => entry.kind === "message" ? entry.text ?? "(text not loaded)" : `File ${entry.name ?? "(no name)"}, ${bytes(entry.bytes)}`;
  const fate = { deleted: "deleted", forwarded: "no receipt", stored: "waiting", reported: "delivery reported by another node", gone: "no receipt" };
  const all = sent().map((entry) => ({
    at: entry.at, from: station, to: entry.to, subject: subject(entry), note: entry.state === "delivered" ? `delivered ${moment(entry.ended)}` : fate[entry.state],
  }));
  const sentWhen = (created) => (created ? `sent ${moment(created)}, ` : "");
  for (const entry of received()) {
    const note = entry.accepted === null ? "acceptance not confirmed" : `accepted ${moment(entry.accepted)}`;
    all.push({ at: entry.at, from: entry.from, to: station, subject: subject(entry), note: `${sentWhen(entry.created)}${note}` });
  }
  const kept = new Set(received().map((entry) => entry.id));
  for (const [kind, box] of [["message", boxes.messages], ["file", boxes.files]]) {
    for (const delivery of box.deliveries.filter((delivery) => !kept.has(delivery.bundle))) {
      const known = contentKnown(delivery);
      const entry = { kind, text: known?.isText ? known.text : null, name: known?.name, bytes: delivery.payload_bytes };
      all.push({ at: arrivedAt(delivery), from: delivery.source, to: delivery.endpoint, subject: subject(entry), note: `${sentWhen(sentAt(delivery))}not accepted` });
    }
  }
  return all.sort((a, b) => a.at - b.at);
}

/** A subject in one line. */
function oneLine(subject) {
  // Control characters, and those that change the direction of a text.
  const plain = subject.replace(/\s+/g, " ").replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, "_").trim();
  return plain.length > SUBJECT_MAX ? `${plain.slice(0, SUBJECT_MAX - 1)}…` : plain;
}

const HEAD = ["Date", "Time", "From", "To", "Subject", "Remarks"];

function rows(log) {
  return log.entries.map((entry) => [date(entry.at), clock(entry.at), entry.from, entry.to, oneLine(entry.subject), entry.note]);
}

function headLines(log) {
  return [
    ["Incident name", log.incident],
    ["Operational period", `${log.from.replace("T", " ")} to ${log.to.replace("T", " ")} (local time)`],
    ["Operator", log.operator],
    ["Station ID", log.station],
    ["Net or position", log.net],
  ];
}

/** The log as CSV (RFC 4180). A cell that a spreadsheet would take for a formula begins with an apostrophe. */
function csv(log) {
  const cell = (value) => {
    const plain = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  const lines = [["ICS 309 Communications log"], ...headLines(log), [], HEAD, ...rows(log), [], ["Prepared", `${date(Date.now())} ${clock(Date.now())}`]];
  return lines.map((line) => line.map((value) => cell(String(value ?? ""))).join(",")).join("\r\n") + "\r\n";
}

function text(log) {
  const table = [HEAD, ...rows(log)];
  const widths = HEAD.map((_, column) => Math.max(...table.map((row) => row[column].length)));
  const line = (row) => row.map((value, column) => value.padEnd(widths[column])).join("  ").trimEnd();
  const head = headLines(log).map(([name, value]) => `${name}: ${value || "-"}`);
  return ["COMMUNICATIONS LOG (ICS 309)", "", ...head, "", ...table.map(line), "", `Prepared ${date(Date.now())} ${clock(Date.now())}`, ""].join("\n");
}

/** Prints the log: the page shows nothing else meanwhile. */
function print(log) {
  const cells = (name, row) => make("tr", {}, row.map((value) => make(name, {}, value)));
  const page = make("article", { class: "print-only" },
    make("h1", {}, "Communications log (ICS 309)"),
    make("table", {}, make("tbody", {}, headLines(log).map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value || " "))))),
    make("table", {}, make("thead", {}, cells("th", HEAD)), make("tbody", {}, rows(log).map((row) => cells("td", row)))),
    make("p", {}, `Prepared by ${log.operator || "________________"}, ${date(Date.now())} ${clock(Date.now())}. Signature: ________________`));
  document.body.append(page);
  window.addEventListener("afterprint", () => page.remove(), { once: true });
  window.print();
}
