// Controls made of the fields that the documents have: frequent values to tick, and ranges of numbers and dates.

import { byId, element } from "./element.js";
import { samePick } from "./conditions.js";
import { counted } from "./sentences.js";

const VALUES = 6;
const OPEN_FIELDS = 3;
const LABEL = 48;
const FEW_NUMBERS = 8;

/**
 * Draw the fields of an index.
 * @param {Object[]} fields as the service lists them
 * @param {function(): Array} picks returns the conditions that are chosen now
 * @param {function(Array)} choose is given all conditions after a change
 */
export function drawFields(fields, picks, choose) {
  const useful = fields.filter(isUseful).sort((one, other) => usefulness(other) - usefulness(one));
  const wasOpen = new Map([...byId("fields").querySelectorAll("details")].map((field) => [field.dataset.field, field.open]));
  byId("fields").replaceChildren(...useful.map((field, at) => {
    const chosen = picks().some(([name]) => name === field.name);
    const open = wasOpen.get(field.name) ?? (at < OPEN_FIELDS || chosen);
    return element("details", { className: "field", open, dataset: { field: field.name } },
      element("summary", { title: counted(field.documents, "document") }, field.name),
      hasRange(field) ? drawRange(field, picks, choose) : drawValues(field, picks, choose));
  }));
  syncFields(picks());
}

/** Show in the controls which conditions are chosen now; the controls stay, and with them the focus. */
export function syncFields(picks) {
  for (const input of byId("fields").querySelectorAll("input")) {
    const [field, operator, value] = JSON.parse(input.dataset.pick);
    if (input.type === "checkbox") input.checked = picks.some((pick) => samePick(pick, [field, operator, value]));
    else input.value = picks.find((pick) => pick[0] === field && pick[1] === operator)?.[2] ?? "";
  }
}

/** Return what the chips of chosen conditions say. */
export function describePick([field, operator, value]) {
  const relation = { "=": "is", ">=": "from", "<=": "to" }[operator];
  const text = String(value);
  return `${field} ${relation} ${text.length > LABEL ? `${text.slice(0, LABEL)}…` : text}`;
}

/** A field whose every value belongs to one document alone chooses nothing. */
const isUseful = (field) => hasRange(field) || field.values.some(({ documents }) => documents > 1);

/** Fields that most documents have and that fall into few groups come first. */
const usefulness = (field) => field.documents * (hasRange(field) ? 0.5 : 1) * Math.min(1, (field.values[0]?.documents ?? 0) / 3)
  * (["format", "modified"].includes(field.name) ? 0.4 : 1) * (field.values.length === 1 ? 0.1 : 1);

function hasRange(field) {
  const range = field.days ?? field.numbers;
  return Boolean(range) && range.min !== range.max && (Boolean(field.days) || field.values.length > FEW_NUMBERS);
}

function drawValues(field, picks, choose) {
  const list = element("ul", { className: "choices" });
  const draw = (value) => {
    const pick = [field.name, "=", value.value];
    const text = String(value.value);
    const box = element("input", {
      type: "checkbox",
      dataset: { pick: JSON.stringify(pick) },
      on: {
        change: () => choose(box.checked ? [...picks(), pick] : picks().filter((other) => !samePick(other, pick))),
      },
    });
    const label = text.length > LABEL ? `${text.slice(0, LABEL)}…` : text;
    return element("li", {}, element("label", { title: text.length > LABEL ? text : "" }, box,
      element("span", { className: "value" }, label),
      element("span", { className: "count" }, String(value.documents), element("span", { className: "hidden-label" }, value.documents === 1 ? " document" : " documents"))));
  };
  // What one document alone has is shown on request: it says little about the collection.
  const shared = field.values.filter(({ documents }) => documents > 1).length;
  const chosen = field.values.findLastIndex(({ value }) => picks().some((pick) => samePick(pick, [field.name, "=", value])));
  const few = Math.max(Math.min(VALUES, Math.max(shared, 1)), chosen + 1);
  list.append(...field.values.slice(0, few).map(draw));
  if (field.values.length <= few) return list;
  const more = element("button", {
    type: "button",
    className: "plain",
    on: {
      click: () => {
        const rest = field.values.slice(few).map(draw);
        list.append(...rest);
        more.remove();
        rest[0].querySelector("input").focus();
      },
    },
  }, `${field.values.length - few} more`);
  return element("div", {}, list, more);
}

function drawRange(field, picks, choose) {
  const { min, max } = field.days ?? field.numbers;
  const bound = (label, operator, hint) => {
    const input = element("input", {
      type: field.days ? "date" : "number",
      ...(field.days ? { min, max } : { step: "any", placeholder: String(hint) }),
      dataset: { pick: JSON.stringify([field.name, operator, null]) },
      on: {
        change: () => {
          const rest = picks().filter((pick) => pick[0] !== field.name || pick[1] !== operator);
          if (input.value === "") choose(rest);
          else choose([...rest, [field.name, operator, field.days ? input.value : Number(input.value)]]);
        },
      },
    });
    return element("label", {}, element("span", {}, label), input);
  };
  return element("div", { className: "range" }, bound("from", ">=", min), bound("to", "<=", max));
}
