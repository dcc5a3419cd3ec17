// Numbers as sentences.

const number = new Intl.NumberFormat("en");

export const counted = (count, one, many = `${one}s`) => `${number.format(count)} ${count === 1 ? one : many}`;

/** Return what was found, for the line above the hits. `folded` are documents that are part of other hits. */
export function found(hits, matched, filtered, folded = 0) {
  if (!hits) return `Nothing was found${filtered ? " among the documents that pass the filters" : ""}.`;
  const among = filtered ? `${counted(matched, "document")} that pass the filters` : counted(matched, "document");
  const where = folded ? ` in ${counted(hits, "hit")}` : "";
  return hits + folded >= matched ? `All ${among}${where}, best first` : `The ${number.format(hits)} best of ${among}`;
}

/** Return what is listed where nothing was asked. */
export function listed(hits, matched, filtered) {
  if (!hits) return filtered ? "Nothing passes these filters." : "";
  const all = filtered ? `${counted(matched, "document")} that pass the filters` : counted(matched, "document");
  return hits >= matched ? `All ${all}` : `${number.format(hits)} of ${all}`;
}

export const decimal = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2));
