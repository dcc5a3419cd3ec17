// Which fields a person chooses by: one rule for the filters and for the colours of the map.

const MOST_GROUPS = 8;
const MOST_SHARED = 50;
const FEW_NUMBERS = 8; // of fewer different numbers each is a value to tick
const LEAST_SHARE = 1 / 20; // of the documents that have a field
const FIRST = ["format", "path"];

const MEASURES = /(^|[._-])(size|bytes|hash|sha\d*|md5|crc\d*|checksum|digest|etag|uuid|guid)([._-]|$)|^thread$/i;
const HASH = /^(?=.*\d)[0-9a-f-]{16,}$/i;

/** Return whether a field measures or names a document itself, which nobody asks for. */
export const isMeasure = (name) => MEASURES.test(name);

/** Return the range of a field with more numbers or dates than are ticked one by one; null for other fields. */
export function rangeOf(field) {
  const range = field.days ?? field.numbers;
  return range && range.min !== range.max && (field.days || field.values.length > FEW_NUMBERS) ? range : null;
}

/** Return whether a field divides an index of this many documents in a way that a person may want. */
export function divides(field, documents) {
  if (isMeasure(field.name) || field.values.every(({ value }) => HASH.test(value))) return false;
  if (!FIRST.includes(field.name) && field.documents < documents * LEAST_SHARE) return false;
  if (field.days && !rangeOf(field)) return false; // times of one day
  return Boolean(rangeOf(field)) || (field.shared >= 2 && field.shared <= MOST_SHARED);
}

/** Return the fields to offer at first, in their order: format and folder, then those that most documents have. */
export function groupsOf(fields, documents) {
  const first = (field) => (FIRST.indexOf(field.name) + FIRST.length + 1) % (FIRST.length + 1);
  return fields.filter((field) => divides(field, documents))
    .sort((one, other) => first(one) - first(other) || other.documents - one.documents || one.shared - other.shared)
    .slice(0, MOST_GROUPS);
}

/** Return a condition on one of the fields that are offered. */
export function exampleOf(groups) {
  const field = groups.find(({ name }) => ![...FIRST, "modified"].includes(name)) ?? groups.find(({ name }) => name === "format");
  const name = field && (/^[a-z_][\w.]*$/i.test(field.name) ? field.name : `\`${field.name}\``);
  const range = field && rangeOf(field);
  return range ? `${name} >= ${range.min}` : field ? `${name} = ${JSON.stringify(field.values[0].value)}` : "modified > -7d";
}

/** Return the name of a field for people. */
export const nameOf = (name) => ({ path: "folder", modified: "changed" })[name] ?? name;
