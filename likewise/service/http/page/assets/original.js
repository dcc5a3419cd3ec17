// The original of a document beside its text: the page of a PDF with the passage marked, or a picture, and a link that
// opens it at that page, or a text at the line of the passage.

import { button, byId, element } from "./element.js";
import { offsetsOf } from "./marks.js";
import { originalAddress } from "./service.js";

/** Offer the original of a document; return what is shown of it above the text, or null. `at`: "START-END" in code points; the sentence of `hit` is marked. */
export function drawOriginal(index, document_, at, hit) {
  const { uri, original, sections } = document_;
  const link = byId("reader-original");
  link.hidden = !original;
  if (!original) return null;
  const isShown = ["text/plain", "application/pdf"].includes(original) || original.startsWith("image/");
  link.href = originalAddress(index, { uri }) + (original === "text/plain" && at ? atLine(document_.text, at) : "");
  link.textContent = isShown ? "Open the original" : "Save the original";
  if (isShown) Object.assign(link, { target: "_blank", rel: "noopener" });
  else link.removeAttribute("target");
  if (original.startsWith("image/")) return figureOf(link.href, `The picture ${uri}`, null);
  const pages = sections.map(({ page }) => page).filter(Boolean);
  if (original !== "application/pdf" || !pages.length) return null;
  const start = Number(at.split("-")[0]);
  const first = sections.findLast((section) => section.page && section.start <= start)?.page ?? pages[0];
  const sentence = hit?.why?.sentence;
  const mark = [...(at ? [at] : []), ...(sentence ? [`${sentence.start}-${sentence.end}`] : [])];
  link.href += `#page=${first}`;
  return drawPages(first, document_.metadata.pages ?? pages.at(-1), (page) => originalAddress(index, { uri, page, mark }));
}

/** Return the fragment of an address at which browsers open a text: the first line of a passage that is nowhere else. */
function atLine(text, at) {
  const [start, end] = at.split("-").map((offset) => offsetsOf(text)(Number(offset)));
  const lines = text.slice(start, end).split("\n").map((line) => line.trim()).filter(Boolean);
  const line = lines.find((each) => text.indexOf(each) === text.lastIndexOf(each)) ?? lines[0] ?? "";
  return `#:~:text=${encodeURIComponent(line).replaceAll("-", "%2D")}`;
}

/** Return a page with buttons to the others. */
function drawPages(first, last, addressOf) {
  let page = first;
  const status = element("span", { className: "page-number", role: "status" });
  const before = button("Previous page", () => show(page - 1));
  const after = button("Next page", () => show(page + 1));
  const figure = figureOf(addressOf(page), "", element("figcaption", {}, before, status, after));
  const show = (number) => {
    page = number;
    status.textContent = `Page ${page} of ${last}`;
    const picture = figure.querySelector("img");
    picture.alt = `Page ${page}. Its text is below.`;
    if (picture.getAttribute("src") !== addressOf(page)) picture.src = addressOf(page);
    before.disabled = page <= 1;
    after.disabled = page >= last;
  };
  show(first);
  return figure;
}

function figureOf(address, alt, caption) {
  const failed = () => figure.replaceChildren(element("p", { className: "error", role: "alert" },
    "The original cannot be shown: it has changed since it was indexed, or is gone. Its text is below."));
  const figure = element("figure", { className: "original" },
    caption, element("img", { src: address, alt, on: { error: failed } }));
  return figure;
}
