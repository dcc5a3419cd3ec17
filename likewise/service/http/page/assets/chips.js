// The conditions that are in use, each of which can be removed: all at once too, and the last removal can be undone.

import { button, byId, element } from "./element.js";
import { lastPart, samePick } from "./conditions.js";
import { describePick } from "./filters.js";

const NOTHING = { where: "", picks: [], area: null, named: "", like: [], literal: false };

export class Chips {
  #removed = null; // what to choose to undo the last removal
  titles = new Map(); // of examples, by uri
  refusal = { where: "", message: "" }; // the typed condition that the service has answered last, and why it was refused

  /** @param {function(Object)} choose is given the members of the state to change. */
  constructor(choose) {
    this.choose = choose;
  }

  /** Forget the last removal: something else was chosen after it. */
  forget() {
    this.#removed = null;
  }

  titleOf(uri) {
    return this.titles.get(uri) ?? lastPart(uri);
  }

  draw(state) {
    const refused = this.refusal.where === state.where ? this.refusal.message : "";
    const conditions = [
      ...(state.where.trim() ? [[`${state.where.trim()}${refused && " is not used"}${refused && state.view === "map" ? `: ${refused}` : ""}`, { where: "" }]] : []),
      ...state.picks.map((pick) => [describePick(pick), { picks: state.picks.filter((other) => !samePick(other, pick)) }]),
      ...state.like.map((uri) => [`like ${this.titleOf(uri)}`, { like: state.like.filter((other) => other !== uri) }]),
      ...(state.literal ? [["the question as it stands", { literal: false }]] : []),
      ...(state.area ? [[state.named ? `region: ${state.named}` : "an area of the map", { area: null, named: "" }]] : []),
    ];
    const items = conditions.map(([text, without]) => this.#button(text, `Remove the filter: ${text}`, () => this.#remove(state, without), " ×"));
    if (conditions.length > 1) items.push(this.#button("Remove all", "Remove all filters", () => this.#remove(state, NOTHING)));
    if (this.#removed) items.push(this.#button("Undo", "Undo: use the filters again", () => this.choose(this.#removed)));
    const list = byId("picks");
    list.classList.toggle("refused", Boolean(refused));
    const held = list.contains(document.activeElement);
    list.replaceChildren(...items);
    list.hidden = !items.length;
    if (held) (list.querySelector("li:last-child button") ?? byId("question")).focus();
  }

  #remove(state, without) {
    this.choose(without);
    this.#removed = Object.fromEntries(Object.keys(without).map((name) => [name, state[name]]));
    this.draw({ ...state, ...without });
  }

  #button(text, label, click, mark = "") {
    const chip = button(element("span", { dir: "auto" }, text), click, { aria: { label } });
    if (mark) chip.append(element("span", { aria: { hidden: "true" } }, mark));
    return element("li", {}, chip);
  }
}
