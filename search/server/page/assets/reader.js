// A document in a dialog, at the passage that was found, with everything before and after it.

import { byId, element, linkOrText } from "./element.js";
import { flatten, placeOf } from "./hits.js";
import { appendMarked, offsetsOf } from "./marks.js";
import { drawOriginal } from "./original.js";
import { getDocument, Refused } from "./service.js";

const AROUND = 20_000; // characters drawn on each side; a book would take seconds

/** Formats that are read as text; of everything else, such as source code, the columns matter. */
const PROSE = new Set(["text", "markdown", "rst", "html", "pdf", "docx", "pptx", "epub", "eml", "odt", "odp", "rtf", "xml",
  "json", "jsonl", "csv", "tsv", "org", "asciidoc"]);

export class Reader {
  #request = null;
  #shown = "";

  /** @param {function()} closed is called when the dialog was closed. */
  constructor(closed) {
    this.dialog = byId("reader");
    this.dialog.addEventListener("close", () => {
      this.#request?.abort();
      this.#shown = "";
      closed();
    });
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    byId("reader-close").addEventListener("click", () => this.dialog.close());
    byId("reader-passage").addEventListener("click", () => this.#toPassage());
  }

  get isOpen() {
    return this.dialog.open;
  }

  close() {
    if (this.dialog.open) this.dialog.close();
  }

  /**
   * Show a document of an index.
   * @param {string} at "START-END" of the passage in code points; empty for none
   * @param {?Object} hit the hit it belongs to, whose words are marked
   */
  async show(index, uri, at, hit) {
    const key = JSON.stringify([index, uri, at]);
    if (key === this.#shown && this.dialog.open) return;
    this.#request?.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;
    this.#shown = key;
    byId("reader-title").textContent = hit?.title.trim() || uri;
    byId("reader-place").textContent = hit ? placeOf(hit) : "";
    byId("reader-passage").hidden = !at;
    byId("reader-original").hidden = true;
    const body = byId("reader-body");
    body.replaceChildren(element("p", { className: "waiting" }, "Loading …"));
    if (!this.dialog.open) this.dialog.showModal();
    try {
      const document_ = await getDocument(index, uri, signal);
      if (signal.aborted) return;
      byId("reader-title").textContent = document_.title.trim() || uri;
      this.#draw(body, document_, at, hit);
      const original = drawOriginal(index, document_, at, hit);
      if (original) {
        body.prepend(original);
        body.scrollTop = 0;
      }
    } catch (error) {
      if (signal.aborted) return;
      const gone = error instanceof Refused && error.status === 404;
      body.replaceChildren(element("p", { className: "error", role: "alert" },
        gone ? "This document is no longer in the index. Ask again to see what is." : `The document cannot be shown: ${error.message}`));
    }
  }

  #draw(body, document_, at, hit) {
    const { text } = document_;
    const convert = offsetsOf(text);
    const [start, end] = at ? at.split("-").map((offset) => convert(Number(offset))) : [0, 0];
    const words = (hit?.why?.words ?? []).map((word) => ({ start: convert(word.start), end: convert(word.end) }));
    const sentence = hit?.why?.sentence;
    const best = sentence ? { start: convert(sentence.start), end: convert(sentence.end) } : null;
    const from = Math.max(0, start - AROUND);
    const to = Math.min(text.length, Math.max(end, start) + AROUND);

    const isProse = !document_.format || PROSE.has(document_.format);
    const className = isProse ? "text" : "text source";
    const before = element("div", { className }, text.slice(from, start).trimEnd());
    const after = element("div", { className }, text.slice(Math.max(start, end), to).replace(/^\s*\n/, ""));
    const parts = [];
    if (from > 0) parts.push(this.#more("Show everything before", () => before.prepend(text.slice(0, from))));
    parts.push(before);
    if (at && end > start) {
      const passage = element("div", { className: `${className} found`, id: "found", tabIndex: -1, aria: { label: "The passage that was found" }, role: "group" });
      appendMarked(passage, text, start, end, words, best);
      parts.push(passage);
    }
    parts.push(after);
    if (to < text.length) parts.push(this.#more("Show everything after", () => after.append(text.slice(to))));
    body.replaceChildren(facts(document_), ...parts);
    this.#toPassage();
  }

  #more(label, draw) {
    const button = element("button", { type: "button", on: { click: () => { draw(); button.remove(); } } }, label);
    return button;
  }

  #toPassage() {
    const passage = byId("found");
    if (passage) passage.scrollIntoView({ block: "center" });
    else byId("reader-body").scrollTop = 0;
  }
}

/** Return what is known of a document, as a list of names and values. */
function facts(document_) {
  const { uri, path, format, modified, metadata } = document_;
  const own = [["uri", uri], ["path", path === uri ? null : path], ["format", format], ["modified", modified]];
  const rows = [...own, ...Object.entries(metadata).flatMap(([name, value]) => flatten(name, value))];
  const shown = rows.filter(([, value]) => value !== null && value !== "");
  return element("details", { className: "facts" },
    element("summary", {}, "About this document"),
    element("dl", {}, ...shown.map(([name, value]) => element("div", {},
      element("dt", {}, name),
      element("dd", {}, linkOrText(String(value)))))));
}
