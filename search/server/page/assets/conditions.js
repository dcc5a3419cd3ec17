// Picks and the typed condition as one filter in the grammar of the service.

const quote = (text, mark) => mark + text.replace(/[\\"'`]/g, "\\$&") + mark;

function literal(value, operator) {
  if (typeof value !== "string") return JSON.stringify(value);
  // A range over dates: the grammar writes dates without quotes.
  return operator !== "=" && /^\d{4}-\d\d-\d\d$/.test(value) ? value : quote(value, '"');
}

/** Return the filter of a state as text; null for none. Values picked of one field are alternatives. */
export function filterOf({ where, picks }) {
  const equal = new Map();
  const conditions = [];
  for (const [field, operator, value] of picks) {
    const name = quote(field, "`");
    if (operator === "=") equal.set(name, [...(equal.get(name) ?? []), literal(value, operator)]);
    else conditions.push(`${name} ${operator} ${literal(value, operator)}`);
  }
  for (const [name, values] of equal) conditions.push(`${name} in (${values.join(", ")})`);
  const typed = where.trim();
  if (typed) conditions.unshift(conditions.length ? `(${typed})` : typed);
  return conditions.length ? conditions.join(" and ") : null;
}

export const samePick = (one, other) => JSON.stringify(one) === JSON.stringify(other);
