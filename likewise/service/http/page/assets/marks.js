// Texts with parts of them marked. The service counts in code points, JavaScript in UTF-16: both meet here.

/** Return what converts an offset in code points into one of JavaScript. */
export function offsetsOf(text) {
  if (!/[\ud800-\udbff]/.test(text)) return (offset) => Math.max(0, Math.min(offset, text.length));
  const starts = [];
  for (let unit = 0; unit < text.length; unit += text.codePointAt(unit) > 0xffff ? 2 : 1) starts.push(unit);
  return (offset) => starts[Math.max(0, offset)] ?? text.length;
}

const WIDTH = 420;

/** Return the window of a passage to show: around its best sentence, or else where most words of the question are; of a table whole rows. */
export function windowOf(text, words, sentence, isTable) {
  if (text.length <= WIDTH * 1.3) return [0, text.length];
  let start = 0;
  if (sentence) {
    start = sentence.start - (sentence.end - sentence.start >= WIDTH ? 0 : 60);
  } else if (words.length) {
    const held = (from) => words.filter((word) => word.start >= from && word.end <= from + WIDTH).length;
    start = words.map((word) => word.start - WIDTH / 4).reduce((best, from) => (held(from) > held(best) ? from : best));
  }
  start = Math.max(0, Math.min(start, text.length - WIDTH));
  const end = Math.min(text.length, start + WIDTH);
  if (isTable) return [text.lastIndexOf("\n", start) + 1, end + text.slice(end).search(/\n|$/)];
  // To the borders of words, unless one is longer than what is shown.
  const from = start === 0 ? 0 : (text.slice(start, start + 40).search(/\s/) + 1 || 0) + start;
  const last = end === text.length ? 0 : text.slice(end - 40, end).search(/\s\S*$/);
  return [from, last > 0 ? end - 40 + last : end];
}
