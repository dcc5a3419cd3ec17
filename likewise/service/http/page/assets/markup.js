// A passage as blocks: lines are joined to paragraphs, marks of Markdown and reStructuredText are not shown, and code
// stays as it is. Every character keeps its offset, so that words and sentences can be marked.

import { element } from "./element.js";

/** The backslash before a mark that is shown as it is. */
const ESCAPE = /\\(?=[*_`|[\]#<>])/g;

/** What is not shown, by format. Each may also match where nothing is marked up: a passage begins anywhere. */
const HIDDEN = {
  markdown: [
    ESCAPE,
    /^#{1,6}[ \t]+/gm, /^>[ \t]?/gm, /<!--[\s\S]*?-->|<\/?[A-Za-z][^<>\n]*>/g, /(?<!\w)_(?=\S)|(?<=\S)_(?!\w)/g, /^[ \t]*(```|~~~).*$/gm, /!?\[(?=[^\]\n]*\][([])/g,
    /\](\([^)\s]*(\s+"[^"]*")?\)|\[[^\]\n]*\])/g, /\*\*|__(?=\w)|(?<=\w)__/g, /(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])/g,
    // MyST: labels, directives with their options, roles, and substitutions
    /^[ \t]*(?:\([^()\s]+\)=[ \t]*|:{3,}.*)$/gm, /(?<=^[ \t]*(?:```+|:::+)[ \t]*\{.*(?:\n[ \t]*:[\w-]+:.*)*\n)[ \t]*:[\w-]+:.*$/gm,
    /(?<!`)\{[\w:+.-]+\}(?=`)|(?<=[^`]\{[\w:+.-]+\}`)[!~]|[ \t]+(?=<[^<>`\n]+>`)|\{\{ *(?=[\w.-]+ *\}\})|(?<=\{\{ *[\w.-]+) *\}\}/g,
  ],
  rst: [
    ESCAPE,
    /^[ \t]*([=\-~'"^#*+_.:])\1{2,}[ \t]*$/gm, /:[a-zA-Z][\w.:-]*:(?=`)/g, /[ \t]*<[^<>`\n]+>(?=`__?)/g, /(?<=`)__?(?!\w)/g,
    /^[ \t]*\.\. +(?=[\w-]+::)/gm, /(?<=^[ \t]*\.\. +[\w-]+)::/gm, /^[ \t]*:[\w-]+:[ \t]*$/gm, /\*\*/g, /(?<=:):(?=[ \t]*$)/gm,
    /^[ \t]*\.\. _[^:\n]+:.*$/gm, /^[ \t]*\.\. (?=\[)/gm, /(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])/g, /(?<=[\w\]])__?(?=[\s.,;:!?)]|$)/g,
    /^[ \t]*\.\. (?:index|\|[^|\n]+\|[ \t]+\w+)::.*$/gm, /(?<=^[ \t]*\.\. [\w:+-]+ ?::.*(?:\n[ \t]*:[\w-]+:.*)*\n)[ \t]*:[\w-]+:.*$/gm,
    /(?<![\w|`\\])\|(?=[^\s|](?:[^|\n]*[^\s|])?\|(?![\w|]))|(?<=(?<![\w|`\\])\|[^\s|][^|\n]*)(?<! )\|(?![\w|])/g, /(?<=:[\w.:-]+:`)[!~]|[ \t]*<[^<>`\n]+>(?=`)/g,
  ],
};
const INLINE_CODE = { markdown: /(?:\{[\w:+.-]+\})?(`+)([^`\n]+)\1/g, rst: /(``)([^`\n]+)``/g };
const CODE_BLOCKS = { markdown: /^[ \t]*(```|~~~).*\n[\s\S]*?(?:^[ \t]*\1[ \t]*$|$(?![\s\S]))/gm };
/** A line of reStructuredText after which a block of code begins, with its indentation, that of its item included. */
const RST_OPENING = /^([ \t]*(?:(?:[-*+•]|\w{1,3}[.)])[ \t]+)?)(?:(?!\.\. ).*::|\.\. (?:code|code-block|sourcecode|parsed-literal|productionlist|math|doctest)::.*)[ \t]*\n/gm;
/** Where a paragraph of marked up text ends: at an empty line, after a heading, and before an item, a row or a field. */
const GAP = /\n[ \t]*\n\s*|(?<=^#{1,6}[ \t].*)\n|\n(?=[ \t]*(?:\.\.|[-*+•]|\d{1,3}[.)]|\|)[ \t]|#{1,6}[ \t]|:?[A-Z][\w-]{0,30}:[ \t])/gm;
const DIRECTIVE = /^[ \t]*(?:```+|~~~+)\{(?!code)/;
const EMPTY_LINES = /\n[ \t]*\n\s*/g;
const HEADING = { markdown: /^#{1,6}[ \t].*$/, rst: /^.+\n[ \t]*([=\-~^"'#*+.])\1{2,}\s*$/ };
const ITEM = /^[ \t]*(?:[-*+•]|\d{1,3}[.)]|\|)[ \t]/;
/** Formats that are code from the first to the last character have no name in this list. */
const PROSE = new Set(["text", "markdown", "rst", "html", "pdf", "docx", "pptx", "epub", "eml", "mbox", "maildir", "odt", "odp", "ods",
  "xlsx", "rtf", "xml", "json", "jsonl", "csv", "tsv", "org", "asciidoc", "ipynb"]);
/** Return whether a text is lines of "name: value", as those of a record. */
const isRecord = (text, format) => ["json", "jsonl", "csv", "tsv"].includes(format) && text.trim().split("\n").every((line) => line.includes(": "));

/** Return whether lines are rows of a table: all of them between commas, which prose has too, or some of them between tabs. */
const isRows = (lines, mark) => lines.filter((line) => line.trim().includes(mark)).length > (mark === "\t" ? 1 : Math.max(1, lines.length - 1));

/** Return what stands between the cells of a table: of one that is attached to a mail, commas or semicolons. */
export const markOf = (text, heading) => (!/\.csv$/i.test(heading) ? "\t" : text.split(";").length > text.split(",").length ? ";" : ",");
for (const marks of [HIDDEN, INLINE_CODE, CODE_BLOCKS]) marks.ipynb = marks.markdown;

export const isProse = (format) => !format || PROSE.has(format);
export const isMarkedUp = (format) => format in HIDDEN;

const rangesOf = (text, pattern, kind) => (pattern ? [...text.matchAll(pattern)] : [])
  .map((match) => ({ start: match.index, end: match.index + match[0].length, kind }));

/** Return the blocks of code of reStructuredText: the lines after "::" that are indented further than their paragraph. */
function rstBlocks(text) {
  const blocks = [];
  for (const opening of text.matchAll(RST_OPENING)) {
    const start = opening.index + opening[0].length;
    const lines = new RegExp(`(?:[ \\t]*\\n)*(?:[ \\t]{${opening[1].length + 1},}\\S.*(?:\\n|$)(?:[ \\t]*\\n)*)+`, "y");
    lines.lastIndex = start;
    if (start >= (blocks.at(-1)?.end ?? 0) && lines.test(text)) blocks.push({ start, end: lines.lastIndex, kind: "block" });
  }
  return blocks;
}

/** Return the ranges of a text with another look: {start, end, kind}, where kind is "hidden", "code" or "block". */
function looksOf(text, format) {
  const blocks = format === "rst" ? rstBlocks(text) : rangesOf(text, CODE_BLOCKS[format], "block").filter((block) => !DIRECTIVE.test(text.slice(block.start, block.end)));
  const outside = (range) => !blocks.some((block) => range.start >= block.start && range.end <= block.end);
  const code = rangesOf(text, INLINE_CODE[format], "code").filter((range) => outside(range) && text[range.start] !== "{");
  const inCode = (range) => code.some((part) => range.start >= part.start && range.end <= part.end);
  const hidden = (HIDDEN[format] ?? []).flatMap((pattern) => rangesOf(text, pattern, "hidden"))
    .filter((range) => !inCode(range) && (outside(range) || /^[ \t]*(```|~~~)/.test(text.slice(range.start, range.end))));
  const quotes = isMarkedUp(format) ? rangesOf(text, /`+/g, "hidden").filter(outside) : [];
  return { blocks, ranges: [...code, ...hidden, ...quotes] };
}

/** Return the paragraphs and blocks of code of `text[start:end]`. */
function partsOf(text, start, end, blocks, format) {
  const gaps = isMarkedUp(format) ? GAP : isRecord(text, format) ? /\n/g : EMPTY_LINES;
  const parts = [];
  const paragraphs = (from, to) => {
    let at = from;
    for (const gap of text.slice(from, to).matchAll(gaps)) {
      parts.push({ start: at, end: from + gap.index });
      at = from + gap.index + gap[0].length;
    }
    parts.push({ start: at, end: to });
  };
  let at = start;
  for (const block of blocks.filter((each) => each.end > start && each.start < end)) {
    paragraphs(at, Math.max(at, block.start));
    const [from, to] = [Math.max(start, block.start), Math.min(end, block.end)];
    const code = text.slice(from, to);
    const opening = code.match(/^([ \t]*(```|~~~).*\n|[ \t]*\n)*/)[0].length;
    const closing = code.trimEnd().replace(/\n[ \t]*(```|~~~)$/, "").trimEnd().length;
    parts.push({ start: from + opening, end: from + Math.max(opening, closing), isCode: true });
    at = Math.min(end, block.end);
  }
  paragraphs(at, end);
  return parts.filter((part) => text.slice(part.start, part.end).trim());
}

/** Return the elements for a part of a text, with words and a sentence ({start, end} each) marked, and without what is `hidden`. */
export function blocksOf(text, format, start, end, words, sentence, hidden = [], mark = "\t") {
  if (!isProse(format)) return [drawPart(text, { start, end, isCode: true }, [], words, sentence)];
  const { blocks, ranges } = looksOf(text, format);
  ranges.push(...hidden.map((range) => ({ ...range, kind: "hidden" })));
  const cells = mark === "\t" ? /(?:^|\t)([^\t]*)/g : new RegExp(`(?:^|${mark})("(?:[^"]|"")*"|[^${mark}]*)`, "g");
  const isRow = isRecord(text, format); // its nearest sentence is all of it
  return partsOf(text, start, end, blocks, format).map((part) => {
    const source = text.slice(part.start, part.end);
    const isTable = !part.isCode && !isMarkedUp(format) && isRows(source.trim().split("\n"), mark);
    const block = isTable ? drawTable(text, part, cells, ranges, words) : drawPart(text, part, ranges, words, isRow ? null : sentence);
    if (!part.isCode && HEADING[format]?.test(source)) block.className = "heading";
    else if (!part.isCode && isMarkedUp(format) && ITEM.test(source)) block.className = "item";
    else if (isRow) block.className = "member";
    return block;
  }).filter((block) => block.textContent.trim());
}

/** Draw lines as the rows of a table; `cells` finds the cells of a line, with the comma or tab before each. */
function drawTable(text, { start, end }, cells, ranges, words) {
  return element("table", {}, ...[...text.slice(start, end).matchAll(/.+/g)].map((line) => element("tr", {}, ...[...line[0].matchAll(cells)].map((cell) => {
    const last = start + line.index + cell.index + cell[0].length;
    const quotes = /^".*"$/.test(cell[1]) ? 1 : 0;
    return drawPart(text, { start: last - cell[1].length + quotes, end: last - quotes, tag: "td" }, ranges, words, null);
  }))));
}

function drawPart(text, { start, end, isCode = false, tag = isCode ? "pre" : "p" }, ranges, words, sentence) {
  const block = element(tag);
  const within = [...ranges, ...words.map((word) => ({ ...word, kind: "word" }))].filter((range) => range.end > start && range.start < end);
  const borders = [...within, ...(sentence ? [sentence] : [])].flatMap((range) => [range.start, range.end]);
  const cuts = [...new Set([start, end, ...borders.filter((at) => at > start && at < end)])].sort((one, other) => one - other);
  let tinted = null;
  for (let number = 0; number + 1 < cuts.length; number += 1) {
    const [from, to] = [cuts[number], cuts[number + 1]];
    const kinds = new Set(within.filter((range) => range.start <= from && range.end >= to).map(({ kind }) => kind));
    if (kinds.has("hidden")) continue;
    let node = text.slice(from, to);
    if (kinds.has("word")) node = element("mark", {}, node);
    if (kinds.has("code")) node = element("code", {}, node);
    if (sentence && sentence.start <= from && sentence.end >= to) {
      if (!tinted) block.append(tinted = element("span", { className: "sentence" }));
      tinted.append(node);
    } else block.append(node);
  }
  return block;
}
