// Picks and the typed condition as one filter in the grammar of the service.

const quote = (text, mark) => mark + text.replace(/[\\"'`]/g, "\\$&") + mark;

function literal(value, operator) {
  if (typeof value !== "string") return JSON.stringify(value);
  // A range over dates: the grammar writes dates without quotes.
  return operator !== "=" && /^\d{4}-\d\d-\d\d$/.test(value) ? value : quote(value, '"');
}

/** Return the filter of a state as text, or null. Picks of one field are alternatives; those of `except` are left out, to count its values with `letters`. */
export function filterOf({ where, picks }, except = null, letters = "") {
  const equal = new Map();
  const folders = [];
  const conditions = [];
  for (const [field, operator, value] of picks) {
    if (field === except && (field !== "path" || operator === "under")) continue;
    const name = quote(field, "`");
    if (operator === "under") folders.push(`under ${quote(value, '"')}`);
    else if (operator === "=") equal.set(name, [...(equal.get(name) ?? []), literal(value, operator)]);
    else conditions.push(`${name} ${operator} ${literal(value, operator)}`);
  }
  for (const [name, values] of equal) conditions.push(`${name} in (${values.join(", ")})`);
  if (folders.length) conditions.push(`(${folders.join(" or ")})`);
  if (letters) conditions.push(`${quote(except, "`")} like ${quote(`%${letters}%`, '"')}`);
  const typed = where.trim();
  if (typed) conditions.unshift(conditions.length ? `(${typed})` : typed);
  return conditions.length ? conditions.join(" and ") : null;
}

export const samePick = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Return the last part of a folder or of a path. */
export const lastPart = (path) => path.split("/").filter(Boolean).at(-1) ?? path;
