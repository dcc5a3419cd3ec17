// The view of the map: what it shows, and what keys and pointers do in it.

import { byId, element } from "./element.js";
import { divides } from "./groups.js";
import { Picture, PALETTES } from "./picture.js";
import { counted } from "./sentences.js";
import { getColours, getMap, getPlaces, nameDocuments, Refused, search } from "./service.js";

const HITS = 30;
const LASSO_CORNERS = 200; // fewer than the service allows, and more than a hand draws
const STEP = 60; // CSS pixels that an arrow key moves the map

export class MapView {
  #index = "";
  #asked = "";
  #request = null;
  #isLassoing = false;
  #pointers = new Map();
  #moved = 0;

  /** @param {Object} actions `open(uri)`, `setArea(corners or null)` and `trouble(error)` */
  constructor(actions) {
    this.actions = actions;
    this.canvas = byId("map-canvas");
    this.picture = new Picture(this.canvas, (points) => this.#fetchTitles(points));
    this.#listen();
  }

  /** Show the map of an index, with the hits of the question and the area of the state. */
  async show(index, state, body) {
    this.picture.lasso = state.area;
    byId("map-clear").hidden = !state.area;
    if (index !== this.#index) await this.#load(index);
    if (this.#index === index && this.picture.count) await this.#ask(index, body);
    this.picture.draw();
  }

  /** Read everything again when it is shown next: another map may have been drawn. */
  forget() {
    this.#index = "";
  }

  async #load(index) {
    this.#index = index;
    this.#asked = "";
    byId("map-none").hidden = true;
    byId("map-some").hidden = true;
    try {
      const [described, places] = await Promise.all([getMap(index), getPlaces(index)]);
      if (this.#index !== index) return;
      byId("map-some").hidden = false;
      this.picture.regions = described.regions;
      this.picture.colours = null;
      this.picture.setPlaces(places);
      byId("map-size").textContent = described.outdated
        ? `${counted(described.documents, "document")}; a quarter or more has changed since the map was drawn`
        : counted(described.documents, "document");
      this.canvas.setAttribute("aria-label", `Map of ${counted(described.documents, "document")}. The regions are listed beside it.`);
      this.#listRegions(described.regions);
    } catch (error) {
      this.picture.setPlaces(new Float32Array());
      this.#index = "";
      if (!(error instanceof Refused && error.slug === "no-map")) this.actions.trouble(error);
      byId("map-none").hidden = false;
    }
  }

  /** Offer the fields by which points can be coloured. */
  offerFields(fields, documents) {
    const usable = fields.filter((field) => field.name !== "path" && divides(field, documents));
    const chosen = byId("map-colour").value;
    byId("map-colour").replaceChildren(element("option", { value: "" }, "one colour"),
      ...usable.map(({ name }) => element("option", { value: name }, name)));
    byId("map-colour").value = usable.some(({ name }) => name === chosen) ? chosen : "";
  }

  #listRegions(regions) {
    const largest = regions.filter((region) => region.level === 0).sort((one, other) => other.documents - one.documents);
    byId("map-regions").replaceChildren(...largest.map((region) => element("li", {}, element("button", {
      type: "button",
      on: { click: () => this.picture.show(region.x, region.y, 4) },
    }, region.terms.join(" · "), element("span", { className: "count" }, region.documents.toLocaleString("en"))))));
  }

  /** Mark the hits of a question, and put the question among them. */
  async #ask(index, body) {
    const asked = JSON.stringify(body);
    if (asked === this.#asked) return;
    this.#asked = asked;
    this.#request?.abort();
    this.picture.hits = [];
    this.picture.question = null;
    byId("map-hits").replaceChildren();
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
      this.picture.question = this.#placeOfQuestion(this.picture.hits.slice(0, 5));
      byId("map-hits").replaceChildren(...hits.slice(0, 10).map((hit) => element("li", {}, element("button", {
        type: "button",
        on: { click: () => this.actions.open(hit.uri) },
      }, hit.title.trim() || hit.uri))));
      this.picture.draw();
    } catch (error) {
      if (!signal.aborted) this.actions.trouble(error);
    }
  }

  /** Return the middle of the first hits: the question has no place of its own. */
  #placeOfQuestion(points) {
    if (!points.length) return null;
    const middle = (axis) => {
      const values = points.map((point) => this.picture.places[2 * point + axis]).sort((one, other) => one - other);
      return values[Math.floor(values.length / 2)];
    };
    return [middle(0), middle(1)];
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
    if (field) {
      try {
        const { values, colours } = await getColours(index, field);
        if (byId("map-colour").value !== field || index !== this.#index) return;
        this.picture.colours = colours;
        const names = [...values.map(({ value }) => String(value)), "other"];
        byId("map-legend").replaceChildren(...names.map((name, at) => {
          const colour = at < values.length ? at : PALETTES.light.length - 1;
          return element("li", {}, element("span", { className: `swatch colour-${colour}`, aria: { hidden: "true" } }), name);
        }));
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
    byId("map-clear").addEventListener("click", () => this.actions.setArea(null));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      picture.zoomAt(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#up(event));
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
      this.actions.setArea(kept.length >= 3 ? kept : null);
    } else if (this.#moved < 4) {
      const point = this.picture.pointAt(event.offsetX, event.offsetY);
      if (point < 0) return;
      if (!this.picture.titles.get(point)) await this.#fetchTitles([point]);
      const document_ = this.picture.titles.get(point);
      if (document_) this.actions.open(document_.uri);
    }
  }

  /** Say what is under the pointer. */
  async #hover(event) {
    const point = this.picture.pointAt(event.offsetX, event.offsetY);
    this.canvas.classList.toggle("pointing", point >= 0);
    if (point >= 0 && !this.picture.titles.has(point)) await this.#fetchTitles([point]);
    const known = point >= 0 ? this.picture.titles.get(point) : null;
    byId("map-under").textContent = known ? known.title.trim() || known.uri : "";
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
