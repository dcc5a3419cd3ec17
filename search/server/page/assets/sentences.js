// Numbers as sentences, so that a person need not know what a cosine is.

const number = new Intl.NumberFormat("en");

export const counted = (count, one, many = `${one}s`) => `${number.format(count)} ${count === 1 ? one : many}`;

/** Return a percentile with as many digits as tell it from a hundred. */
function percent(percentile) {
  const digits = percentile >= 99.9 ? 2 : percentile >= 90 ? 1 : 0;
  const cut = Math.floor(percentile * 10 ** digits) / 10 ** digits; // never rounded up
  return `${cut} %`;
}

/** Return how near a hit is, in a few words; null where nothing was measured. */
export function nearness(percentile) {
  if (percentile === null) return null;
  if (percentile >= 100) return "nearer than every random passage";
  if (percentile < 50) return "no nearer than a random passage";
  return `nearer than ${percent(percentile)} of random passages`;
}

/** Return the same as a whole sentence. */
export function nearnessInFull(percentile) {
  if (percentile === null) return "How near this passage is was not measured: this ranking looks at words alone, or the index is small.";
  if (percentile >= 100) return "Nearer to your question than every random passage that was measured is to an unrelated question.";
  return `Nearer to your question than ${percent(percentile)} of random passages are to an unrelated question.`;
}

/** Return what was found, for the line above the hits. */
export function found(hits, matched, filtered) {
  if (!hits) return filtered ? "Nothing passes these filters." : "Nothing was found.";
  const among = filtered ? `${counted(matched, "document")} that pass the filters` : counted(matched, "document");
  return hits >= matched ? `All ${among}, best first` : `The ${number.format(hits)} best of ${among}`;
}

export const decimal = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2));
