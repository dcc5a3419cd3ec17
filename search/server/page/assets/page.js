// The page: its state is the address, and everything that is shown is drawn from the state and the service's answers.

import { addressOf, asksTheSame, EMPTY, readAddress } from "./address.js";
import { Asking, bodyOf } from "./asking.js";
import { drawChoices, drawComparison, modeOf, otherOf } from "./compare.js";
import { Chips } from "./chips.js";
import { filterOf, samePick } from "./conditions.js";
import { byId, element } from "./element.js";
import { Filters } from "./filters.js";
import { addSentences, drawHits } from "./hits.js";
import { Judging } from "./judging.js";
import { listenToKeys } from "./keys.js";
import { MapView } from "./map.js";
import { Reader } from "./reader.js";
import { counted, found } from "./sentences.js";
import { answers, countFields, listFields, listIndexes, Refused, Unreachable } from "./service.js";

const RETRY_MS = 1000;
const SLOW_MS = 4000; // after this the page says that it still waits
const FACETS = 20; // fields that the service counts at once
const FRESH_MS = 10_000; // fields and sizes are asked for again after this, because an index can change

let state = readAddress(location.search);
let indexes = [];
let shown = null; // {state, answer} of the hits that are drawn
let typing = false; // the address of a question that is being typed replaces itself, so that Back skips its beginnings
let waiting = null;
let retry = null;
let refreshed = 0;
let isInTrouble = false; // whether the line above everything is about a service that does not answer

const question = byId("question");
const where = byId("where");
const list = byId("hits");
const asking = new Asking(show, explain, fail);
const chips = new Chips(choose);
const filters = new Filters(() => state.picks, (picks) => choose({ picks }), {
  changed: () => count(),
  read: async (field) => (await countFields(current().name, [{ field }]))[0],
  trouble: noticeTrouble,
});
const judging = new Judging((error) => noticeTrouble(error));
const reader = new Reader(() => state.open && leave());
const map = new MapView({
  open: (uri) => go({ open: uri, at: "" }),
  setArea: (area, named) => choose({ area, named }),
  pick: (picks) => choose({ picks: [...state.picks.filter(([field]) => field !== picks[0][0]), ...picks] }),
  remember: (view) => state.view === "map" && go({ at_map: view }, { replace: true }),
  trouble: noticeTrouble,
});

// the state

/** Change the state, its address, and what is shown. */
function go(changes, { replace = false } = {}) {
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

/** Close the document: the way back, where this page opened it. */
function leave() {
  if (history.state?.opened) history.back();
  else go({ open: "", at: "" }, { replace: true });
}

addEventListener("popstate", () => {
  const before = state;
  typing = false;
  state = readAddress(location.search);
  draw(before);
});

// drawing

/** Draw everything that is not an answer of the service, and ask for what is. */
function draw(before) {
  const isMap = state.view === "map";
  byId("search-view").hidden = isMap;
  byId("map-view").hidden = !isMap;
  for (const [id, view] of [["to-search", "search"], ["to-map", "map"]]) {
    byId(id).href = addressOf({ ...state, view, open: "", at: "" });
    if (state.view === view) byId(id).setAttribute("aria-current", "page");
    else byId(id).removeAttribute("aria-current");
  }
  const index = current();
  document.title = state.q.trim() ? `${state.q.trim()} – likewise` : "likewise";
  if (document.activeElement !== question || question.value.trim() !== state.q.trim()) question.value = state.q;
  if (document.activeElement !== where || where.value.trim() !== state.where.trim()) where.value = state.where;
  if (index) {
    byId("index").value = index.name;
    byId("map-index").textContent = index.name;
    const mode = modeOf(state, index);
    drawChoices(byId("with"), state, indexes, index);
    for (const box of document.querySelectorAll("#modes input")) {
      box.checked = box.value === mode;
      box.disabled = !index.model && box.value !== "words";
    }
  }
  chips.draw(state);
  if (before && before.index !== state.index) loadFields();
  else filters.sync();
  if (index && (!before || !asksTheSame(before, state) || retry !== null)) ask();
  drawMap(index);
  if (index && state.open) reader.show(index.name, state.open, state.at, hitOf(state));
  else reader.close();
}

const current = () => indexes.find(({ name }) => name === state.index) ?? (state.index ? null : indexes[0]) ?? null;

function hitOf({ open, at }) {
  return shown?.answer.hits.find((hit) => hit.uri === open && `${hit.start}-${hit.end}` === at) ?? null;
}

function drawMap(index) {
  if (!index || state.view !== "map") return;
  byId("map-within").hidden = !state.area;
  byId("map-within").href = addressOf({ ...state, view: "search" });
  const filter = bodyOf({ ...state, q: "" });
  map.show(index.name, state, state.q.trim() ? bodyOf(state) : null, { where: filter.where, area: filter.area });
}

let fields = [];
let fieldsOf = ""; // the index whose fields are shown
let askedCounts = ""; // what the counts at the fields were asked for

/** Count the values of the fields that are shown, each under all conditions but those on the field itself. */
async function count() {
  const index = current();
  const area = state.area ?? undefined;
  const facets = filters.shown.map((field) => ({ field, where: filterOf(state, field), area }));
  const asked = JSON.stringify([index?.name, facets, index?.documents]);
  if (index?.name !== fieldsOf || !facets.length || asked === askedCounts || !byId("filters").open) return;
  askedCounts = asked;
  try {
    const found = [];
    for (let at = 0; at < facets.length; at += FACETS) found.push(...await countFields(index.name, facets.slice(at, at + FACETS)));
    if (asked === askedCounts) filters.count(found);
  } catch (error) {
    askedCounts = "";
    if (!(error instanceof Refused)) noticeTrouble(error); // a condition that is being typed is refused with the question
  }
}

async function loadFields() {
  const index = current();
  if (!index) return;
  try {
    const listed = await listFields(index.name);
    if (current()?.name !== index.name) return;
    if (fieldsOf === index.name && JSON.stringify(listed) === JSON.stringify(fields)) return;
    [fields, fieldsOf] = [listed, index.name];
    map.offerFields(fields.fields, index.documents);
    filters.draw(fields, index.documents);
    askedCounts = "";
    count();
  } catch (error) {
    noticeTrouble(error);
  }
}

/** Ask for sizes and fields again, from time to time: the index may have changed, or been replaced. */
async function refresh() {
  if (Date.now() - refreshed < FRESH_MS) return;
  refreshed = Date.now();
  try {
    indexes = await listIndexes();
    await loadFields();
    if (!state.q.trim()) drawAbout();
  } catch (error) {
    noticeTrouble(error);
  }
}

// asking

function ask() {
  const index = current();
  stopWaiting();
  if (!state.q.trim() || state.view === "map") {
    asking.cancel();
    shown = null;
    list.replaceChildren();
    list.dataset.question = "";
    byId("comparison").hidden = true;
    byId("more").hidden = true;
    byId("notices").replaceChildren();
    byId("where-error").textContent = "";
    drawAbout();
    count();
    return;
  }
  waiting = setTimeout(() => warn("The service has not answered yet; still waiting."), SLOW_MS);
  asking.ask({ ...state, index: index.name }, otherOf(state, indexes, index), typing);
}

function explain(answer) {
  if (shown) shown.answer = answer;
  addSentences(list, answer.hits);
  judging.show(current().name, list.dataset.question);
}

function show(asked, answer, compared) {
  stopWaiting();
  recovered();
  const filtered = Boolean(asked.where.trim() || asked.picks.length || asked.area);
  shown = { state: asked, answer };
  byId("about").hidden = true;
  byId("where-error").textContent = "";
  where.removeAttribute("aria-invalid");
  byId("status").textContent = found(answer.hits.length, answer.matched, filtered);
  drawNotices(answer);
  count();
  if (compared) compare(asked, answer, compared);
  byId("comparison").hidden = !compared;
  list.hidden = Boolean(compared);
  drawHits(list, compared ? [] : answer.hits, {
    href: (hit) => addressOf({ ...state, open: hit.uri, at: `${hit.start}-${hit.end}` }),
    open,
    copyLink: (hit) => copy(linkTo(hit.uri, `${hit.start}-${hit.end}`), "Link copied"),
    copyText: (hit) => copy(`${hit.text}\n\n${[hit.title, hit.uri].filter(Boolean).join(", ")}`, "Text copied"),
    pick: (field, value) => choose({ picks: [...state.picks.filter((pick) => !samePick(pick, [field, "=", value])), [field, "=", value]] }),
  });
  list.dataset.question = asked.q.trim();
  byId("more").hidden = answer.hits.length < asked.k || answer.hits.length >= answer.matched || asked.k >= 200;
  refresh();
}

function compare(asked, answer, compared) {
  const index = current();
  const other = otherOf(asked, indexes, index);
  const sameIndex = other.index === index.name;
  const at = (hit) => `${hit.start}-${hit.end}`;
  byId("status").textContent = drawComparison(byId("comparison"), [
    {
      label: sameIndex ? { hybrid: "Both", dense: "Meaning", words: "Words" }[answer.mode] : index.name,
      hits: answer.hits,
      href: (hit) => addressOf({ ...state, open: hit.uri, at: at(hit) }),
      open,
    },
    {
      label: other.label,
      hits: compared.hits,
      href: (hit) => addressOf({ ...state, index: other.index, with: `index=${index.name}`, open: hit.uri, at: at(hit) }),
      open: sameIndex ? open : null, // a document of the other index is shown from there
    },
  ]);
}

function drawNotices(answer) {
  const notices = answer.notes.map((note) => element("p", { className: "note" }, note));
  if (answer.answered === false && answer.hits.length) {
    notices.unshift(element("div", { className: "unanswered", role: "status" },
      element("p", {}, element("strong", {}, "Nothing here seems to answer this.")),
      element("p", {}, "These are the nearest passages there are, but they are no nearer than the best hits of unrelated questions usually are.")));
  }
  byId("notices").replaceChildren(...notices);
}

function drawAbout() {
  const index = current();
  if (!index) return;
  byId("status").textContent = "";
  byId("about").replaceChildren(
    element("p", { className: "size" }, `${counted(index.documents, "document")} in ${counted(index.passages, "passage")}`),
    element("p", {}, index.model ? `Embedded with ${index.model}.` : "With vectors of its own: this page searches them by words."),
    element("p", {}, "Ask a question, or describe what you are looking for. Hits appear while you type."),
    element("p", { className: "hint" }, element("kbd", {}, "/"), " comes back to the question, ", element("kbd", {}, "?"), " shows every key."));
  byId("about").hidden = false;
}

function open(hit) {
  typing = false;
  const before = state;
  state = { ...state, open: hit.uri, at: `${hit.start}-${hit.end}` };
  writeAddress({ inside: true, opened: true });
  draw(before);
}

// trouble

function fail(asked, error) {
  stopWaiting();
  if (!(error instanceof Refused)) {
    noticeTrouble(error);
    return;
  }
  recovered();
  if (error.status === 503) {
    warn(error.message);
    again((error.retryAfter || 1) * 1000);
  } else if (["bad-filter", "unknown-field"].includes(error.slug) && asked.where.trim()) {
    // The hits stay: a condition is wrong for as long as it is being typed.
    byId("where-error").textContent = error.message.replace(/^filter: /, "");
    where.setAttribute("aria-invalid", "true");
    byId("filters").open = true;
  } else {
    shown = null;
    list.replaceChildren();
    list.dataset.question = asked.q.trim();
    byId("comparison").hidden = true;
    byId("more").hidden = true;
    byId("about").hidden = true;
    byId("status").textContent = "";
    byId("notices").replaceChildren(element("p", { className: "error" }, error.message));
  }
}

function noticeTrouble(error) {
  if (error instanceof Unreachable) {
    warn("The service does not answer; trying again.");
    again(RETRY_MS);
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
        if (!state.q.trim()) refresh().then(recovered);
      } else start();
    } else again(RETRY_MS);
  }, pause);
}

function recovered() {
  clearTimeout(retry);
  retry = null;
  if (isInTrouble) byId("trouble").hidden = true;
  isInTrouble = false;
}

function stopWaiting() {
  clearTimeout(waiting);
  waiting = null;
}

/** Show above everything that the service does not answer, until it does. */
function warn(message) {
  isInTrouble = true;
  byId("trouble").textContent = message;
  byId("trouble").hidden = false;
}

// copying

const linkTo = (uri, at) => new URL(addressOf({ ...state, index: current().name, open: uri, at }), location.href).href;

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
  question.addEventListener("input", () => type({ q: question.value, k: EMPTY.k, open: "", at: "" }));
  question.addEventListener("blur", () => { typing = false; });
  where.addEventListener("input", () => type({ where: where.value, k: EMPTY.k }));
  where.addEventListener("blur", () => { typing = false; });
  byId("modes").addEventListener("change", (event) => choose({ mode: event.target.value }));
  byId("index").addEventListener("change", (event) => choose({ index: event.target.value, where: "", picks: [], area: null }));
  byId("with").addEventListener("change", (event) => choose({ with: event.target.value, k: state.k }));
  byId("more").addEventListener("click", async () => {
    list.lastElementChild?.querySelector("a.title").focus();
    go({ k: state.k + EMPTY.k }, { replace: true });
  });
  for (const [id, view] of [["to-search", "search"], ["to-map", "map"]]) {
    byId(id).addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      choose({ view, k: state.k });
      if (view === "search") question.focus();
    });
  }
  byId("reader-link").addEventListener("click", () => copy(linkTo(state.open, state.at), "Link copied"));
  byId("open-help").addEventListener("click", () => byId("help").showModal());
  byId("help-close").addEventListener("click", () => byId("help").close());
  byId("help").addEventListener("click", (event) => event.target === byId("help") && byId("help").close());
  const wide = matchMedia("(min-width: 60rem)");
  const unfold = () => { byId("filters").open = wide.matches || state.picks.length > 0 || Boolean(state.where); };
  wide.addEventListener("change", unfold);
  byId("filters").addEventListener("toggle", () => count());
  unfold();
  listenToKeys({ commit: () => { typing = false; } });
}

async function start() {
  try {
    indexes = await listIndexes();
  } catch (error) {
    noticeTrouble(error);
    return;
  }
  recovered();
  refreshed = Date.now();
  byId("index").replaceChildren(...indexes.map(({ name }) => element("option", { value: name }, name)));
  if (!current()) {
    byId("trouble").textContent = `No index ${state.index} is served here.`;
    byId("trouble").hidden = false;
    state = { ...state, index: "", open: "", at: "" };
  }
  draw(null);
  loadFields();
  if (!state.open && state.view === "search" && matchMedia("(hover: hover)").matches) question.focus();
}

question.value = state.q;
listen();
start();
