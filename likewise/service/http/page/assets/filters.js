// Controls made of the fields that the documents have: frequent values to tick, and ranges with a histogram.

import { button, byId, element } from "./element.js";
import { lastPart, samePick } from "./conditions.js";
import { groupsOf, nameOf, rangeOf } from "./groups.js";
import { counted, shownValue } from "./sentences.js";

const VALUES = 8;
const FEW_MORE = 3; // values that are shown, too, if they are all that would be hidden
const OPEN_FIELDS = 3;
const LABEL = 48;
const FOUND_FIELDS = 12;

const shorten = (text) => (text.length > LABEL ? `${text.slice(0, LABEL)}…` : text);

/** Hide the last values of a long list, but never those that are chosen. */
function fold(list) {
  const items = [...list.children];
  const all = list.matches(".all") || items.length <= VALUES + FEW_MORE;
  items.forEach((item, at) => { item.hidden = !all && at >= VALUES && !item.querySelector(":checked"); });
  const hidden = items.filter((item) => item.hidden).length;
  const more = list.nextElementSibling;
  more.hidden = !hidden;
  more.textContent = `${hidden} more`;
}

/** Return what the chips of chosen conditions say. */
export function describePick([field, operator, value]) {
  const relation = { "=": "is", ">=": "from", "<=": "to", under: "is" }[operator];
  const isFile = field === "path" && operator === "=";
  return `${isFile ? "file" : nameOf(field)} ${relation} ${shorten(field === "path" ? lastPart(value) : shownValue(value))}`;
}

export class Filters {
  #fields = [];
  #rare = []; // names of fields that are listed without their values
  #documents = 0;
  #extra = new Set(); // fields that were found in the box
  #open = new Map();

  /** `picks()` and `choose(picks)` of all conditions; `actions`: `changed()` after new groups, `read(name, letters)` of a field, `trouble(error)`. */
  constructor(picks, choose, actions) {
    Object.assign(this, { picks, choose, actions });
    byId("find-field").addEventListener("input", () => this.#find());
  }

  /** The names of the fields that are shown. */
  get shown() {
    return [...byId("fields").querySelectorAll("details.field")].map((group) => group.dataset.field);
  }

  /** Draw the fields of an index, as the service lists them. */
  draw({ fields, rare }, documents) {
    this.#fields = fields;
    this.#rare = rare;
    this.#documents = documents;
    this.#drawGroups();
    this.#find();
    byId("more-fields").hidden = !byId("found-fields").childElementCount;
  }

  #drawGroups() {
    const groups = groupsOf(this.#fields, this.#documents);
    const chosen = new Set([...this.#extra, ...this.picks().map(([name]) => name)]);
    const shown = [...groups, ...this.#fields.filter((field) => chosen.has(field.name) && !groups.includes(field))];
    byId("fields").replaceChildren(...shown.map((field, at) => {
      const open = this.#open.get(field.name) ?? (at < OPEN_FIELDS || chosen.has(field.name));
      const group = element("details", { className: "field", open, dataset: { field: field.name } },
        element("summary", { title: counted(field.documents, "document"), dir: "auto" }, nameOf(field.name)),
        rangeOf(field) ? this.#drawRange(field) : this.#drawValues(field));
      group.addEventListener("toggle", () => this.#open.set(field.name, group.open));
      return group;
    }));
    this.sync();
  }

  /** Show in the controls which conditions are chosen now; the controls stay, and with them the focus. */
  sync() {
    const picks = this.picks();
    if (picks.some(([name]) => !this.shown.includes(name) && this.#fields.some((field) => field.name === name))) {
      this.#drawGroups();
      return;
    }
    for (const input of byId("fields").querySelectorAll("[data-pick]")) {
      const [field, operator, value] = JSON.parse(input.dataset.pick);
      if (input.type === "checkbox") input.checked = picks.some((pick) => samePick(pick, [field, operator, value]));
      else input.value = picks.find((pick) => pick[0] === field && pick[1] === operator)?.[2] ?? "";
    }
    byId("fields").querySelectorAll(".choices").forEach(fold);
  }

  /** Show the values that the documents have that the other filters leave, the most frequent first; nothing without `values`. */
  count(facets) {
    for (const { name, values, histogram } of facets) {
      const group = byId("fields").querySelector(`[data-field="${CSS.escape(name)}"]`);
      const list = group?.querySelector(".choices");
      if (list && !values) list.querySelectorAll(".number").forEach((number) => { number.textContent = ""; });
      else if (list?.previousElementSibling.value.trim()) this.#findValues(name, list).catch(this.actions.trouble);
      else if (list) this.#fill(name, list, values);
      const most = Math.max(...histogram, 1);
      group?.querySelector(".histogram")?.replaceChildren(...histogram.filter(() => histogram.some(Boolean)).map((count) => {
        const bar = element("span");
        bar.style.height = `${count ? Math.max(6, (100 * count) / most) : 0}%`;
        return bar;
      }));
    }
  }

  /** List the fields whose names have the letters in the box. */
  #find() {
    const asked = byId("find-field").value.trim().toLowerCase();
    const shown = new Set(this.shown);
    const found = [...this.#fields.filter(({ values }) => values.length > 1).map(({ name }) => name), ...this.#rare]
      .filter((name) => !shown.has(name) && nameOf(name).toLowerCase().includes(asked));
    byId("found-fields").replaceChildren(...found.slice(0, FOUND_FIELDS).map((name) => element("li", {},
      button(name, () => this.#add(name).catch(this.actions.trouble), { className: "plain", dir: "auto" }))));
    byId("no-field").textContent = found.length > FOUND_FIELDS ? `and ${found.length - FOUND_FIELDS} more`
      : found.length ? "" : "No other field has this name.";
  }

  async #add(name) {
    if (this.#rare.includes(name)) {
      const field = await this.actions.read(name);
      this.#rare = this.#rare.filter((other) => other !== name);
      this.#fields.push(field);
    }
    this.#extra.add(name);
    this.#drawGroups();
    this.#find();
    this.actions.changed();
    byId("fields").lastElementChild.querySelector("summary").focus();
  }

  #drawValues({ name, values }) {
    const box = element("input", {
      type: "search",
      className: "find",
      autocomplete: "off",
      placeholder: "Find a value",
      aria: { label: `Find a value of ${nameOf(name)}` },
      on: { input: () => this.#findValues(name, list).catch(this.actions.trouble) },
    });
    const list = element("ul", { className: "choices" });
    const showAll = () => {
      const first = list.querySelector("[hidden] input");
      list.classList.add("all");
      fold(list);
      first.focus();
    };
    const group = element("div", {}, box, list, button("", showAll, { className: "plain" }));
    this.#fill(name, list, values);
    return group;
  }

  /** List the values of a field with the letters in its box. */
  async #findValues(name, list) {
    const asked = list.previousElementSibling.value.trim();
    const { values } = await this.actions.read(name, asked);
    const has = ({ value }) => (name === "path" ? lastPart(value) : shownValue(value)).toLowerCase().includes(asked.toLowerCase());
    if (asked === list.previousElementSibling.value.trim()) this.#fill(name, list, (values ?? []).filter(has));
  }

  /** List values of a field, and those that are chosen. Without a change the controls stay, and with them the focus. */
  #fill(name, list, values) {
    const operator = name === "path" ? "under" : "=";
    const box = list.previousElementSibling;
    const isListed = (picked) => values.some(({ value }) => value === picked);
    const chosen = this.picks().filter((pick) => pick[0] === name && pick[1] === operator && !isListed(pick[2]));
    const listed = [...values, ...chosen.map(([, , value]) => ({ value, documents: 0 }))];
    if (list.dataset.listed === JSON.stringify(listed)) return;
    list.dataset.listed = JSON.stringify(listed);
    box.hidden = !box.value && listed.length <= VALUES;
    const held = list.contains(document.activeElement) && document.activeElement.dataset.pick;
    const draw = (value) => {
      const pick = [name, operator, value.value];
      const tick = element("input", {
        type: "checkbox",
        checked: this.picks().some((other) => samePick(other, pick)),
        dataset: { pick: JSON.stringify(pick) },
        on: { change: () => this.choose(tick.checked ? [...this.picks(), pick] : this.picks().filter((other) => !samePick(other, pick))) },
      });
      const twins = name === "path" ? listed.filter((other) => lastPart(other.value) === lastPart(value.value)) : [];
      const text = twins.length ? value.value.split("/").slice(twins.length > 1 ? -2 : -1).join("/") : shownValue(value.value);
      return element("li", {}, element("label", { title: text.length > LABEL ? text : "" }, tick,
        element("span", { className: "value", dir: "auto" }, shorten(text)),
        element("span", { className: "count" }, element("span", { className: "number" }, String(value.documents)),
          element("span", { className: "hidden-label" }, value.documents === 1 ? " document" : " documents"))));
    };
    const none = box.value ? "No document has such a value." : "No document that passes the other filters has one.";
    list.replaceChildren(...(listed.length ? listed.map(draw) : [element("li", { className: "hint" }, none)]));
    fold(list);
    if (held) [...list.querySelectorAll("input")].find((input) => input.dataset.pick === held)?.focus();
  }

  #drawRange(field) {
    const { min, max } = rangeOf(field);
    const bound = (label, operator, hint) => {
      const input = element("input", {
        type: field.days ? "date" : "number",
        ...(field.days ? { min, max } : { step: "any", placeholder: String(hint) }),
        dataset: { pick: JSON.stringify([field.name, operator, null]) },
        on: {
          change: () => {
            if (field.days && input.value && input.value < "1000") return; // a year that is still being typed
            const rest = this.picks().filter((pick) => pick[0] !== field.name || pick[1] !== operator);
            if (input.value === "") this.choose(rest);
            else this.choose([...rest, [field.name, operator, field.days ? input.value : Number(input.value)]]);
          },
        },
      });
      return element("label", {}, element("span", {}, label), input);
    };
    return element("div", { className: `range ${field.days ? "days" : ""}` },
      element("div", { className: "histogram", aria: { hidden: "true" } }),
      bound("from", ">=", min), bound("to", "<=", max));
  }
}
