// The keyboard: to the question, along the hits, and to the help. Dialogs close by Esc as the browser has it.

import { byId } from "./element.js";

const isText = (target) => target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select");

/** `commit()` ends the typing of a question, so that Back returns to it; `close()` closes the document, if `isOpen()`. */
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
    const toQuestion = (key === "/" && !isText(target) && isPlain)
      || (key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey);
    if (toQuestion) {
      event.preventDefault();
      toTheQuestion();
    } else if (key === "?" && !isText(target)) {
      event.preventDefault();
      byId("help").showModal();
    } else if (key === "ArrowDown" && isPlain && target.matches("#question, #hits *")) {
      if (walk(1, false)) event.preventDefault();
    } else if (key === "ArrowUp" && isPlain && target.matches("#hits *")) {
      event.preventDefault();
      if (target.matches("#hits > li:first-child *")) toTheQuestion();
      else walk(-1, false);
    } else if (key === "Enter" && target.id === "question") {
      commit();
    } else if (key === "Escape" && isOpen()) {
      close();
    } else if (key === "Escape" && target.closest?.("#hits")) {
      toTheQuestion();
    }
  });
}

/** Go to the next or the previous hit, from the one that is open or focused, and open it if `opening`; return whether there is one. */
function walk(step, opening) {
  const links = [...document.querySelectorAll("#hits a.title, #comparison section:first-child a")];
  const focused = links.findIndex((link) => link.closest("li").matches(":focus-within"));
  const at = focused < 0 ? links.findIndex((link) => link.closest("li").matches(".here")) : focused;
  const next = links[at < 0 ? 0 : at + step];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  if (opening) next?.click();
  return Boolean(next);
}

function toTheQuestion() {
  byId("question").focus();
  byId("question").select();
}
