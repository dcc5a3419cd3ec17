// Two rankings of one question side by side: those of two modes, or of two indexes, and what has moved between them.

import { element, linkTo } from "./element.js";
import { placeOf, titleOf } from "./hits.js";

const NAMES = { hybrid: "Both", dense: "Meaning", words: "Words" };

/** Return the mode that an index answers in where a state names none. */
export const modeOf = (state, index) => state.mode || (index.model ? "hybrid" : "words");

/** Return what a state compares with, as {label, index, mode}; null for nothing, or for what is not served. */
export function otherOf(state, indexes, index) {
  if (state.like.length || !state.q.trim()) return null;
  const [kind, ...rest] = state.with.split("=");
  const name = rest.join("=");
  if (kind === "mode" && name !== modeOf(state, index)) return { label: NAMES[name], index: index.name, mode: name };
  const other = kind === "index" && !index.parts && name !== index.name ? indexes.find((one) => one.name === name) : null;
  return other ? { label: other.name, index: other.name, mode: other.model ? state.mode : "words" } : null;
}

/** Fill the choice of what to compare with: the other modes, and the other indexes. */
export function drawChoices(select, state, indexes, index, isWritable) {
  const modes = index.model ? Object.keys(NAMES).filter((mode) => mode !== modeOf(state, index)) : [];
  const others = index.parts ? [] : indexes.filter(({ name }) => name !== index.name);
  const options = [["", "nothing"], ...modes.map((mode) => [`mode=${mode}`, NAMES[mode]]), ...others.map(({ name }) => [`index=${name}`, name])];
  if (JSON.stringify(options) !== select.dataset.options) {
    select.dataset.options = JSON.stringify(options);
    select.replaceChildren(...options.map(([value, label]) => element("option", { value }, label)));
  }
  select.value = state.with;
  if (select.selectedIndex < 0) select.value = "";
  select.closest("label").hidden = !isWritable || options.length === 1 || !state.q.trim() || state.like.length > 0;
}

/** Draw two sides ({label, hits, href, open}) beside each other; return what they have in common as a sentence. `keyOf(hit)` is equal for the same hit. */
export function drawComparison(into, sides, keyOf) {
  const ranks = sides.map(({ hits }) => new Map(hits.map((hit, rank) => [keyOf(hit), rank])));
  into.replaceChildren(...sides.map((side, at) => element("section", { aria: { label: side.label } },
    element("h2", {}, side.label),
    element("ol", {}, ...side.hits.map((hit, rank) => {
      const there = ranks[1 - at].get(keyOf(hit));
      const link = linkTo(titleOf(hit), side.href(hit), () => side.open(hit), side.open ? {} : { on: {} });
      return element("li", { dataset: { moved: there === undefined ? "alone" : Math.sign(there - rank) } },
        element("p", { className: "title" }, `${rank + 1}. `, link),
        element("p", { className: "place" }, placeOf(hit)),
        element("p", { className: "moved" }, moved(rank, there)));
    })))));
  const shared = sides[0].hits.filter((hit) => ranks[1].has(keyOf(hit))).length;
  const inPlace = sides[0].hits.filter((hit, rank) => ranks[1].get(keyOf(hit)) === rank).length;
  return `${shared} of ${sides[0].hits.length} hits are in both, ${inPlace} of them in the same place`;
}

/** Return how a hit stands here, compared with the other side. */
function moved(rank, there) {
  if (there === undefined) return "only here";
  if (there === rank) return "same place";
  return there > rank ? `${there - rank} higher than there` : `${rank - there} lower than there`;
}
