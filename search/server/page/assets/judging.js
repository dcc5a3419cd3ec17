// Thumbs at the hits, where the service takes judgments: which documents answer a question, for `evaluate` and `tune`.

import { button, byId } from "./element.js";
import { getJudgments, putJudgment } from "./service.js";

const GRADES = [[1, "Answers"], [0, "Does not answer"]];

export class Judging {
  /** @param {function(Error)} fail is told what went wrong. */
  constructor(fail) {
    this.fail = fail;
    this.last = Promise.resolve(); // requests go one after the other, so that no older answer is drawn over a newer one
  }

  /** Show what was judged of a question, and buttons to judge its hits, at those that are drawn. */
  show(index, question) {
    return this.#update(index, question, () => getJudgments(index, question));
  }

  #update(index, question, ask) {
    this.last = this.last.then(ask).then(({ judgments }) => {
      if (byId("hits").dataset.question === question) this.#draw(index, question, judgments);
    }).catch(this.fail);
    return this.last;
  }

  #draw(index, question, judgments) {
    const grades = new Map(judgments.map(({ uri, grade }) => [uri, grade]));
    for (const item of byId("hits").children) {
      const uri = item.dataset.uri;
      const place = item.querySelector(".judge");
      if (!place.childElementCount) {
        const judge = (grade) => this.#update(index, question,
          () => putJudgment(index, { query: question, uri, grade }));
        place.append(...GRADES.map(([grade, label]) => button(label, ({ currentTarget }) => {
          judge(currentTarget.getAttribute("aria-pressed") === "true" ? null : grade);
        }, { dataset: { grade } })));
      }
      for (const button of place.children) {
        const given = grades.has(uri) && (grades.get(uri) > 0) === (button.dataset.grade === "1");
        button.setAttribute("aria-pressed", String(given));
      }
    }
  }
}
