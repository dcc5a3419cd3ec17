// Picks and the typed condition as one filter in the grammar of the service.

const quote = (text, mark) => mark + text.replace(/[\\"'`]/g, "\\$&") + mark;

function literal(value, operator) {
  if (typeof value !== "string") return JSON.stringify(value);
  // A range over dates: the grammar writes dates without quotes.
  return operator !== "=" && /^\d{4}-\d\d-\d\d$/.test(value) ? value : quote(value, '"');
}

/**
 * Return the filter of a state as text; null for none. Values picked of one field are alternatives.
 * @param {?string} except a field whose picks are left out, to count its values
 */
export function filterOf({ where, picks }, except = null) {
  const equal = new Map();
  const folders = [];
  const conditions = [];
  for (const [field, operator, value] of picks) {
    if (field === except) continue;
    const name = quote(field, "`");
    if (operator === "under") folders.push(`under ${quote(value, '"')}`);
    else if (operator === "=") equal.set(name, [...(equal.get(name) ?? []), literal(value, operator)]);
    else conditions.push(`${name} ${operator} ${literal(value, operator)}`);
  }
  for (const [name, values] of equal) conditions.push(`${name} in (${values.join(", ")})`);
  if (folders.length) conditions.push(`(${folders.join(" or ")})`);
  const typed = where.trim();
  if (typed) conditions.unshift(conditions.length ? `(${typed})` : typed);
  return conditions.length ? conditions.join(" and ") : null;
}

export const samePick = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Return the last part of a folder or of a path. */
export const lastPart = (path) => path.split("/").filter(Boolean).at(-1) ?? path;

/** Return the corners of the part of the map that is nearer to a region's middle than to any other of its level. */
export function areaOf(region, regions) {
  let corners = [[-0.01, -0.01], [1.01, -0.01], [1.01, 1.01], [-0.01, 1.01]];
  for (const other of regions) {
    if (other.level !== region.level || (other.x === region.x && other.y === region.y)) continue;
    const [dx, dy] = [other.x - region.x, other.y - region.y];
    const border = (dx * (other.x + region.x) + dy * (other.y + region.y)) / 2;
    const past = ([x, y]) => dx * x + dy * y - border;
    corners = corners.flatMap((corner, at) => {
      const next = corners[(at + 1) % corners.length];
      const [here, there] = [past(corner), past(next)];
      const cut = here / (here - there);
      const crossing = (here < 0) === (there < 0) ? [] : [corner.map((value, axis) => value + cut * (next[axis] - value))];
      return here <= 0 ? [corner, ...crossing] : crossing;
    });
  }
  return corners.map((corner) => corner.map((value) => Number(value.toFixed(5))));
}
