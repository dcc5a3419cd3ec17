// Numbers as sentences.

const number = new Intl.NumberFormat("en");

export const counted = (count, one, many = `${one}s`) => `${number.format(count)} ${count === 1 ? one : many}`;

/** Return what was found, for the line above the hits. `folded` are documents that are part of other hits. */
export function found(hits, matched, filtered, folded = 0) {
  if (!hits) return `Nothing was found${filtered ? " among the documents that pass the filters" : ""}.`;
  const where = folded ? ` in ${counted(hits, "hit")}` : "";
  return hits + folded >= matched ? `All ${among(matched, filtered)}${where}, best first` : `The ${number.format(hits)} best of ${among(matched, filtered)}`;
}

/** Return what is listed where nothing was asked. */
export function listed(hits, matched, filtered, folded) {
  if (!hits) return filtered ? "Nothing passes these filters." : "";
  return `${hits + folded >= matched ? "All" : `${number.format(hits + folded)} of`} ${among(matched, filtered)}`;
}

const among = (matched, filtered) => `${counted(matched, "document")}${filtered ? " that pass the filters" : ""}`;

/** Return a value of a field for people: a time without seconds and zone. */
export const shownValue = (value) => String(value).replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d).*$/, "$1 $2");

export const decimal = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2));
