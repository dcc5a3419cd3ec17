// Asks the question while it is typed. A new question cancels the request before, and an answer that comes all the same
// is dropped: what is shown always belongs to the last question.

import { filterOf } from "./conditions.js";
import { listDocuments, search, similar } from "./service.js";

const PAUSE_MS = 40; // between two keys of a fast typist
const SENTENCES_PAUSE_MS = 200; // embedding every sentence of the hits must not hold up the next question

/** What the page shows of a hit, and of a hit that is compared with. */
const COMPARED = ["uri", "title", "start", "end", "page", "line", "heading", "path"];
const SHOWN = [...COMPARED, "text", "format", "score", "metadata", "why"];

/** Return what a state asks for: hits of a question, documents like one, or a list of documents. */
export const kindOf = (state) => (state.like ? "like" : state.q.trim() ? "question" : "list");

const SEND = { like: similar, question: search, list: listDocuments };

/** Return the request for a state. */
export function bodyOf(state) {
  const kind = kindOf(state);
  const body = { k: state.k };
  if (kind === "like") body.uri = state.like;
  else if (kind === "list") body.sort = state.sort;
  else {
    Object.assign(body, { query: state.q.trim(), fields: SHOWN });
    if (state.mode) body.mode = state.mode;
  }
  const where = filterOf(state);
  if (where) body.where = where;
  if (state.area) body.area = state.area;
  return body;
}

export class Asking {
  #requests = new AbortController();
  #timers = [];

  /**
   * @param {function(Object, Object, ?Object)} show is given the state, its answer, and that to compare with
   * @param {function(Object)} explain is given the answer a second time, with the sentence of each hit
   * @param {function(Object, Error)} fail is given the state and what went wrong
   */
  constructor(show, explain, fail) {
    this.show = show;
    this.explain = explain;
    this.fail = fail;
  }

  /** Forget the question that is being asked. */
  cancel() {
    this.#requests.abort();
    this.#requests = new AbortController();
    this.#timers.forEach(clearTimeout);
    this.#timers = [];
  }

  /**
   * Ask the question of a state, after a pause if it is still being typed.
   * @param {?{index: string, mode: string}} other whom to ask the same, to compare
   */
  ask(state, other, typing) {
    this.cancel();
    const { signal } = this.#requests;
    this.#timers.push(setTimeout(() => this.#send(state, other, signal), typing ? PAUSE_MS : 0));
  }

  /** Return what to ask another mode or index; an area is one of the map of this index. */
  #bodyOfOther(state, other, body) {
    const area = other.index === state.index ? body.area : undefined;
    return { ...body, mode: other.mode || undefined, area, fields: COMPARED };
  }

  async #send(state, other, signal) {
    const body = bodyOf(state);
    try {
      const [answer, compared] = await Promise.all([
        SEND[kindOf(state)](state.index, body, signal),
        other && search(other.index, this.#bodyOfOther(state, other, body), signal),
      ]);
      if (signal.aborted) return;
      this.show(state, answer, compared);
      if (other || !answer.hits.length || kindOf(state) !== "question") return;
      this.#timers.push(setTimeout(async () => {
        try {
          const explained = await search(state.index, { ...body, explain: true }, signal);
          if (!signal.aborted) this.explain(explained);
        } catch {
          // The hits are shown already, and the next request says what is wrong.
        }
      }, SENTENCES_PAUSE_MS));
    } catch (error) {
      if (!signal.aborted) this.fail(state, error);
    }
  }
}
