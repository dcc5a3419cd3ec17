// Makes elements of the page. Text always becomes a text node: nothing here, or anywhere on the page, parses HTML.

/**
 * Return a new element.
 * @param {string} name tag of the element
 * @param {Object} members properties; those of `dataset` and `aria` (without "aria-") are set one by one, and handlers
 *   are given as `onclick` would be, but under `on`: {click: ...}
 * @param {...(Node|string|null)} children text and nodes; null is left out
 */
export function element(name, members = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(members)) {
    if (key === "dataset") Object.assign(made.dataset, value);
    else if (key === "aria") Object.entries(value).forEach(([attribute, text]) => made.setAttribute(`aria-${attribute}`, text));
    else if (key === "on") Object.entries(value).forEach(([event, handler]) => made.addEventListener(event, handler));
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const byId = (id) => document.getElementById(id);

/** Return a link for an address of the web, and plain text for anything else: no other scheme ever becomes a link. */
export function linkOrText(text) {
  if (/^https?:\/\//i.test(text) && URL.canParse(text) && ["http:", "https:"].includes(new URL(text).protocol)) {
    return element("a", { href: text, rel: "noopener noreferrer nofollow", target: "_blank" }, text);
  }
  return document.createTextNode(text);
}
