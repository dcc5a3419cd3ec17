// The list of hits: what each is and where it is from, its passage with what fits the question marked, and why.

import { lastPart } from "./conditions.js";
import { button, element, langOf, linkOrText, linkTo } from "./element.js";
import { isMeasure, nameOf } from "./groups.js";
import { blocksOf, markOf } from "./markup.js";
import { offsetsOf, windowOf } from "./marks.js";
import { counted, decimal, shownValue } from "./sentences.js";

const SHOWN_VALUES = 6;
const LONG_VALUE = 48;

export const titleOf = (hit) => hit.title.trim() || lastPart(hit.uri);
const fileOf = (hit) => hit.path ?? (hit.uri.startsWith("/") ? hit.uri : null);

/** Return the folder, with "/" at its end, that holds the files of all hits of an index; empty if it is that of the disk. */
function commonFolder(hits, index) {
  const files = hits.filter((hit) => hit.index === index).map(fileOf).filter(Boolean).sort();
  const [first, last] = [files[0], files.at(-1)];
  if (first === last) return "";
  let same = 0;
  while (same < first.length && first[same] === last[same]) same += 1;
  return first.slice(0, first.lastIndexOf("/", same - 1) + 1).replace(/^\/$/, "");
}

/** Return where a hit is from: file, line, page, heading; never the folders of the server, nor what all `hits` have in common. */
export function placeOf(hit, hits = []) {
  const file = fileOf(hit);
  const folder = commonFolder(hits, hit.index);
  const oneFile = hits.length > 1 && file && hits.every((other) => fileOf(other) === file);
  const name = file && folder && file.startsWith(folder) ? file.slice(folder.length) : file?.split("/").slice(-2).join("/") ?? hit.uri;
  const source = oneFile ? "" : name;
  return [
    hit.line && !oneFile ? `${source}:${hit.line}` : source || (hit.line ? `line ${hit.line}` : ""),
    hit.page ? `${["pptx", "odp"].includes(hit.format) ? "slide" : "page"} ${hit.page}` : "",
    hit.heading?.replace(`${titleOf(hit)} > `, ""),
    hit.rows ? counted(hit.rows, ["csv", "tsv"].includes(hit.format) ? "row" : "document") : "",
    hit.gone ? "file is gone" : "",
  ].filter((part) => part && !titleOf(hit).startsWith(part)).join(" · ");
}

export const keyOf = (hit) => `${hit.index}\n${hit.uri}\n${hit.start}`;

/** Draw hits. `actions`: `href(hit)`, `open(hit)`, `like(hit)`, `copyLink(hit)`, `pick(field, value)`, `order` of fields, `isAnswered`, `ofAll` indexes. */
export function drawHits(list, hits, actions) {
  const opened = new Set([...list.children].filter((item) => item.querySelector(".why:not([hidden])")).map((item) => item.dataset.key));
  const focused = document.activeElement?.closest?.("#hits > li")?.dataset.key;
  const metadata = valuesOf(hits, actions.order);
  const items = hits.map((hit, rank) => drawHit(hit, rank, hits, metadata[rank], actions, opened.has(keyOf(hit))));
  list.replaceChildren(...items);
  if (focused) items.find((item) => item.dataset.key === focused)?.querySelector("a.title").focus();
}

/** Return the title of a hit and where it is from. */
export const headOf = (hit, hits, { href, open, ofAll }) => element("header", {},
  element("h2", { dir: "auto", title: titleOf(hit) }, linkTo(titleOf(hit), href(hit), () => open(hit), { className: "title" })),
  element("p", { className: "place", dir: "auto" }, ofAll && element("span", { className: "index" }, hit.index), " ", placeOf(hit, hits)));

/** Return a document of a short list: a link, and its first words if its title is only a name. */
export const entryOf = (hit, href, open) => element("li", {}, linkTo(titleOf(hit), href, open),
  hit.isWeak && element("p", { className: "weak" }, "weak match"),
  /^(\S*[-_.:\d]\S*)?$/.test(hit.title.trim()) && element("p", { className: "words", dir: "auto" }, hit.text));

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

function drawHit(hit, rank, hits, values, actions, opened) {
  const why = element("div", { className: "why", id: `why-${rank}`, hidden: !opened }, ...reasons(hit));
  const toggle = hit.why?.contributions && button("Why", () => {
    why.hidden = !why.hidden;
    toggle.setAttribute("aria-expanded", String(!why.hidden));
  }, { aria: { expanded: String(opened), controls: why.id } });
  return element("li", { dataset: { key: keyOf(hit), uri: hit.uri, index: hit.index } },
    element("article", { className: "hit", lang: langOf(hit.metadata) },
      headOf(hit, hits, actions),
      hit.why?.weak && actions.isAnswered && element("p", { className: "weak" }, "weak match"),
      drawPassage(element("div", { className: "passage" }), hit),
      drawMetadata(values, actions.pick),
      drawFamily(hit, actions),
      element("div", { className: "actions", lang: "en" },
        toggle,
        !hit.rows && button(`More like this${actions.ofAll ? ` in ${hit.index}` : ""}`, () => actions.like(hit)),
        button("Copy link", () => actions.copyLink(hit))),
      why));
}

/** Return where the text of a hit begins that is not shown above it. */
const startOf = ({ text, shown }) => offsetsOf(text)(shown[0][0]);

/** Draw the part of a passage that fits the question best. */
function drawPassage(into, hit) {
  const convert = offsetsOf(hit.text);
  const from = startOf(hit);
  const text = hit.text.slice(from);
  const local = (part) => ({ start: convert(part.start - hit.start) - from, end: convert(part.end - hit.start) - from });
  const hidden = hit.shown.slice(1).map(([start], at) => local({ start: hit.start + hit.shown[at][1], end: hit.start + start }));
  const words = (hit.why?.words ?? []).map(local).filter(({ start }) => start >= 0);
  const sentence = hit.why?.sentence ? local(hit.why.sentence) : null;
  const mark = markOf(text, hit.heading);
  const [start, end] = windowOf(text, words, sentence, mark !== "\t" || text.includes(mark));
  const blocks = blocksOf(text, hit.format, start, end, words, sentence, hidden, mark);
  blocks.forEach((block) => { block.dir = "auto"; });
  if (start > 0) blocks[0]?.prepend("… ");
  if (end < text.trimEnd().length) blocks.at(-1)?.append(" …");
  into.replaceChildren(...blocks);
  return into;
}

/** Return the metadata to show of each hit as [name, value]: in the order of the filters, then short values first.
 * What all hits have in common is left out. */
function valuesOf(hits, order) {
  const every = hits.map(({ metadata }) => Object.entries(metadata).flatMap(([name, value]) => flatten(name, value)));
  const many = new Map();
  for (const pair of every.flatMap((values) => [...new Set(values.map((value) => JSON.stringify(value)))])) many.set(pair, (many.get(pair) ?? 0) + 1);
  const place = (name) => (order.indexOf(name) + order.length + 1) % (order.length + 1);
  const isLong = (value) => String(value).length > LONG_VALUE;
  const plain = (text) => text.toLowerCase().replaceAll("-", "_");
  const isSaid = ([name, value], hit) => value === hit.title || value === "(anonymous)"
    || plain(`\n${hit.text.slice(startOf(hit))}`).includes(`\n${plain(name.replace(/^metadata\./, ""))}: `);
  return every.map((values, at) => values.filter((value) => !isMeasure(value[0]) && !isSaid(value, hits[at]) && (hits.length < 3 || many.get(JSON.stringify(value)) < hits.length))
    .sort((one, other) => place(one[0]) - place(other[0]) || isLong(one[1]) - isLong(other[1])).slice(0, SHOWN_VALUES));
}

/** Return the metadata of a hit as keys and values. A click on a value adds it to the filters. */
function drawMetadata(values, pick) {
  if (!values.length) return null;
  return element("ul", { className: "values", aria: { label: "Fields" } }, ...values.map(([name, value], at) => {
    const text = shownValue(value);
    const label = element("span", { className: name === values[at - 1]?.[0] ? "hidden-label" : "name" }, nameOf(name));
    const link = typeof value === "string" ? linkOrText(text) : null;
    if (link instanceof HTMLElement) return element("li", { dir: "auto" }, label, " ", link);
    if (text.length > LONG_VALUE) return element("li", { title: text, dir: "auto" }, label, ` ${text.slice(0, LONG_VALUE)}…`);
    const choice = button(label, () => pick(name, value), { dir: "auto", title: `Only documents with ${name} ${text}` });
    choice.append(` ${text}`);
    return element("li", {}, choice);
  }));
}

/** Return links to the other hits that have nearly the same passage. */
function drawFamily(hit, { href, open, ofAll }) {
  if (!hit.family_size || hit.rows) return null;
  const links = hit.family.map((uri, at) => {
    const member = { uri, index: hit.family_indexes[at] ?? hit.index };
    const shownIndex = ofAll && element("span", { className: "index" }, member.index);
    return element("li", {}, shownIndex, " ", linkTo(lastPart(uri), href(member), () => open(member)));
  });
  return element("details", { className: "family", lang: "en" },
    element("summary", {}, `${hit.family_size} more with nearly the same text`), element("ul", {}, ...links));
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
  const { contributions = {}, weights = {} } = why;
  const parts = [
    ["meaning", contributions.cosine, weights.cosine, `cosine ${why.cosine?.toFixed(3)}`],
    ["words", contributions.words, weights.words, why.bm25 ? `BM25 ${decimal(why.bm25)}` : "none found"],
  ].filter(([, part]) => part !== undefined);
  const total = parts.reduce((sum, [, part]) => sum + Math.max(0, part), 0) || 1;
  const [[first, most] = [], [rest] = []] = parts;
  const said = [element("p", {}, rest ? `${Math.round((100 * Math.max(0, most)) / total)} % ${first}, the rest ${rest}` : `${first} alone`)];
  if (why.words?.length) {
    const words = [...new Set(why.words.map((word) => word.text.toLowerCase()))];
    said.push(element("p", {}, "Words found: ", ...words.flatMap((word, at) => [at ? ", " : "", element("mark", { dir: "auto" }, word)])));
  }
  if (why.sentence) said.push(element("p", {}, "Nearest sentence: ", element("q", { dir: "auto" }, why.sentence.text)));
  said.push(element("details", {}, element("summary", {}, "Numbers"),
    element("table", {},
      element("caption", {}, `Score ${decimal(hit.score)} is the sum of`),
      element("thead", {}, element("tr", {}, ...["part", "adds", "weight", "measured"].map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...parts.map(([name, part, weight = 0, measured]) => element("tr", {},
        element("th", { scope: "row" }, name),
        ...[decimal(part), decimal(weight), measured].map((text) => element("td", {}, text)))))),
    why.sentence && element("p", {}, `Nearest sentence: cosine ${why.sentence.cosine.toFixed(3)}`)));
  return said;
}
