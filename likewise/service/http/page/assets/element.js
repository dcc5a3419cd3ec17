// Makes elements of the page. Text always becomes a text node: nothing here, or anywhere on the page, parses HTML.

/** Return a new element. `members` are its properties; those of `dataset` and `aria` (without "aria-") are set one by one, and
 * handlers are under `on`: {click: ...}. Children that are null or false are left out. */
export function element(name, members = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(members)) {
    if (key === "dataset") Object.assign(made.dataset, value);
    else if (key === "aria") Object.entries(value).forEach(([attribute, text]) => made.setAttribute(`aria-${attribute}`, text));
    else if (key === "on") Object.entries(value).forEach(([event, handler]) => made.addEventListener(event, handler));
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Return a button; `members` as for `element`. */
export const button = (label, click, members = {}) => element("button", { type: "button", on: { click }, ...members }, label);

/** Return a link with the text of a document that opens something here, or the address in another tab. */
export const linkTo = (text, href, open, members = {}) => element("a", {
  href,
  dir: "auto",
  on: { click: (event) => opens(event) && open() },
  ...members,
}, text);

/** Let the browser save a file. */
export function save(name, blob) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export const byId = (id) => document.getElementById(id);

/** Return a link for an address of the web, and plain text for anything else: no other scheme ever becomes a link. */
export function linkOrText(text) {
  if (/^https?:\/\//i.test(text) && URL.canParse(text) && ["http:", "https:"].includes(new URL(text).protocol)) {
    return element("a", { href: text, rel: "noopener noreferrer nofollow", target: "_blank" }, text);
  }
  return document.createTextNode(text);
}

/** Return whether a click opens something here, and not in a new tab; the browser does nothing else with it then. */
export function opens(event) {
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
  if (isPlain) event.preventDefault();
  return isPlain;
}

/** Return the language that the metadata of a document names; empty, which means unknown, if it names none. */
export function langOf({ lang, language }) {
  return [lang, language].find((value) => typeof value === "string" && /^[a-z]{2,3}(-[\w-]{2,20})?$/i.test(value)) ?? "";
}
