// A document in a dialog, at the passage that was found, with everything before and after it.

import { lastPart } from "./conditions.js";
import { button, byId, element, langOf, linkOrText } from "./element.js";
import { flatten, keyOf, placeOf, titleOf } from "./hits.js";
import { offsetsOf } from "./marks.js";
import { blocksOf, isMarkedUp, isProse } from "./markup.js";
import { drawOriginal } from "./original.js";
import { getDocument, Refused } from "./service.js";

const AROUND = 20_000; // characters drawn on each side; a book would take seconds
const LOADING_MS = 300; // a shorter wait needs no word
const BESIDE = matchMedia("(min-width: 75rem)"); // the list stays beside the document

const moreButton = (label, draw) => button(label, ({ currentTarget }) => { draw(); currentTarget.remove(); });

export class Reader {
  #request = null;
  #shown = "";
  #asked = []; // what is shown, to ask for it again
  #document = null;
  #hit = null;
  #marked = "";

  /** @param {function()} closed is called when the dialog was closed. */
  constructor(closed) {
    this.dialog = byId("reader");
    this.dialog.addEventListener("close", () => {
      if (this.dialog.open) return;
      this.#request?.abort();
      this.#shown = "";
      this.#document = null;
      document.body.classList.remove("reading");
      this.#showPlace("");
      closed();
    });
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.matches(":modal") && this.dialog.close());
    BESIDE.addEventListener("change", () => this.isOpen && this.#open()); // a dialog is closed before its event comes
    byId("reader-close").addEventListener("click", () => this.dialog.close());
    byId("reader-passage").addEventListener("click", () => this.#toPassage());
  }

  get isOpen() {
    return this.dialog.open;
  }

  close() {
    if (this.dialog.open) this.dialog.close();
  }

  /** Show a document at a passage ("START-END" in code points, or empty), with the words of its hit marked. */
  async show(index, uri, at, hit) {
    const key = JSON.stringify([index, uri, at]);
    if (key === this.#shown && this.dialog.open) return;
    this.#request?.abort();
    this.#request = new AbortController();
    const { signal } = this.#request;
    this.#shown = key;
    this.#asked = [index, uri, at];
    [this.#document, this.#hit] = [null, hit];
    byId("reader-title").textContent = hit ? titleOf(hit) : lastPart(uri);
    byId("reader-place").textContent = hit ? placeOf(hit) : "";
    byId("reader-passage").hidden = !at;
    byId("reader-original").hidden = true;
    const body = byId("reader-body");
    const waiting = setTimeout(() => body.replaceChildren(element("p", { className: "waiting" }, "Loading …")), LOADING_MS);
    if (!this.dialog.open) this.#open();
    this.#showPlace(uri);
    try {
      const document_ = await getDocument(index, uri, signal);
      clearTimeout(waiting);
      if (signal.aborted) return;
      this.#document = document_;
      byId("reader-title").textContent = byId("reader-title").title = titleOf(document_);
      byId("reader-place").textContent = placeOf({ ...document_, ...placeIn(document_, at), ...hit });
      this.mark(this.#hit);
    } catch (error) {
      clearTimeout(waiting);
      if (signal.aborted) return;
      this.#shown = "";
      const gone = error instanceof Refused && error.status === 404;
      body.replaceChildren(element("p", { className: "error", role: "alert" },
        gone ? "This document is no longer in the index. Ask again to see what is." : `The document cannot be shown: ${error.message}`));
    }
  }

  /** Ask for the document again that could not be shown. */
  again() {
    if (!this.#document && this.#asked.length) this.show(...this.#asked, null);
  }

  /** Mark what a hit says of the document that is shown; the hits may come after it. */
  mark(hit) {
    this.#hit = hit;
    if (this.isOpen) this.#showPlace(this.#asked[1]);
    const marked = JSON.stringify([this.#shown, hit && keyOf(hit), hit?.why]);
    if (!this.#document || (this.#marked === marked && byId("reader-body").querySelector(".text"))) return;
    this.#marked = marked;
    const [index, , at] = this.#asked;
    const body = byId("reader-body");
    this.#draw(body, this.#document, at, hit);
    const original = drawOriginal(index, this.#document, at, hit);
    if (original) {
      body.prepend(original);
      body.scrollTop = 0;
    }
  }

  /** Open the dialog beside the list where there is room, and over the page elsewhere. */
  #open() {
    const focused = document.activeElement;
    const isOver = this.dialog.matches(":modal");
    if (this.dialog.open && isOver !== BESIDE.matches) return;
    if (this.dialog.open) this.dialog.close(); // its event comes later, and finds the dialog open again
    if (BESIDE.matches) {
      this.dialog.show();
      focused?.focus(); // show() moves the focus into the dialog, but j and k walk along the list
    } else this.dialog.showModal();
    document.body.classList.toggle("reading", BESIDE.matches);
  }

  /** Show in the list which hit is open. */
  #showPlace(uri) {
    const [index] = this.#asked;
    for (const item of document.querySelectorAll("#hits > li")) item.classList.toggle("here", item.dataset.uri === uri && item.dataset.index === index);
  }

  #draw(body, document_, at, hit) {
    const { text } = document_;
    body.lang = langOf(document_.metadata);
    const convert = offsetsOf(text);
    const [start, end] = at ? at.split("-").map((offset) => convert(Number(offset))) : [0, 0];
    const words = (hit?.why?.words ?? []).map((word) => ({ start: convert(word.start), end: convert(word.end) }));
    const sentence = hit?.why?.sentence;
    const best = sentence ? { start: convert(sentence.start), end: convert(sentence.end) } : null;
    const from = Math.max(0, start - AROUND);
    const to = Math.min(text.length, Math.max(end, start) + AROUND);

    const className = `text${isProse(document_.format) ? "" : " source"}${isMarkedUp(document_.format) || document_.format === "pdf" ? " joined" : ""}`;
    const blocks = (first, last) => blocksOf(text.slice(first, last), document_.format, 0, last - first, [], null);
    const before = element("div", { className, dir: "auto" }, ...blocks(from, start));
    const rest = Math.max(start, end);
    const after = element("div", { className, dir: "auto" }, ...blocks(rest + (text.slice(rest, to).match(/^\s*\n/)?.[0].length ?? 0), to));
    const parts = [];
    if (from > 0) parts.push(moreButton("Show everything before", () => before.prepend(...blocks(0, from))));
    parts.push(before);
    if (at && end > start) {
      const passage = element("div", { className: `${className} found`, id: "found", dir: "auto", tabIndex: -1, aria: { label: "The passage that was found" }, role: "group" });
      const within = ({ start: first, end: last }) => ({ start: first - start, end: last - start });
      passage.append(...blocksOf(text.slice(start, end), document_.format, 0, end - start, words.map(within), best && within(best)));
      parts.push(passage);
    }
    parts.push(after);
    if (to < text.length) parts.push(moreButton("Show everything after", () => after.append(...blocks(to, text.length))));
    body.replaceChildren(facts(document_), ...parts);
    this.#toPassage();
  }

  #toPassage() {
    const passage = byId("found");
    if (passage) passage.scrollIntoView({ block: "center" });
    else byId("reader-body").scrollTop = 0;
  }
}

/** Return heading and page of the section of a document that a passage "START-END" begins in. */
function placeIn({ sections }, at) {
  const section = at ? sections.findLast(({ start }) => start <= Number.parseInt(at, 10)) : null;
  return { heading: section?.heading ?? "", page: section?.page ?? null };
}

/** Return what is known of a document, as a list of names and values. */
function facts(document_) {
  const { uri, path, format, modified, metadata } = document_;
  const own = [["uri", uri.startsWith("/") ? lastPart(uri) : uri], ["file", path && path !== uri ? lastPart(path) : null], ["format", format], ["changed", modified]];
  const rows = [...own, ...Object.entries(metadata).flatMap(([name, value]) => flatten(name, value))];
  const shown = rows.filter(([, value]) => value !== null && value !== "");
  return element("details", { className: "facts" },
    element("summary", {}, "About this document"),
    element("dl", {}, ...shown.map(([name, value]) => element("div", {},
      element("dt", { dir: "auto" }, name),
      element("dd", { dir: "auto" }, linkOrText(String(value)))))));
}
