// The first page of an index: what is in it, questions to try, and the last questions of this browser.

import { button, element } from "./element.js";
import { entryOf } from "./hits.js";
import { counted } from "./sentences.js";

const KEPT = 5;
const keyOf = (index) => `likewise questions ${index}`;

/** Return the last questions to an index, the newest first. */
function lastQuestions(index) {
  try {
    const kept = JSON.parse(localStorage.getItem(keyOf(index)) ?? "[]");
    return Array.isArray(kept) ? kept.filter((question) => typeof question === "string").slice(0, KEPT) : [];
  } catch {
    return []; // the browser keeps nothing for this page, or somebody has written something else there
  }
}

/** Keep a question that was asked, not only typed on the way to another. */
export function keepQuestion(index, question) {
  if (!question.trim()) return;
  const kept = [question.trim(), ...lastQuestions(index).filter((other) => other !== question.trim())];
  try {
    localStorage.setItem(keyOf(index), JSON.stringify(kept.slice(0, KEPT)));
  } catch {
    // The same: there are no last questions then.
  }
}

/** Draw what an index holds (`overview` is null before it was read). `actions`: `ask(question)`, `choose(index)`, `region(at)`, `href(uri)`, `open(uri)`. */
export function drawOverview(into, index, overview, actions) {
  const asked = lastQuestions(index.name);
  const choices = (label, texts, click) => texts.length > 0 && element("div", { className: "try" },
    element("h2", {}, label),
    element("ul", {}, ...texts.map((text, at) => element("li", {}, button(text, () => click(text, at), { dir: "auto" })))));
  const regions = overview?.regions ?? [];
  const parts = index.parts ?? [];
  into.replaceChildren(...[
    element("p", { className: "size" }, index.documents
      ? `${counted(index.documents, "document")} in ${counted(index.passages, "passage")}`
      : "There are no documents in this index yet."),
    index.documents > 0 && !index.model && !parts.length && element("p", {}, "This index has vectors of its own: the page searches it by words."),
    choices("Indexes", parts.map(({ name, documents }) => `${name} · ${counted(documents, "document")}`), (_, at) => actions.choose(parts[at].name)),
    choices("Your last questions", asked, actions.ask),
    choices("Try asking", (overview?.questions ?? []).filter((question) => !asked.includes(question)), actions.ask),
    regions.length > 0 && element("div", { className: "regions" },
      element("h2", {}, "What is in here"),
      element("ul", {}, ...regions.map(({ name, documents, central }, at) => element("li", {},
        element("h3", { dir: "auto" }, button(name, () => actions.region(at)), " ", element("span", { className: "count", dir: "ltr" }, documents.toLocaleString("en"), element("span", { className: "hidden-label" }, " documents"))),
        element("ul", {}, ...central.map((each) => entryOf(each, actions.href(each.uri), () => actions.open(each.uri)))))))),
  ].filter(Boolean));
}
