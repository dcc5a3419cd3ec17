// Asks the question while it is typed. A new question cancels the request before, and an answer that comes all the same
// is dropped: what is shown always belongs to the last question.

import { filterOf, lastPart } from "./conditions.js";
import { ALL, listDocuments, search } from "./service.js";

const PAUSE_MS = 40; // between two keys of a fast typist
const NAMED = 3; // documents that are named as the question is
const SENTENCES_PAUSE_MS = 200; // embedding every sentence of the hits must not hold up the next question

/** What the page shows of a hit, and of a hit that is compared with. */
const COMPARED = ["uri", "index", "title", "start", "end", "page", "line", "heading", "path"];
const SHOWN = [...COMPARED, "text", "shown", "format", "score", "metadata", "why", "family", "family_size", "family_indexes"];

/** Return the filter for documents of a file or with an id that is named as a question is; null for other questions. */
function named(question) {
  if (!/^[^\s"\\%]{3,80}$|^[^"\\%\n]+\.\w{2,5}$/.test(question)) return null;
  return [`uri = "${question}"`, ...["uri", "path"].flatMap((field) => [`${field} like "%/${question}"`, `${field} like "%/${question}.%"`])].join(" or ");
}

/** Return what a state asks for: hits of a question or of examples, or a list of documents. */
export const kindOf = (state) => (state.q.trim() || state.like.length ? "question" : "list");

/** Return one hit for all documents of a file, of which one is given. */
export const asTable = (hit, rows) => ({ ...hit, title: lastPart(hit.path), rows, line: null, page: null, heading: "", metadata: {} });

/** Return the request for a state. */
export function bodyOf(state) {
  const kind = kindOf(state);
  const body = { k: state.k };
  if (kind === "list") body.sort = state.sort;
  else {
    if (state.q.trim()) body.query = state.q.trim();
    Object.assign(body, { literal: state.literal, fields: SHOWN, fold: true }, state.like.length && { like: state.like });
    // Examples are vectors: with them, words alone cannot rank, and without a question meaning alone does.
    const ofExamples = state.q.trim() ? state.mode.replace("words", "hybrid") : "dense";
    const mode = state.like.length ? ofExamples : state.mode;
    if (mode) body.mode = mode;
  }
  const where = filterOf(state);
  if (where) body.where = where;
  if (state.area) body.area = state.area;
  return body;
}

export class Asking {
  #requests = new AbortController();
  #timers = [];

  /** `show(state, answer, compared)`, `explain(answer)` with the sentence of each hit, `showNamed(documents)` of the name asked for, `fail(state, error)`. */
  constructor(show, explain, showNamed, fail) {
    Object.assign(this, { show, explain, showNamed, fail });
  }

  /** Forget the question that is being asked. */
  cancel() {
    this.#requests.abort();
    this.#requests = new AbortController();
    this.#timers.splice(0).forEach(clearTimeout);
  }

  /** Ask the question of a state, after a pause if it is being typed; `other` ({index, mode}) is asked the same, to compare. */
  ask(state, other, typing) {
    this.cancel();
    const { signal } = this.#requests;
    this.#timers.push(setTimeout(() => this.#send(state, other, signal), typing ? PAUSE_MS : 0));
  }

  async #send(state, other, signal) {
    const body = bodyOf(state);
    const area = other?.index === state.index ? body.area : undefined; // an area is one of the map of this index
    try {
      const [answer, compared] = await Promise.all([
        kindOf(state) === "question" ? search(state.index, body, signal)
          : state.index === ALL ? { hits: [], matched: 0 } : listDocuments(state.index, body, signal),
        other && search(other.index, { ...body, mode: other.mode || undefined, area, fields: COMPARED }, signal),
      ]);
      if (signal.aborted) return;
      this.show(state, answer, compared);
      if (other || !state.q.trim()) return;
      this.#timers.push(setTimeout(async () => {
        try {
          const explained = answer.hits.length && await search(state.index, { ...body, explain: true }, signal);
          if (explained && !signal.aborted) this.explain(explained);
          const name = state.index !== ALL && named(state.q.trim());
          const where = body.where ? `(${name}) and (${body.where})` : name;
          const files = name && await listDocuments(state.index, { k: NAMED, where, sort: "title", area: body.area }, signal);
          if (files && !signal.aborted) this.showNamed(files);
        } catch {
          // The hits are shown already, and the next request says what is wrong.
        }
      }, SENTENCES_PAUSE_MS));
    } catch (error) {
      if (!signal.aborted) this.fail(state, error);
    }
  }
}
