// The hits as a file, and the request for them as a command.

import { byId, save } from "./element.js";
import { titleOf } from "./hits.js";

const COLUMNS = ["rank", "index", "score", "title", "uri", "page", "line", "heading", "text"];

/** Return a cell of a CSV file. Spreadsheets take a text with one of these beginnings for a formula. */
function cell(value) {
  const text = value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Return hits as CSV (RFC 4180): a row for each, with a column for each field of their metadata. */
function asCsv(hits) {
  const names = [...new Set(hits.flatMap(({ metadata }) => Object.keys(metadata)))];
  const rows = hits.map((hit, at) => [
    ...COLUMNS.map((name) => ({ rank: at + 1, title: titleOf(hit) })[name] ?? hit[name]),
    ...names.map((name) => hit.metadata[name]),
  ]);
  const header = [...COLUMNS, ...names.map((name) => (COLUMNS.includes(name) ? `metadata.${name}` : name))];
  return [header, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Return a command that asks the same, without what only the page needs. */
function asCurl(path, { fields, ...body }) {
  const quoted = `'${JSON.stringify(body, null, 1).replaceAll("'", "'\\''")}'`;
  return `curl -s ${new URL(path, document.baseURI).href} -H 'Content-Type: application/json' -d ${quoted}`;
}

/** @param {function(): {hits: Object[], path: string, body: Object}} shown returns what is shown now */
export function offerToSave(shown) {
  byId("save-csv").addEventListener("click", () => save("hits.csv", new Blob([asCsv(shown().hits)], { type: "text/csv" })));
  byId("save-json").addEventListener("click", () => save("hits.json", new Blob([JSON.stringify(shown().hits, null, 2)], { type: "application/json" })));
  byId("show-curl").addEventListener("click", () => {
    const { path, body } = shown();
    byId("curl").textContent = asCurl(path, body);
    byId("curl").hidden = false;
  });
}
