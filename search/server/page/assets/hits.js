// The list of hits: where each is from, its passage with what fits the question marked, and why it is there.

import { element, linkOrText } from "./element.js";
import { appendMarked, offsetsOf, windowOf } from "./marks.js";
import { decimal, nearness, nearnessInFull } from "./sentences.js";

const SHOWN_VALUES = 6;
const LONG_VALUE = 48;

/** Return where a hit is from: the end of its path with the line, its page, and its heading. */
export function placeOf(hit) {
  const source = hit.path ? hit.path.split("/").slice(-2).join("/") : hit.uri;
  return [
    hit.line ? `${source}:${hit.line}` : source,
    hit.page ? `page ${hit.page}` : "",
    hit.heading,
  ].filter(Boolean).join(" · ");
}

export const keyOf = (hit) => `${hit.uri}\n${hit.start}`;

/**
 * Draw the hits of an answer into a list.
 * @param {HTMLElement} list
 * @param {Object[]} hits
 * @param {Object} actions `href(hit)`, `open(hit)`, `copyLink(hit)`, `copyText(hit)`, `pick(field, value)`
 */
export function drawHits(list, hits, actions) {
  const opened = new Set([...list.children].filter((item) => item.querySelector(".why:not([hidden])")).map((item) => item.dataset.key));
  const focused = document.activeElement?.closest?.("#hits > li")?.dataset.key;
  const items = hits.map((hit, rank) => drawHit(hit, rank, actions, opened.has(keyOf(hit))));
  list.replaceChildren(...items);
  if (focused) items.find((item) => item.dataset.key === focused)?.querySelector("a.title").focus();
}

/** Mark the best sentence of hits that are drawn, without touching anything else of them. */
export function addSentences(list, hits) {
  const items = new Map([...list.children].map((item) => [item.dataset.key, item]));
  for (const hit of hits) {
    const item = items.get(keyOf(hit));
    if (!item || !hit.why?.sentence) continue;
    drawPassage(item.querySelector(".passage"), hit);
    item.querySelector(".why").replaceChildren(...reasons(hit));
  }
}

function drawHit(hit, rank, actions, opened) {
  const why = element("div", { className: "why", id: `why-${rank}`, hidden: !opened }, ...reasons(hit));
  const toggle = element("button", {
    type: "button",
    aria: { expanded: String(opened), controls: why.id },
    on: {
      click: () => {
        why.hidden = !why.hidden;
        toggle.setAttribute("aria-expanded", String(!why.hidden));
      },
    },
  }, "Why this hit");
  const near = nearness(hit.percentile);
  return element("li", { dataset: { key: keyOf(hit), uri: hit.uri } },
    element("article", { className: "hit" },
      element("h2", {}, element("a", {
        className: "title",
        href: actions.href(hit),
        on: { click: (event) => plainClick(event) && (event.preventDefault(), actions.open(hit)) },
      }, hit.title.trim() || hit.uri)),
      element("p", { className: "place", title: hit.path ?? hit.uri }, placeOf(hit)),
      near && element("p", { className: "near", title: nearnessInFull(hit.percentile) }, near),
      drawPassage(element("p", { className: "passage" }), hit),
      drawMetadata(hit.metadata, actions.pick),
      element("div", { className: "actions" },
        toggle,
        element("button", { type: "button", on: { click: () => actions.copyLink(hit) } }, "Copy link"),
        element("button", { type: "button", on: { click: () => actions.copyText(hit) } }, "Copy text"),
        element("span", { className: "judge", role: "group", aria: { label: "Your judgment" } })),
      why));
}

/** Return whether a click means this page, and not a new tab. */
const plainClick = (event) => event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;

/** Draw the part of a passage that fits the question best. */
function drawPassage(into, hit) {
  const convert = offsetsOf(hit.text);
  const local = (part) => ({ start: convert(part.start - hit.start), end: convert(part.end - hit.start) });
  const words = (hit.why?.words ?? []).map(local);
  const sentence = hit.why?.sentence ? local(hit.why.sentence) : null;
  const [start, end] = windowOf(hit.text, words, sentence);
  into.replaceChildren();
  if (start > 0) into.append("… ");
  appendMarked(into, hit.text, start, end, words, sentence, true);
  if (end < hit.text.trimEnd().length) into.append(" …");
  return into;
}

/** Return the metadata of a hit as keys and values. A click on a value adds it to the filters. */
function drawMetadata(metadata, pick) {
  const values = Object.entries(metadata).flatMap(([name, value]) => flatten(name, value));
  if (!values.length) return null;
  // Short values first: they are the ones to filter by. Everything is in the document's own view.
  const isLong = ([, value]) => String(value).length > LONG_VALUE;
  const shown = [...values.filter((pair) => !isLong(pair)), ...values.filter(isLong)].slice(0, SHOWN_VALUES);
  return element("ul", { className: "values", aria: { label: "Fields" } }, ...shown.map(([name, value]) => {
    const text = String(value);
    const link = typeof value === "string" ? linkOrText(text) : null;
    if (link instanceof HTMLElement) return element("li", {}, element("span", { className: "name" }, name), " ", link);
    if (text.length > LONG_VALUE) return element("li", { title: text }, element("span", { className: "name" }, name), ` ${text.slice(0, LONG_VALUE)}…`);
    return element("li", {}, element("button", {
      type: "button",
      title: `Only documents with ${name} ${text}`,
      on: { click: () => pick(name, value) },
    }, element("span", { className: "name" }, name), ` ${text}`));
  }));
}

const COLUMNS = ["uri", "title", "path", "format", "modified", "metadata"];

/** Return the values below a path as filters name them: members by dotted paths, the elements of a list each. */
export function flatten(path, value) {
  const name = COLUMNS.includes(path.split(".", 1)[0]) ? `metadata.${path}` : path;
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value.flatMap((part) => flatten(path, part));
  if (typeof value === "object") return Object.entries(value).flatMap(([key, part]) => flatten(`${path}.${key}`, part));
  return [[name, value]];
}

function reasons(hit) {
  const why = hit.why ?? {};
  const parts = [element("p", {}, nearnessInFull(hit.percentile))];
  const { contributions = {}, weights = {} } = why;
  const most = Math.max(...Object.values(contributions).map(Math.abs), 1e-9);
  const rows = [
    ["Meaning", contributions.cosine, weights.cosine, why.cosine === null || why.cosine === undefined ? "" : `cosine ${why.cosine.toFixed(3)}`],
    ["Words", contributions.words, weights.words, why.bm25 ? `BM25 ${decimal(why.bm25)}` : "none of them"],
  ].filter(([, contribution]) => contribution !== undefined);
  if (rows.length) {
    parts.push(element("table", {},
      element("caption", {}, `Score ${decimal(hit.score)} is the sum of`),
      element("thead", {}, element("tr", {}, ...["part", "adds", "weight", "measured"].map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows.map(([name, contribution, weight, measured]) => {
        const bar = element("span", { className: "amount" });
        bar.style.width = `${Math.max(1, (100 * Math.max(0, contribution)) / most)}%`;
        return element("tr", {},
          element("th", { scope: "row" }, name),
          element("td", {}, element("span", { className: "scale", aria: { hidden: "true" } }, bar), decimal(contribution)),
          element("td", {}, `${Math.round(100 * (weight ?? 0))} %`),
          element("td", {}, measured));
      }))));
  }
  if (why.words?.length) {
    const words = [...new Set(why.words.map((word) => word.text.toLowerCase()))];
    parts.push(element("p", {}, "Words of your question in it: ", ...words.flatMap((word, at) => [at ? ", " : "", element("mark", {}, word)])));
  }
  if (why.sentence) {
    parts.push(element("p", {}, `Its nearest sentence (cosine ${why.sentence.cosine.toFixed(3)}): `, element("q", {}, why.sentence.text)));
  }
  return parts;
}
