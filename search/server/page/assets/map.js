// The view of the map: what it shows, and what keys and pointers do in it.

import { byId, element } from "./element.js";
import { divides } from "./groups.js";
import { areaOf, nameOf, Picture, PALETTES } from "./picture.js";
import { counted } from "./sentences.js";
import { getColours, getMap, getMatching, getPlaces, nameDocuments, Refused, search } from "./service.js";

const HITS = 10;
const LISTED = 20; // documents of an area that are listed
const LASSO_CORNERS = 200; // fewer than the service allows, and more than a hand draws
const REMEMBER_MS = 400; // after a movement, until it is in the address
const STEP = 60; // CSS pixels that an arrow key moves the map

/** Return what a document is called in a list. */
const titleOf = (document_) => document_.title.trim() || document_.text.slice(0, 80) || document_.uri;

export class MapView {
  #index = "";
  #asked = "";
  #request = null;
  #isLassoing = false;
  #pointers = new Map();
  #moved = 0;
  #filtered = "";
  #remembering = null;
  #hovered = -1;

  /**
   * @param {Object} actions `open(uri)`, `setArea(corners or null, name)`, `remember(view)`, `pick(picks)` and `trouble(error)`
   */
  constructor(actions) {
    this.actions = actions;
    this.canvas = byId("map-canvas");
    this.picture = new Picture(this.canvas, (points) => this.#fetchTitles(points));
    this.#listen();
  }

  /**
   * Show the map of an index, with the hits of the question, the filters and the area of the state.
   * @param {?Object} asked the question as the service gets it
   * @param {Object} filter `where` and `area` of the state
   */
  async show(index, state, asked, filter) {
    this.picture.lasso = state.area;
    if (index !== this.#index) await this.#load(index, state.at_map);
    if (this.#index === index && this.picture.count) {
      await Promise.all([this.#filter(index, filter), this.#ask(index, asked, state.at_map)]);
      if (!asked) await this.#listArea(state);
    }
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
      this.picture.colours = null;
      this.picture.setPlaces(places, described.regions);
      if (view) this.picture.show(...view.split("_").map(Number));
      byId("map-size").textContent = described.outdated
        ? `${counted(described.documents, "document")}; a quarter or more has changed since the map was drawn`
        : counted(described.documents, "document");
      this.canvas.setAttribute("aria-label", `Map of ${counted(described.documents, "document")}. The regions are listed beside it.`);
      this.#listRegions(described.regions);
    } catch (error) {
      this.picture.setPlaces(new Float32Array(), []);
      this.#index = "";
      if (!(error instanceof Refused && error.slug === "no-map")) this.actions.trouble(error);
      byId("map-none").hidden = false;
    }
  }

  /** Offer the fields by which points can be coloured. */
  offerFields(fields, documents) {
    const usable = fields.filter((field) => field.name !== "path" && divides(field, documents));
    const chosen = byId("map-colour").value;
    byId("map-colour").replaceChildren(element("option", { value: "" }, "region"),
      ...usable.map(({ name }) => element("option", { value: name }, name)));
    byId("map-colour").value = usable.some(({ name }) => name === chosen) ? chosen : "";
  }

  #listRegions(regions) {
    const largest = regions.filter((region) => region.level === 0);
    const rows = largest.map((region, at) => element("li", {}, element("button", {
      type: "button",
      on: { click: () => this.#choose(region) },
    }, element("span", { className: `swatch colour-${at}`, aria: { hidden: "true" } }), ` ${nameOf(region)}`,
    element("span", { className: "count" }, region.documents.toLocaleString("en")))));
    const order = largest.map((region, at) => [region.documents, rows[at]]).sort(([one], [other]) => other - one);
    byId("map-regions").replaceChildren(...order.map(([, row]) => row));
  }

  /** Make a region the filter, and show it. */
  #choose(region) {
    const area = areaOf(region, this.picture.regions);
    this.picture.showAll(area);
    this.actions.setArea(area, nameOf(region));
  }

  /** Dim the points that the filters leave out. */
  async #filter(index, filter) {
    const asked = JSON.stringify(filter);
    if (asked === this.#filtered) return;
    this.#filtered = asked;
    this.picture.matching = null;
    if (!filter.where && !filter.area) return;
    try {
      const matching = await getMatching(index, filter);
      if (asked === this.#filtered && index === this.#index) this.picture.matching = matching;
    } catch (error) {
      if (!(error instanceof Refused)) this.actions.trouble(error); // a condition that is being typed
    }
  }

  /** Light the hits of a question, and show the part of the map with them. */
  async #ask(index, body, view) {
    const asked = JSON.stringify(body);
    if (asked === this.#asked) return;
    const isFirst = !this.#asked && view;
    this.#asked = asked;
    this.#request?.abort();
    this.picture.hits = [];
    this.#list("Hits", []);
    if (!body) return;
    this.#request = new AbortController();
    const { signal } = this.#request;
    try {
      const answer = await search(index, { ...body, k: HITS, explain: false, passages: false, fields: ["uri"] }, signal);
      const placed = await nameDocuments(index, { uris: answer.hits.map((hit) => hit.uri) }, signal);
      const points = new Map(placed.map((each) => [each.uri, each]));
      const hits = answer.hits.map((hit) => points.get(hit.uri)).filter((each) => each && each.point !== null);
      for (const hit of hits) this.picture.titles.set(hit.point, hit);
      this.picture.hits = hits.map((hit) => hit.point);
      this.#list("Hits", hits);
      if (!isFirst) this.picture.showAll(this.picture.hits.map((point) => this.#placeOf(point)));
      this.picture.draw();
    } catch (error) {
      if (!signal.aborted) this.actions.trouble(error);
    }
  }

  /** List the documents of the area that are nearest to its middle. */
  async #listArea({ area, named }) {
    const { matching, count } = this.picture;
    if (!area || !matching) return this.#list("", []);
    const middle = [0, 1].map((axis) => area.reduce((sum, corner) => sum + corner[axis], 0) / area.length);
    const distance = (point) => Math.hypot(...this.#placeOf(point).map((value, axis) => value - middle[axis]));
    const points = Array.from({ length: count }, (_, point) => point).filter((point) => matching[point]);
    const nearest = points.sort((one, other) => distance(one) - distance(other)).slice(0, LISTED);
    if (nearest.some((point) => !this.picture.titles.get(point))) await this.#fetchTitles(nearest);
    const documents = nearest.map((point) => this.picture.titles.get(point)).filter(Boolean);
    return this.#list(`${named || "The area"}: ${counted(points.length, "document")}`, documents);
  }

  #placeOf = (point) => [this.picture.places[2 * point], this.picture.places[2 * point + 1]];

  #list(title, documents) {
    byId("map-listed").hidden = !documents.length;
    byId("map-listed-title").textContent = title;
    byId("map-like").onclick = () => this.actions.likeThese(documents);
    byId("map-documents").replaceChildren(...documents.map((each) => element("li", {}, element("button", {
      type: "button",
      dir: "auto",
      on: { click: () => this.actions.open(each.uri) },
    }, titleOf(each)))));
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
    this.picture.colours = null;
    this.picture.isScale = false;
    if (field) {
      try {
        const { values, colours, scale } = await getColours(index, field);
        if (byId("map-colour").value !== field || index !== this.#index) return;
        this.picture.colours = colours;
        this.picture.isScale = scale;
        const last = PALETTES.light.length - 1;
        const items = values.map(({ value, from, to }, at) => {
          const picks = from === null ? [[field, "=", value]] : [[field, ">=", from], [field, "<=", to]];
          return element("button", { type: "button", on: { click: () => this.actions.pick(picks) } },
            element("span", { className: `swatch ${scale ? "scale" : "colour"}-${at}`, aria: { hidden: "true" } }), String(value));
        });
        items.push(element("span", {}, element("span", { className: `swatch colour-${last}`, aria: { hidden: "true" } }), "other"));
        byId("map-legend").replaceChildren(...items.map((item) => element("li", {}, item)));
      } catch (error) {
        this.actions.trouble(error);
      }
    }
    this.picture.draw();
  }

  // keys and pointers

  #listen() {
    const { canvas, picture } = this;
    byId("map-colour").addEventListener("change", (event) => this.#colour(event.target.value));
    byId("map-reset").addEventListener("click", () => picture.reset());
    byId("map-in").addEventListener("click", () => picture.zoomAt(1.6, canvas.clientWidth / 2, canvas.clientHeight / 2));
    byId("map-out").addEventListener("click", () => picture.zoomAt(1 / 1.6, canvas.clientWidth / 2, canvas.clientHeight / 2));
    byId("map-lasso").addEventListener("click", () => this.#setLassoing(!this.#isLassoing));
    byId("map-save").addEventListener("click", () => this.#save());
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
    canvas.addEventListener("pointerleave", () => { this.#hovered = -1; byId("map-card").hidden = true; });
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
    const before = this.#pointers.get(event.pointerId);
    const now = [event.offsetX, event.offsetY];
    if (!before) {
      this.#hover(event);
      return;
    }
    this.#moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (this.#isLassoing) {
      this.picture.lasso.push(this.picture.placeAt(...now));
      this.picture.draw();
    } else if (this.#pointers.size === 1) {
      this.picture.pan(now[0] - before[0], now[1] - before[1]);
    } else {
      const [other] = [...this.#pointers].filter(([id]) => id !== event.pointerId).map(([, position]) => position);
      const apart = (one) => Math.hypot(one[0] - other[0], one[1] - other[1]);
      this.picture.zoomAt(apart(now) / Math.max(1, apart(before)), other[0], other[1]);
    }
    this.#pointers.set(event.pointerId, now);
  }

  async #up(event) {
    const wasDown = this.#pointers.delete(event.pointerId);
    if (!wasDown) return;
    if (this.#isLassoing) {
      const corners = this.picture.lasso;
      this.#setLassoing(false);
      const step = Math.ceil(corners.length / LASSO_CORNERS);
      const kept = corners.filter((_, at) => at % step === 0).map((corner) => corner.map((value) => Number(value.toFixed(4))));
      this.actions.setArea(kept.length >= 3 ? kept : null, "");
    } else if (this.#moved < 4) {
      const point = this.picture.pointAt(event.offsetX, event.offsetY);
      const region = this.picture.regionNamedAt(event.offsetX, event.offsetY);
      if (point < 0 && region) this.#choose(region);
      if (point < 0) return;
      if (!this.picture.titles.get(point)) await this.#fetchTitles([point]);
      const document_ = this.picture.titles.get(point);
      if (document_) this.actions.open(document_.uri);
    }
  }

  /** Show a card with the document under the pointer. */
  async #hover(event) {
    const [px, py] = [event.offsetX, event.offsetY];
    const point = this.picture.pointAt(px, py);
    const card = byId("map-card");
    this.canvas.classList.toggle("pointing", point >= 0 || Boolean(this.picture.regionNamedAt(px, py)));
    this.#hovered = point;
    if (point >= 0 && !this.picture.titles.has(point)) await this.#fetchTitles([point]);
    const known = this.#hovered === point && point >= 0 ? this.picture.titles.get(point) : null;
    card.hidden = !known;
    if (!known) return;
    card.replaceChildren(element("strong", { dir: "auto" }, known.title.trim() || known.uri), element("span", { dir: "auto" }, known.text));
    const right = px > this.canvas.clientWidth / 2;
    const low = py > this.canvas.clientHeight / 2;
    card.style.inset = `${low ? "auto" : `${py + 14}px`} ${right ? `${this.canvas.clientWidth - px + 14}px` : "auto"} ${low ? `${this.canvas.clientHeight - py + 14}px` : "auto"} ${right ? "auto" : `${px + 14}px`}`;
  }

  async #save() {
    const address = URL.createObjectURL(await this.picture.toFile());
    element("a", { href: address, download: `${this.#index}-map.png` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  #key(event) {
    const { picture, canvas } = this;
    const middle = [canvas.clientWidth / 2, canvas.clientHeight / 2];
    const keys = {
      ArrowLeft: () => picture.pan(STEP, 0),
      ArrowRight: () => picture.pan(-STEP, 0),
      ArrowUp: () => picture.pan(0, STEP),
      ArrowDown: () => picture.pan(0, -STEP),
      "+": () => picture.zoomAt(1.6, ...middle),
      "=": () => picture.zoomAt(1.6, ...middle),
      "-": () => picture.zoomAt(1 / 1.6, ...middle),
      0: () => picture.reset(),
    };
    if (event.ctrlKey || event.metaKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }
}
