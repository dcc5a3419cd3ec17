// The state of the page, which is all in its address: every view can be linked, and the back button works.

import { ALL } from "./service.js";

const MODES = ["hybrid", "dense", "words"];
const OPERATORS = ["=", ">=", "<=", "under"];
const HITS = 10;
const MOST_HITS = 200;

/** The state of a page that was asked nothing. A pick is a condition that was chosen: [field, operator, value]. */
export const EMPTY = Object.freeze({
  view: "search", index: "", q: "", mode: "", with: "", where: "", picks: [], k: HITS, open: "", at: "", from: "", area: null, named: "", at_map: "",
  like: [], sort: "newest", literal: false,
});

/** Return the state that an address holds. What it cannot mean is left out. */
export function readAddress(query) {
  const given = new URLSearchParams(query);
  const text = (name) => given.get(name) ?? "";
  const isAll = text("index") === ALL; // maps and examples belong to one index
  const k = Number.parseInt(text("k"), 10);
  return {
    view: text("view") === "map" && !isAll ? "map" : "search",
    index: text("index"),
    q: text("q"),
    mode: MODES.includes(text("mode")) ? text("mode") : "",
    with: /^(mode=(hybrid|dense|words)|index=.+)$/.test(text("with")) ? text("with") : "",
    where: text("where"),
    picks: given.getAll("pick").map(readPick).filter(Boolean),
    k: k >= 1 ? Math.min(k, MOST_HITS) : HITS,
    open: text("open"),
    at: /^\d+-\d+$/.test(text("at")) ? text("at") : "",
    from: text("from"),
    area: isAll ? null : readArea(text("area")),
    named: text("area") ? text("named") : "",
    at_map: /^-?[\d.]+_-?[\d.]+_[\d.]+$/.test(text("at_map")) ? text("at_map") : "",
    like: isAll ? [] : given.getAll("like"),
    sort: text("sort") === "title" ? "title" : "newest",
    literal: text("literal") === "true",
  };
}

/** Return the address of a state, relative to the page: only what differs from the empty state is in it. */
export function addressOf(state) {
  const given = new URLSearchParams();
  for (const name of ["view", "index", "q", "mode", "with", "where", "k", "open", "at", "named", "at_map", "sort", "literal"]) {
    if (state[name] !== EMPTY[name]) given.set(name, state[name]);
  }
  if (state.open && state.from) given.set("from", state.from);
  if (state.area) given.set("area", state.area.map((corner) => corner.join("_")).join("~"));
  state.like.forEach((uri) => given.append("like", uri));
  for (const pick of state.picks) given.append("pick", JSON.stringify(pick));
  const query = given.toString();
  return query ? `?${query}` : "./";
}

/** Return whether two states ask the service the same question in the same view. */
export function asksTheSame(one, other) {
  const shown = { open: "", at: "", from: "", named: "", at_map: "" };
  const asked = (state) => JSON.stringify({ ...state, ...shown, q: state.q.trim(), where: state.where.trim() });
  return asked(one) === asked(other);
}

function readPick(text) {
  try {
    const pick = JSON.parse(text);
    const [field, operator, value] = Array.isArray(pick) && pick.length === 3 ? pick : [];
    const sound = typeof field === "string" && OPERATORS.includes(operator) && ["string", "number", "boolean"].includes(typeof value);
    return sound ? pick : null;
  } catch {
    return null; // an address that somebody has shortened
  }
}

/** Return the corners of an area on the map: x_y~x_y~…; null where there is none. */
function readArea(text) {
  const corners = text.split("~").map((corner) => corner.split("_").map(Number));
  const sound = corners.length >= 3 && corners.every((corner) => corner.length === 2 && corner.every(Number.isFinite));
  return text && sound ? corners : null;
}
