// Requests to the service. Addresses are relative, so that the page also works below a path of a reverse proxy.

/** The service refused a request, and said why (problem details, RFC 9457). */
export class Refused extends Error {
  constructor(status, problem, retryAfter) {
    super(problem.detail || problem.title || `the service answered with status ${status}`);
    this.status = status;
    this.slug = problem.slug ?? "";
    this.retryAfter = retryAfter;
  }
}

/** The service did not answer. */
export class Unreachable extends Error {}

const DEADLINE_MS = 30_000;

const begun = new Map(); // answers that were asked for before anybody needed them
const keyOf = (path, { body } = {}) => JSON.stringify([path, body]);

/** Begin a request: the next one that is the same gets its answer. Return the answer; null if there is none. */
export function begin(path, options) {
  const answer = request(path, options);
  begun.set(keyOf(path, options), answer);
  setTimeout(() => begun.delete(keyOf(path, options)), DEADLINE_MS); // it may have become out of date
  return answer.catch(() => null);
}

/** Return the JSON that the service answers. Raises Refused, Unreachable, or AbortError where `signal` was aborted. */
export async function request(path, { body, signal, deadline = DEADLINE_MS, read = null } = {}) {
  const key = keyOf(path, { body });
  const early = begun.get(key);
  if (early) {
    begun.delete(key);
    return early;
  }
  const signals = [AbortSignal.timeout(deadline), ...(signal ? [signal] : [])];
  const options = { signal: AbortSignal.any(signals), headers: { Accept: "application/json" } };
  if (body !== undefined) {
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    options.headers["Content-Type"] = "application/json";
  }
  try {
    const answer = await fetch(path, options);
    if (answer.ok && read) return await read(answer);
    const json = await answer.json();
    if (!answer.ok) throw new Refused(answer.status, json, Number(answer.headers.get("Retry-After")));
    return json;
  } catch (error) {
    if (error instanceof Refused || signal?.aborted) throw error;
    throw new Unreachable(error.message); // no connection, no answer in time, or an answer that broke off
  }
}

/** In place of the name of an index: all that are served. No index can have this name. */
export const ALL = "*";

const of = (index) => `v1/indexes/${encodeURIComponent(index)}`;

export const askedAt = (index, what) => (index === ALL ? `v1/${what}` : `${of(index)}/${what}`);
export const listIndexes = () => request("v1/indexes");
export const listFields = (index) => request(`${of(index)}/fields`);
export const countFields = async (index, facets) => (await request(`${of(index)}/facets`, { body: { facets } })).facets;
export const search = (index, body, signal) => hitsOf(index, "search", body, signal);
export const listDocuments = (index, body, signal) => hitsOf(index, "list", body, signal);
export const getOverview = (index) => request(`${of(index)}/overview`);
export const getDocument = (index, uri, signal) => request(`${of(index)}/document?uri=${encodeURIComponent(uri)}`, { signal });

/** Return an answer with hits, each of which names its index. */
async function hitsOf(index, what, body, signal) {
  const answer = await request(askedAt(index, what), { body, signal });
  answer.hits.forEach((hit) => { hit.index ??= index; });
  return answer;
}

/** Return the address of the original of a document, or of the picture of a page. */
export function originalAddress(index, { uri, page = "", mark = [] }) {
  const query = new URLSearchParams([["uri", uri], ...(page ? [["page", page]] : []), ...mark.map((each) => ["mark", each])]);
  return `${of(index)}/original?${query}`;
}

// the map

export const getMap = (index) => request(`${of(index)}/map`);
export const nameDocuments = async (index, body, signal) => (await request(`${of(index)}/map/documents`, { body, signal })).documents;

/** Return x and y of every point of a map. */
export const getPlaces = async (index) => new Float32Array(await request(`${of(index)}/map/places`, { read: (answer) => answer.arrayBuffer() }));

/** Return the bytes that an answer has as base64. */
const bytesOf = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** Return for each point whether its document passes a filter and lies in an area. */
export const getMatching = async (index, body) => bytesOf((await request(`${of(index)}/map/matching`, { body })).points);

/** Return the frequent values of a field, and the position of the value of each point. */
export async function getColours(index, field) {
  const { values, colours, scale } = await request(`${of(index)}/map/colours?field=${encodeURIComponent(field)}`);
  return { values, scale, colours: bytesOf(colours) };
}

export const answers = () => request("healthz", { deadline: 3000 }).then(() => true, () => false);
