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

/** Return the JSON that the service answers. Raises Refused, Unreachable, or AbortError where `signal` was aborted. */
export async function request(path, { body, signal, deadline = DEADLINE_MS } = {}) {
  const signals = [AbortSignal.timeout(deadline), ...(signal ? [signal] : [])];
  const options = { signal: AbortSignal.any(signals), headers: { Accept: "application/json" } };
  if (body !== undefined) {
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    options.headers["Content-Type"] = "application/json";
  }
  try {
    const answer = await fetch(path, options);
    const json = await answer.json();
    if (!answer.ok) throw new Refused(answer.status, json, Number(answer.headers.get("Retry-After")));
    return json;
  } catch (error) {
    if (error instanceof Refused || signal?.aborted) throw error;
    throw new Unreachable(error.message); // no connection, no answer in time, or an answer that broke off
  }
}

const of = (index) => `v1/indexes/${encodeURIComponent(index)}`;

export const listIndexes = async () => (await request("v1/indexes")).indexes;
export const listFields = async (index) => (await request(`${of(index)}/fields`)).fields;
export const search = (index, body, signal) => request(`${of(index)}/search`, { body, signal });
export const getDocument = (index, uri, signal) => request(`${of(index)}/document?uri=${encodeURIComponent(uri)}`, { signal });
export const answers = () => request("healthz", { deadline: 3000 }).then(() => true, () => false);
