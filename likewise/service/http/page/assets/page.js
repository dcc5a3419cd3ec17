// The page: its state is the address, and everything that is shown is drawn from the state and the service's answers.

import { addressOf, asksTheSame, EMPTY, readAddress } from "./address.js";
import { asTable, Asking, bodyOf, kindOf } from "./asking.js";
import { drawChoices, drawComparison, modeOf, otherOf } from "./compare.js";
import { Chips } from "./chips.js";
import { filterOf, samePick } from "./conditions.js";
import { button, byId, element, opens } from "./element.js";
import { Filters } from "./filters.js";
import { exampleOf, groupsOf } from "./groups.js";
import { addSentences, drawHits, headOf, titleOf } from "./hits.js";
import { listenToKeys } from "./keys.js";
import { Reader } from "./reader.js";
import { drawOverview, keepQuestion } from "./overview.js";
import { offerToSave } from "./save.js";
import { found, listed } from "./sentences.js";
import { ALL, answers, askedAt, getOverview, listIndexes, Refused, Unreachable } from "./service.js";
import { readCounts, readFields, together } from "./together.js";

const RETRY_MS = 1000;
const LATE_MS = 500; // after this the hits of the question before are dimmed
const SLOW_MS = 4000; // after this the page says that it still waits
const FACETS = 20; // fields that the service counts at once
const WIDE = matchMedia("(min-width: 60rem)");
const FRESH_MS = 10_000; // fields and sizes are asked for again after this, because an index can change

let state = readAddress(location.search);
let indexes = [];
let isWritable = false; // whether the service takes changes; only then does the page compare two rankings
let shown = null; // {state, answer} of the hits that are drawn
let leaving = false; // from closing a document until the browser has gone back
const postponed = []; // changes of that time
let typing = false; // the address of a question that is being typed replaces itself, so that Back skips its beginnings
let waiting = []; // timers of the question that is being asked
let retry = null;
let refreshed = 0;
let isInTrouble = false; // whether the line above everything is about a service that does not answer

const question = byId("question");
const where = byId("where");
const list = byId("hits");
const asking = new Asking(show, explain, showNamed, fail);
const chips = new Chips(choose);
const filters = new Filters(() => state.picks, (picks) => choose({ picks }), {
  changed: () => count(),
  read: async (field, letters) => (await readCounts(current(), [letters === undefined ? { field } : facetOf(field, letters)], letters === undefined ? EMPTY : state))[0],
  trouble: noticeTrouble,
});
const reader = new Reader(() => state.open && leave());
let map = null; // its script is read when the map is first shown
const mapActions = {
  open: (uri) => go({ open: uri, at: "" }),
  href: (uri) => addressOf({ ...state, open: uri, at: "" }),
  setArea: (area, named) => choose({ area, named }),
  pick: (picks) => choose({ picks: [...state.picks.filter(([field]) => field !== picks[0][0]), ...picks] }),
  remember: (view) => state.view === "map" && go({ at_map: view }, { replace: true }),
  answered: (answer) => state.view === "map" && drawVerdict({ ...state, like: [] }, answer),
  trouble: noticeTrouble,
};

// the state

/** Change the state, its address, and what is shown. */
function go(changes, { replace = false } = {}) {
  if (leaving) {
    postponed.push(() => go(changes, { replace }));
    return;
  }
  const before = state;
  state = { ...state, ...changes };
  writeAddress(replace ? history.state : { inside: true }, replace);
  draw(before);
}

/** Write the state into the address. */
function writeAddress(entry, replace = false) {
  try {
    history[replace ? "replaceState" : "pushState"](entry, "", addressOf(state));
  } catch {
    // Safari allows a hundred changes in 30 seconds: the address follows with a later key, and the search goes on.
  }
}

/** Change what is being typed: the first key makes an entry of the history, the next ones change it. */
function type(changes) {
  const replace = typing;
  typing = true;
  go(changes, { replace });
}

function choose(changes) {
  typing = false;
  if ("picks" in changes || "area" in changes || "where" in changes) chips.forget();
  go({ k: EMPTY.k, ...changes });
}

function chooseIndex(name) {
  const view = name === ALL ? "search" : state.view; // each index has its own map
  choose({ index: name, view, where: "", picks: [], area: null, like: [], open: "", at: "" });
}

/** Close the document: the way back, where this page opened it. The browser goes back later: changes wait until then. */
function leave() {
  leaving = Boolean(history.state?.opened);
  if (leaving) history.back();
  else go({ open: "", at: "" }, { replace: true });
}

addEventListener("popstate", () => {
  const before = state;
  typing = false;
  state = readAddress(location.search);
  draw(before);
  leaving = false;
  postponed.splice(0).forEach((change) => change());
});

// drawing

/** Draw everything that is not an answer of the service, and ask for what is. */
function draw(before) {
  const isMap = state.view === "map";
  byId("search-view").hidden = isMap;
  byId("map-view").hidden = !isMap;
  if (isMap !== Boolean(byId("filters").closest("#map-view"))) moveTo(isMap);
  byId("sort").value = state.sort;
  for (const [id, view] of [["to-search", "search"], ["to-map", "map"]]) {
    byId(id).href = addressOf({ ...state, view, open: "", at: "" });
    byId(id).ariaCurrent = state.view === view ? "page" : null;
  }
  const index = current();
  byId("to-map").hidden = Boolean(index?.parts);
  byId("sort").parentElement.hidden = kindOf(state) !== "list" || Boolean(index?.parts) || !index?.documents;
  document.title = state.q.trim() ? `${state.q.trim()} – likewise` : "likewise";
  if (document.activeElement !== question || question.value.trim() !== state.q.trim()) question.value = state.q;
  if (document.activeElement !== where || where.value.trim() !== state.where.trim()) where.value = state.where;
  if (index) {
    byId("index").value = index.name;
    byId("map-index").textContent = index.name;
    const mode = modeOf(state, index);
    drawChoices(byId("with"), state, indexes, index, isWritable);
    for (const box of document.querySelectorAll("#modes input")) {
      box.checked = box.value === mode;
      box.disabled = !index.model && box.value !== "words";
    }
  }
  chips.draw(state);
  if (before && before.index !== state.index) loadFields().catch(noticeTrouble);
  else filters.sync();
  if (index && (!before || !asksTheSame(before, state) || retry !== null)) ask();
  drawMap(index);
  if (index && state.open) reader.show(index.parts ? state.from : index.name, state.open, state.at, hitOf(state));
  else reader.close();
}

/** Move the filters, and what is said of an answer, to the view that is shown. */
function moveTo(isMap) {
  byId(isMap ? "map-lists" : "columns").prepend(byId("filters"));
  (isMap ? byId("filters") : byId("hits")).before(byId("verdict"));
  drawVerdict(state, null);
  unfold();
}

/** Open the filters where there is room for them, or some are in use. */
function unfold() {
  byId("filters").open = state.view === "search" && (WIDE.matches || state.picks.length > 0 || Boolean(state.where));
}

function current() {
  if (state.index === ALL && indexes.length > 1) return together(indexes);
  return indexes.find(({ name }) => name === state.index) ?? (state.index ? null : indexes[0]) ?? null;
}

/** Return the members of the state that open a hit, or a document of the index that is shown. */
const placeOf = ({ uri, index, start, end, rows, path }) => (rows ? { q: "", picks: [...state.picks, ["path", "=", path]] }
  : { open: uri, at: end ? `${start}-${end}` : "", from: current().parts ? index : "" });

function hitOf({ open, at, from }) {
  return shown?.answer.hits.find((hit) => hit.uri === open && `${hit.start}-${hit.end}` === at && (!from || hit.index === from)) ?? null;
}

async function drawMap(index) {
  if (!index || state.view !== "map") return;
  if (!map) {
    try {
      const { MapView } = (await import("./map.js")).default;
      map ??= new MapView(mapActions);
      map.offerFields(fields.fields, index.documents);
      drawMap(current());
    } catch (error) {
      noticeTrouble(new Unreachable(error.message));
    }
    return;
  }
  byId("map-within").hidden = !state.area;
  byId("map-within").href = addressOf({ ...state, view: "search" });
  const filter = bodyOf({ ...state, q: "", like: [] });
  count();
  map.show(index, state, state.q.trim() ? bodyOf({ ...state, like: [] }) : null, { where: filter.where, area: filter.area });
}

let fields = { fields: [], rare: [] };
let fieldsOf = ""; // the index whose fields are shown
let askedCounts = ""; // what the counts at the fields were asked for

/** Return the request for the values of a field, with some letters, under all conditions but those on the field itself. */
const facetOf = (field, letters) => ({ field, where: filterOf(state, field, letters), ...(state.area && { area: state.area }) });

/** Count the values of the fields that are shown, each under all conditions but those on the field itself. */
async function count() {
  const index = current();
  const facets = filters.shown.map((field) => facetOf(field));
  const asked = JSON.stringify([index?.name, facets, index?.documents]);
  if (index?.name !== fieldsOf || !facets.length || asked === askedCounts || !byId("filters").open) return;
  askedCounts = asked;
  try {
    const found = [];
    for (let at = 0; at < facets.length; at += FACETS) found.push(...await readCounts(index, facets.slice(at, at + FACETS), state));
    if (asked === askedCounts) filters.count(found);
  } catch (error) {
    askedCounts = "";
    if (!(error instanceof Refused)) noticeTrouble(error); // a condition that is being typed is refused with the question
  }
}

async function loadFields() {
  const index = current();
  if (!index) return;
  const listed = await readFields(index);
  if (current()?.name !== index.name) return;
  if (fieldsOf === index.name && JSON.stringify(listed) === JSON.stringify(fields)) return;
  [fields, fieldsOf] = [listed, index.name];
  map?.offerFields(fields.fields, index.documents);
  filters.draw(fields, index.documents);
  where.placeholder = exampleOf(groupsOf(fields.fields, index.documents));
  if (shown && list.childElementCount) { // metadata is in the order of the filters
    drawList(shown.state, shown.answer);
    if (shown.state.q.trim()) explain(shown.answer);
  }
  askedCounts = "";
  count();
}

/** Ask for sizes and fields again, from time to time: the index may have changed, or been replaced. */
async function refresh() {
  if (Date.now() - refreshed < FRESH_MS) return;
  refreshed = Date.now();
  setIndexes(await listIndexes());
  await loadFields();
  if (kindOf(state) === "list") await drawAbout();
}

// asking

function ask() {
  const index = current();
  stopWaiting();
  if (state.view === "map") {
    asking.cancel();
    return;
  }
  if (kindOf(state) === "list") drawAbout().catch(noticeTrouble);
  waiting = [setTimeout(setLate, LATE_MS, true), setTimeout(warn, SLOW_MS, "The service has not answered yet; still waiting.")];
  asking.ask({ ...state, index: index.name }, isWritable ? otherOf(state, indexes, index) : null, typing);
}

function explain(answer) {
  if (shown) shown.answer = answer;
  addSentences(list, answer.hits);
}

/** Show above the hits which documents have the name that was asked, unless the first hit is the only one. */
function showNamed({ hits, matched }) {
  if (!hits.length || (matched === 1 && hits[0].uri === shown.answer.hits[0]?.uri)) return;
  const isOneFile = matched > 1 && hits.every(({ path }) => path && path === hits[0].path);
  const named = isOneFile ? [asTable(hits[0], matched)] : hits;
  const rest = !isOneFile && matched > hits.length ? ` and ${matched - hits.length} more` : "";
  byId("notices").querySelector(".unanswered")?.remove();
  byId("notices").prepend(element("div", { className: "hit named" },
    element("p", { className: "place" }, `Named “${state.q.trim()}”${rest}`),
    ...named.map((hit) => headOf(hit, [], { href: (each) => addressOf({ ...state, ...placeOf(each) }), open }))));
}

function show(asked, answer, compared) {
  stopWaiting();
  setLate(false);
  recovered();
  const isQuestion = kindOf(asked) === "question";
  if (!isQuestion) answer.hits = answer.hits.map((hit) => (hit.family_size ? asTable(hit, hit.family_size + 1) : hit));
  shown = { state: asked, answer };
  byId("about").hidden = isQuestion || isFiltered(asked);
  if (asked.where.trim() === state.where.trim()) refuse("");
  drawVerdict(asked, answer);
  count();
  if (compared) compare(asked, answer, compared);
  byId("comparison").hidden = !compared;
  list.hidden = Boolean(compared);
  drawList(asked, compared ? { hits: [] } : answer);
  list.dataset.question = asked.q.trim();
  byId("save").hidden = !answer.hits.length;
  byId("curl").hidden = true;
  byId("more").hidden = answer.hits.length < asked.k || answer.hits.length >= answer.matched || asked.k >= 200;
  refresh().catch(noticeTrouble);
}

function drawList(asked, answer) {
  const ofAll = asked.index === ALL;
  drawHits(list, answer.hits, {
    href: (hit) => addressOf({ ...state, ...placeOf(hit) }),
    open,
    like: addExample,
    copyLink: (hit) => copy(addressTo(placeOf(hit)), "Link copied"),
    order: groupsOf(fields.fields, current().documents).map(({ name }) => name),
    isAnswered: answer.answered !== false,
    ofAll,
    pick: (field, value) => choose({ picks: [...state.picks.filter((pick) => !samePick(pick, [field, "=", value])), [field, "=", value]] }),
  });
  if (state.open) reader.mark(hitOf(state));
}

/** Ask again with a hit as an example, which only its own index can compare with; that may lack a field of the typed condition. */
function addExample(hit) {
  chips.titles.set(hit.uri, titleOf(hit));
  choose({ like: [...new Set([...state.like, hit.uri])], open: "", at: "", ...(current().parts && { index: hit.index, where: "" }) });
}

function compare(asked, answer, compared) {
  const index = current();
  const other = otherOf(asked, indexes, index);
  const sameIndex = other.index === index.name;
  const sideOf = (label, { hits }, changes, opens) => ({ label, hits, href: (hit) => addressOf({ ...state, ...changes, ...placeOf(hit) }), open: opens });
  byId("status").textContent = drawComparison(byId("comparison"), [
    sideOf(sameIndex ? { hybrid: "Both", dense: "Meaning", words: "Words" }[answer.mode] : index.name, answer, {}, open),
    // A document of the other index is shown from there.
    sideOf(other.label, compared, { index: other.index, with: `index=${index.name}` }, sameIndex ? open : null),
  ], (hit) => (sameIndex ? `${hit.index}\n${hit.uri}` : hit.uri));
}

/** Say what was found; nothing for no answer. */
function drawVerdict(asked, answer) {
  const filtered = isFiltered(asked);
  const isQuestion = kindOf(asked) === "question";
  byId("status").textContent = "";
  byId("notices").replaceChildren();
  if (!answer) return;
  const { hits, notes = [], did_you_mean: meant } = answer;
  const folded = hits.reduce((sum, hit) => sum + (hit.family_size ?? 0), 0);
  byId("status").textContent = (isQuestion ? found : listed)(hits.length, answer.matched, filtered, folded);
  if (!isQuestion && asked.index === ALL) byId("status").textContent = "A question is answered by all indexes together.";
  if (asked.like.length) byId("status").textContent = `More like “${asked.like.map((uri) => chips.titleOf(uri)).join("”, “")}”`;
  byId("notices").replaceChildren(...[
    meant && element("p", { className: "note" }, "Did you mean ", button(meant, () => choose({ q: meant }), { dir: "auto" }), /[?？؟]$/.test(meant) ? "" : "?"),
    answer.answered === false && hits.length && !asked.like.length && element("div", { className: "unanswered", role: "status" },
      element("p", {}, element("strong", {}, "Nothing here seems to answer this.")),
      element("p", {}, "These are the nearest passages there are, but they are no nearer than the best hits of unrelated questions usually are.")),
    ...notes.map((note) => element("p", { className: "note" }, note, " ",
      note.startsWith("read as conditions: ") && button("Ask for the text as it stands", () => choose({ literal: true })))),
    !hits.length && element("p", { className: "actions" },
      answer.mode === "words" && current().model && button("Search by meaning", () => choose({ mode: "dense" })),
      filtered && button("Remove filters", () => choose({ where: "", picks: [], area: null, named: "" }))),
  ].filter(Boolean));
}

const isFiltered = ({ where: typed, picks, area }) => Boolean(typed.trim() || picks.length || area);

let overview = { index: "" }; // what was read of an index, and its size then

/** Draw what is in the index, where nothing was asked. */
async function drawAbout() {
  const index = current();
  byId("about").hidden = !index || isFiltered(state);
  if (byId("about").hidden) return;
  const drawn = () => drawOverview(byId("about"), index, overview.index === index.name ? overview : null, {
    ask: (text) => choose({ q: text }),
    choose: chooseIndex,
    region: (at) => choose({ area: overview.regions[at].area, named: overview.regions[at].name }),
    href: (uri) => addressOf({ ...state, open: uri }),
    open: (uri) => open({ uri }),
  });
  drawn();
  if (index.parts || (overview.index === index.name && overview.documents === index.documents)) return;
  const read = await getOverview(index.name);
  overview = { ...read, index: index.name, documents: index.documents };
  if (current()?.name === index.name) drawn();
}

function open(hit) {
  if (hit.rows) {
    choose(placeOf(hit));
    return;
  }
  typing = false;
  const before = state;
  keepQuestion(current().name, state.q);
  state = { ...state, ...placeOf(hit) };
  writeAddress({ inside: true, opened: true }, Boolean(before.open) && Boolean(history.state?.opened));
  draw(before);
}

// trouble

const stopWaiting = () => waiting.forEach(clearTimeout);

/** Dim what is shown if it is not the answer to what is asked. */
const setLate = (isLate) => byId("results").setAttribute("aria-busy", String(isLate));

function fail(asked, error) {
  stopWaiting();
  setLate(!(error instanceof Refused) || error.status === 503);
  if (!(error instanceof Refused)) {
    noticeTrouble(error);
    return;
  }
  recovered();
  if (error.status === 503) {
    warn(error.message);
    again((error.retryAfter || 1) * 1000);
  } else if (isOfCondition(error)) {
    noticeTrouble(error); // the hits stay: a condition is wrong while it is typed
    byId("filters").open = true;
    if (!list.childElementCount) asking.ask({ ...asked, where: "" }, null, false);
  } else {
    shown = null;
    list.replaceChildren();
    list.dataset.question = asked.q.trim();
    for (const id of ["comparison", "more", "save", "about"]) byId(id).hidden = true;
    byId("status").textContent = "";
    byId("notices").replaceChildren(element("p", { className: "error" }, error.message));
  }
}

/** Show that a typed condition is not used, and why; empty for one that is. */
function refuse(message) {
  byId("where-error").textContent = message;
  where.setAttribute("aria-invalid", String(Boolean(message)));
  chips.refusal = { where: state.where, message };
  chips.draw(state);
}

const isOfCondition = (error) => ["bad-filter", "unknown-field"].includes(error.slug) && state.where.trim();

function noticeTrouble(error) {
  if (error instanceof Unreachable) {
    warn("The service does not answer; trying again.");
    again(RETRY_MS);
  } else if (isOfCondition(error)) {
    refuse(error.message.replace(/^filter: /, ""));
  } else {
    warn(error.message);
  }
}

/** Ask again when the service answers. */
function again(pause) {
  clearTimeout(retry);
  retry = setTimeout(async () => {
    if (await answers()) {
      if (indexes.length) {
        ask();
        refreshed = 0;
        if (state.view === "map") refresh().then(recovered, noticeTrouble);
        if (state.open) reader.again();
      } else start().catch(noticeTrouble);
    } else again(RETRY_MS);
  }, pause);
}

function recovered() {
  clearTimeout(retry);
  retry = null;
  if (isInTrouble) byId("trouble").hidden = true;
  isInTrouble = false;
}

/** Show above everything that the service does not answer, until it does. */
function warn(message) {
  isInTrouble = true;
  byId("trouble").textContent = message;
  byId("trouble").hidden = false;
}

// copying

const addressTo = (place) => new URL(addressOf({ ...state, index: current().name, ...place }), location.href).href;

async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
    byId("said").textContent = said;
  } catch {
    byId("said").textContent = "The browser does not allow copying here"; // without https only this machine's own pages may
  }
  setTimeout(() => { byId("said").textContent = ""; }, 2500);
}

// the beginning

function listen() {
  question.addEventListener("input", () => type({ q: question.value, k: EMPTY.k, open: "", at: "", like: [] }));
  question.addEventListener("blur", () => { typing = false; });
  byId("sort").addEventListener("change", (event) => choose({ sort: event.target.value }));
  where.addEventListener("input", () => type({ where: where.value, k: EMPTY.k }));
  where.addEventListener("blur", () => { typing = false; });
  byId("modes").addEventListener("change", (event) => choose({ mode: event.target.value }));
  byId("index").addEventListener("change", (event) => chooseIndex(event.target.value));
  byId("with").addEventListener("change", (event) => choose({ with: event.target.value, k: state.k }));
  byId("more").addEventListener("click", async () => {
    list.lastElementChild?.querySelector("a.title").focus();
    go({ k: state.k + EMPTY.k }, { replace: true });
  });
  for (const [id, view] of [["to-search", "search"], ["to-map", "map"]]) {
    byId(id).addEventListener("click", (event) => {
      if (!opens(event)) return;
      choose({ view, k: state.k });
      if (view === "search") question.focus();
    });
  }
  byId("reader-link").addEventListener("click", () => copy(addressTo({}), "Link copied"));
  byId("open-help").addEventListener("click", () => byId("help").showModal());
  byId("help-close").addEventListener("click", () => byId("help").close());
  byId("help").addEventListener("click", (event) => event.target === byId("help") && byId("help").close());
  WIDE.addEventListener("change", unfold);
  byId("filters").addEventListener("toggle", () => count());
  unfold();
  offerToSave(() => ({
    hits: shown.answer.hits,
    path: askedAt(shown.state.index, { question: "search", list: "list" }[kindOf(shown.state)]),
    body: bodyOf(shown.state),
  }));
  listenToKeys({
    commit: () => {
      typing = false;
      keepQuestion(current()?.name ?? "", state.q);
    },
    close: () => reader.close(),
    isOpen: () => reader.isOpen,
  });
}

/** Show the indexes that are served now. */
function setIndexes({ indexes: listed_, writable }) {
  isWritable = writable;
  const names = (every) => every.map(({ name }) => name).join("\n");
  if (names(listed_) !== names(indexes)) {
    const choices = listed_.map(({ name }) => element("option", { value: name }, name));
    if (choices.length > 1) choices.push(element("option", { value: ALL }, "All"));
    byId("index").replaceChildren(...choices);
    if (choices.some(({ value }) => value === state.index)) byId("index").value = state.index;
  }
  indexes = listed_;
}

async function start() {
  setIndexes(await listIndexes());
  recovered();
  refreshed = Date.now();
  if (!current()) {
    byId("trouble").textContent = `No index ${state.index} is served here.`;
    byId("trouble").hidden = false;
    state = { ...state, index: "", open: "", at: "" };
  }
  draw(null);
  loadFields().catch(noticeTrouble);
  if (!state.open && state.view === "search" && matchMedia("(hover: hover)").matches) question.focus();
}

question.value = state.q;
listen();
start().catch(noticeTrouble);
