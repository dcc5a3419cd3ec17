// All indexes as one: the choice of them, and their fields and counts put together.

import { ALL, countFields, listFields } from "./service.js";

const VALUES = 20; // as many as the service lists of a field

/** Return all indexes as one, which has them as `parts`. Words alone rank where some index has no model, as in the service. */
export function together(indexes) {
  const sum = (name) => indexes.reduce((total, index) => total + index[name], 0);
  return { name: ALL, model: indexes.every(({ model }) => model) && ALL, documents: sum("documents"), passages: sum("passages"), parts: indexes };
}

const known = new Map(); // the names of the fields of each index that was listed

/** Return the fields of an index, or of all. */
export async function readFields({ name, parts }) {
  if (!parts) return listFields(name);
  const every = await Promise.all(parts.map((part) => listFields(part.name)));
  parts.forEach(({ name: part }, at) => known.set(part, [...every[at].fields.map((field) => field.name), ...every[at].rare]));
  const fields = united(every.flatMap((listed) => listed.fields));
  return { fields, rare: [...new Set(every.flatMap(({ rare }) => rare))].filter((rare) => fields.every((field) => field.name !== rare)) };
}

/** Return the counts of `facets` (fields, each with its filter) in an index, or in all. An index that lacks a field of the filter has
 * nothing to count. Which fields a typed condition has is not known here: with one, the counts of all indexes have no `values`. */
export async function readCounts({ name, parts }, facets, { picks, where }) {
  if (!parts) return countFields(name, facets);
  if (where.trim()) return facets.map(({ field }) => ({ name: field, values: null, histogram: [] }));
  const counts = parts.map((part) => {
    const has = (field) => known.get(part.name)?.includes(field);
    const own = picks.every(([field]) => has(field)) ? facets.filter(({ field }) => has(field)) : [];
    return own.length ? countFields(part.name, own) : [];
  });
  return united((await Promise.all(counts)).flat());
}

/** Return the fields of several indexes without histograms, whose ranges differ. */
function united(fields) {
  const byName = new Map();
  for (const field of fields) {
    const other = byName.get(field.name);
    byName.set(field.name, { ...(other ? both(other, field) : field), histogram: [] });
  }
  return [...byName.values()];
}

function both(one, other) {
  const counts = new Map();
  for (const { value, documents } of [...one.values, ...other.values]) {
    const key = JSON.stringify(value);
    counts.set(key, (counts.get(key) ?? 0) + documents);
  }
  const values = [...counts].map(([key, documents]) => ({ value: JSON.parse(key), documents }))
    .sort((first, second) => second.documents - first.documents).slice(0, VALUES);
  return {
    ...one,
    values,
    documents: one.documents + other.documents,
    shared: Math.max(one.shared, other.shared, values.filter(({ documents }) => documents > 1).length),
    numbers: range(one.numbers, other.numbers),
    days: range(one.days, other.days),
  };
}

const range = (one, other) => (one && other
  ? { min: one.min < other.min ? one.min : other.min, max: one.max > other.max ? one.max : other.max } : one ?? other);
