// The keyboard: to the question, along the hits, and to the help. Dialogs close by Esc as the browser has it.

import { byId } from "./element.js";

const isText = (target) => target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select");

/**
 * @param {Object} actions `commit()` ends the typing of a question, so that Back returns to it; `close()` closes the
 *   document, and `isOpen()` says whether one is open
 */
export function listenToKeys({ commit, close, isOpen }) {
  document.addEventListener("keydown", (event) => {
    const { target, key } = event;
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    if (event.isComposing || document.querySelector("dialog[open]:not(.reader)")) return;
    if ((key === "j" || key === "k") && isPlain && !isText(target)) {
      walk(key === "j" ? 1 : -1, isOpen());
      return;
    }
    if (document.querySelector("dialog:modal")) return;
    const toQuestion = (key === "/" && !isText(target) && !event.ctrlKey && !event.metaKey && !event.altKey)
      || (key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey);
    if (toQuestion) {
      event.preventDefault();
      toTheQuestion();
    } else if (key === "?" && !isText(target)) {
      event.preventDefault();
      byId("help").showModal();
    } else if ((key === "ArrowDown" || key === "ArrowUp") && !event.ctrlKey && !event.metaKey && !event.altKey) {
      if (move(target, key === "ArrowDown" ? 1 : -1)) event.preventDefault();
    } else if (key === "Enter" && target.id === "question") {
      commit();
    } else if (key === "Escape" && isOpen()) {
      close();
    } else if (key === "Escape" && target.closest?.("#hits")) {
      toTheQuestion();
    }
  });
}

/** Go to the next or the previous hit; where a document is open, open that of the hit. */
function walk(step, opening) {
  const links = [...document.querySelectorAll("#hits a.title, #comparison section:first-child a")];
  const at = links.findIndex((link) => link.closest("li").matches(".here, :focus-within"));
  const next = links[at < 0 ? 0 : at + step];
  if (!next) return;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  if (opening) next.click();
}

function toTheQuestion() {
  byId("question").focus();
  byId("question").select();
}

/** Move the focus among the question and the hits; return whether it has moved. */
function move(target, step) {
  const titles = [...document.querySelectorAll("#hits a.title")];
  if (target.id === "question") {
    if (step < 0 || !titles.length) return false;
    titles[0].focus();
    return true;
  }
  const item = target.closest?.("#hits > li");
  if (!item) return false;
  const next = titles.findIndex((title) => item.contains(title)) + step;
  if (next < 0) toTheQuestion();
  else titles[next]?.focus();
  return true;
}
