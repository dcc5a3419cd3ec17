// The view of the map: what it shows, and what keys and pointers do.

import { button, byId, element } from "./element.js";
import { groupsOf, nameOf } from "./groups.js";
import { entryOf, titleOf } from "./hits.js";
import { inkOf, OTHER, Picture, regionName } from "./picture.js";
import { counted, shownValue } from "./sentences.js";
import { getColours, getMap, getMatching, getPlaces, nameDocuments, Refused, search } from "./service.js";

const HITS = 10;
const LISTED = 20; // documents of an area that are listed
const LASSO_CORNERS = 200; // fewer than the service allows, and more than a hand draws
const REMEMBER_MS = 400; // after a movement, until it is in the address
const STEP = 60; // CSS pixels that an arrow key moves the map

const placeOf = ({ places }, point) => [places[2 * point], places[2 * point + 1]];

const swatch = (background) => element("span", { className: "swatch", aria: { hidden: "true" }, style: `background: ${background}` });

export class MapView {
  #index = "";
  #asked = "";
  #answer = null; // to what was asked
  #request = null;
  #isLassoing = false;
  #pointers = new Map();
  #moved = 0;
  #filtered = "";
  #remembering = null;
  #hovered = -1;
  #isFitting = false; // whether to show all of the region that was chosen

  /** `actions`: `open(uri)`, `href(uri)`, `setArea(corners or null, name)`, `remember(view)`, `pick(picks)`, `answered(answer)`, `trouble(error)`. */
  constructor(actions) {
    this.actions = actions;
    this.canvas = byId("map-canvas");
    this.picture = new Picture(this.canvas, (points) => this.#fetchTitles(points));
    this.#listen();
  }

  /** Show the map of an index with the hits of a question (as the service gets it, or null), and the filter and area of the state. */
  async show({ name: index }, state, asked, filter) {
    if (!this.#isLassoing || !this.#pointers.size) { // otherwise an area is being drawn
      this.picture.lasso = state.area;
      this.picture.isOfRegion = Boolean(state.named);
    }
    if (index !== this.#index) await this.#load(index, state.at_map);
    if (this.#index === index && this.picture.count) {
      await Promise.all([this.#filter(index, filter), this.#ask(index, asked, state.at_map)]);
      this.actions.answered(this.#answer);
      const { matching } = this.picture;
      if (matching && this.#isFitting) this.picture.showAll(Array.from(matching.keys()).filter((point) => matching[point]).map((point) => placeOf(this.picture, point)));
      this.#isFitting = false;
      if (!asked) await this.#listArea(state);
    }
    this.picture.draw();
  }

  /** Change members of the picture, and draw it. */
  #set(members) {
    Object.assign(this.picture, members);
    this.picture.draw();
  }

  async #load(index, view) {
    this.#index = index;
    this.#asked = "";
    this.#filtered = "";
    byId("map-none").hidden = true;
    byId("map-some").hidden = true;
    try {
      const [described, places] = await Promise.all([getMap(index), getPlaces(index)]);
      if (this.#index !== index) return;
      byId("map-some").hidden = false;
      this.#set({ colours: null, isScale: false });
      this.picture.titles.clear();
      this.picture.setPlaces(places, described.regions);
      if (view) this.picture.show(...view.split("_").map(Number));
      byId("map-size").textContent = described.outdated
        ? `${counted(described.documents, "document")}; a quarter or more has changed since the map was drawn`
        : counted(described.documents, "document");
      this.canvas.setAttribute("aria-label", `Map of ${counted(described.documents, "document")}. The regions are listed beside it.`);
      this.#listRegions();
    } catch (error) {
      this.picture.setPlaces(new Float32Array(), []);
      this.#index = "";
      if (!(error instanceof Refused && error.slug === "no-map")) this.actions.trouble(error);
      byId("map-none").hidden = false;
    }
  }

  /** Offer the fields by which points can be coloured. */
  offerFields(fields, documents) {
    const usable = groupsOf(fields, documents).filter(({ name }) => name !== "path");
    const chosen = byId("map-colour").value;
    byId("map-colour").replaceChildren(element("option", { value: "" }, "region"),
      ...usable.map(({ name }) => element("option", { value: name }, nameOf(name))));
    byId("map-colour").value = usable.some(({ name }) => name === chosen) ? chosen : "";
  }

  /** List the largest regions with how many of their documents pass the filters; with colours, if points have these. */
  #listRegions() {
    const { regions, regionOf, matching, count, colours } = this.picture;
    const passing = new Uint32Array(256);
    for (let point = 0; point < count; point += 1) passing[regionOf[point]] += matching ? matching[point] : 1;
    const largest = regions.filter((region) => region.level === 0);
    const rows = largest.map((region, at) => {
      const row = button(element("span", { dir: "auto" }, regionName(region)), () => this.#choose(region));
      if (!colours) row.prepend(swatch(inkOf(Math.min(at, OTHER))));
      const all = region.documents.toLocaleString("en");
      row.append(" ", element("span", { className: "count", dir: "ltr" }, matching ? `${passing[at].toLocaleString("en")} of ${all}` : all));
      return element("li", {}, row);
    });
    const order = largest.map((region, at) => [region.documents, rows[at]]).sort(([one], [other]) => other - one);
    byId("map-regions").parentElement.hidden = !rows.length;
    byId("map-regions").replaceChildren(...order.map(([, row]) => row));
  }

  /** Make a region the filter, and show it. */
  #choose(region) {
    this.#isFitting = true;
    this.actions.setArea(region.area, regionName(region));
  }

  /** Dim the points that the filters leave out. */
  async #filter(index, filter) {
    const asked = JSON.stringify(filter);
    if (asked === this.#filtered) return;
    this.#filtered = asked;
    const matching = (filter.where || filter.area) && await getMatching(index, filter).catch(this.actions.trouble);
    if (asked !== this.#filtered || index !== this.#index) return;
    this.#set({ matching: matching || null });
    this.#listRegions();
  }

  /** Light the hits of a question, and show the part of the map with them. */
  async #ask(index, body, view) {
    const asked = JSON.stringify(body);
    if (asked === this.#asked) return;
    const isFirst = !this.#asked && view;
    this.#asked = asked;
    this.#request?.abort();
    this.#set({ hits: [] });
    this.#list("Hits", []);
    this.actions.answered(this.#answer = null);
    if (!body) return;
    this.#request = new AbortController();
    const { signal } = this.#request;
    try {
      const answer = await search(index, { ...body, k: HITS, explain: false, passages: false, fields: ["uri", "why", "family_size"] }, signal);
      this.#answer = answer;
      const placed = await nameDocuments(index, { uris: answer.hits.map((hit) => hit.uri) }, signal);
      const points = new Map(placed.map((each) => [each.uri, each]));
      const hits = answer.hits.map((hit) => ({ point: null, ...points.get(hit.uri), isWeak: hit.why.weak && answer.answered !== false }))
        .filter(({ point }) => point !== null);
      for (const hit of hits) this.picture.titles.set(hit.point, hit);
      this.#set({ hits: hits.map((hit) => hit.point), weak: new Set(hits.filter((hit) => hit.isWeak).map((hit) => hit.point)) });
      this.#list("Hits", hits);
      if (!isFirst) this.picture.showAll(this.picture.hits.map((point) => placeOf(this.picture, point)));
    } catch (error) {
      if (!signal.aborted) this.actions.trouble(error);
    }
  }

  /** List the documents of the area that are nearest to its middle. */
  async #listArea({ area, named }) {
    const { matching, count } = this.picture;
    if (!area || !matching) return this.#list("", []);
    const middle = [0, 1].map((axis) => area.reduce((sum, corner) => sum + corner[axis], 0) / area.length);
    const distance = (point) => Math.hypot(...placeOf(this.picture, point).map((value, axis) => value - middle[axis]));
    const points = Array.from({ length: count }, (_, point) => point).filter((point) => matching[point]);
    const nearest = points.sort((one, other) => distance(one) - distance(other)).slice(0, LISTED);
    if (nearest.some((point) => !this.picture.titles.get(point))) await this.#fetchTitles(nearest);
    const documents = nearest.map((point) => this.picture.titles.get(point)).filter(Boolean);
    return this.#list(`${named || "The area"}: ${counted(points.length, "document")}`, documents);
  }

  #list(title, documents) {
    byId("map-listed").hidden = !documents.length;
    byId("map-listed-title").textContent = title;
    byId("map-documents").replaceChildren(...documents.map((each) => entryOf(each, this.actions.href(each.uri), () => this.actions.open(each.uri))));
    if (title === "Hits") byId("map-documents").querySelectorAll("a").forEach((link, at) => link.prepend(`${at + 1}. `));
  }

  async #fetchTitles(points) {
    const asked = points.slice(0, 300);
    for (const point of asked) this.picture.titles.set(point, null); // asked for once
    try {
      for (const each of await nameDocuments(this.#index, { points: asked })) this.picture.titles.set(each.point, each);
      this.picture.draw();
    } catch (error) {
      this.actions.trouble(error);
    }
  }

  async #colour(field) {
    const index = this.#index;
    byId("map-legend").replaceChildren();
    this.#set({ colours: null, isScale: false });
    this.#listRegions();
    if (!field) return;
    const { values, colours, scale } = await getColours(index, field);
    if (byId("map-colour").value !== field || index !== this.#index) return;
    this.#set({ colours, isScale: scale });
    this.#listRegions();
    const items = values.map(({ value, from, to }, at) => {
      const picks = from === null ? [[field, "=", value]] : [[field, ">=", from], [field, "<=", to]];
      const entry = button(shownValue(value), () => this.actions.pick(picks));
      entry.prepend(swatch(inkOf(at, scale)));
      return entry;
    });
    items.push(element("span", {}, swatch(inkOf(OTHER)), "other"));
    byId("map-legend").replaceChildren(...items.map((item) => element("li", {}, item)));
  }

  // keys and pointers

  #listen() {
    const { picture, canvas } = this;
    byId("map-colour").addEventListener("change", (event) => this.#colour(event.target.value).catch(this.actions.trouble));
    byId("map-reset").addEventListener("click", () => picture.reset());
    byId("map-in").addEventListener("click", () => picture.zoomBy(1.6));
    byId("map-out").addEventListener("click", () => picture.zoomBy(1 / 1.6));
    byId("map-lasso").addEventListener("click", () => this.#setLassoing(!this.#isLassoing));
    picture.moved = () => {
      clearTimeout(this.#remembering);
      this.#remembering = setTimeout(() => this.actions.remember([...picture.center, picture.zoom].map((value) => value.toFixed(3)).join("_")), REMEMBER_MS);
    };
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      picture.zoomAt(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#up(event));
    canvas.addEventListener("pointerleave", () => {
      this.#hovered = -1;
      byId("map-card").hidden = true;
    });
    canvas.addEventListener("pointercancel", (event) => this.#pointers.delete(event.pointerId));
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #setLassoing(isOn) {
    this.#isLassoing = isOn;
    byId("map-lasso").setAttribute("aria-pressed", String(isOn));
    this.canvas.classList.toggle("lassoing", isOn);
  }

  #down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    this.#moved = 0;
    if (this.#isLassoing) this.picture.lasso = [this.picture.placeAt(event.offsetX, event.offsetY)];
  }

  #move(event) {
    const { picture } = this;
    const before = this.#pointers.get(event.pointerId);
    const now = [event.offsetX, event.offsetY];
    if (!before) {
      this.#hover(event);
      return;
    }
    this.#moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (this.#isLassoing) {
      picture.lasso.push(picture.placeAt(...now));
      picture.draw();
    } else if (this.#pointers.size === 1) {
      picture.pan(now[0] - before[0], now[1] - before[1]);
    } else {
      const [other] = [...this.#pointers].filter(([id]) => id !== event.pointerId).map(([, position]) => position);
      const apart = (one) => Math.hypot(one[0] - other[0], one[1] - other[1]);
      picture.zoomAt(apart(now) / Math.max(1, apart(before)), other[0], other[1]);
    }
    this.#pointers.set(event.pointerId, now);
  }

  async #up(event) {
    const { picture } = this;
    const wasDown = this.#pointers.delete(event.pointerId);
    if (!wasDown) return;
    if (this.#isLassoing) {
      const corners = picture.lasso;
      this.#setLassoing(false);
      const step = Math.ceil(corners.length / LASSO_CORNERS);
      const kept = corners.filter((_, at) => at % step === 0).map((corner) => corner.map((value) => Number(value.toFixed(4))));
      this.actions.setArea(kept.length >= 3 ? kept : null, "");
    } else if (this.#moved < 4) {
      const point = picture.pointAt(event.offsetX, event.offsetY);
      const region = picture.regionNamedAt(event.offsetX, event.offsetY);
      if (point < 0 && region) this.#choose(region);
      if (point < 0) return;
      if (!picture.titles.get(point)) await this.#fetchTitles([point]);
      const document_ = picture.titles.get(point);
      if (document_) this.actions.open(document_.uri);
    }
  }

  /** Show a card with the document under the pointer. */
  async #hover(event) {
    const { picture, canvas } = this;
    const [px, py] = [event.offsetX, event.offsetY];
    const point = picture.pointAt(px, py);
    const card = byId("map-card");
    canvas.classList.toggle("pointing", point >= 0 || Boolean(picture.regionNamedAt(px, py)));
    this.#hovered = point;
    if (point >= 0 && !picture.titles.has(point)) await this.#fetchTitles([point]);
    const known = this.#hovered === point && point >= 0 ? picture.titles.get(point) : null;
    card.hidden = !known;
    if (!known) return;
    card.replaceChildren(element("strong", { dir: "auto" }, titleOf(known)), element("span", { dir: "auto" }, known.text));
    const right = px > canvas.clientWidth / 2;
    const low = py > canvas.clientHeight / 2;
    card.style.inset = `${low ? "auto" : `${py + 14}px`} ${right ? `${canvas.clientWidth - px + 14}px` : "auto"} ${low ? `${canvas.clientHeight - py + 14}px` : "auto"} ${right ? "auto" : `${px + 14}px`}`;
  }

  #key(event) {
    const { picture } = this;
    const keys = {
      ArrowLeft: () => picture.pan(STEP, 0),
      ArrowRight: () => picture.pan(-STEP, 0),
      ArrowUp: () => picture.pan(0, STEP),
      ArrowDown: () => picture.pan(0, -STEP),
      "+": () => picture.zoomBy(1.6),
      "=": () => picture.zoomBy(1.6),
      "-": () => picture.zoomBy(1 / 1.6),
      0: () => picture.reset(),
    };
    if (event.ctrlKey || event.metaKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }
}
