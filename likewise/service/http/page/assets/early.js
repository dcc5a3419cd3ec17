// Asks the question of the address before the page is there: on a slow line the page takes longer than the answer.

import { readAddress } from "./address.js";
import { bodyOf, kindOf } from "./asking.js";
import { ALL, askedAt, begin } from "./service.js";

const state = readAddress(location.search);
begin("v1/indexes").then((listed) => {
  const names = listed?.indexes.map(({ name }) => name) ?? [];
  const index = state.index || names[0];
  const isServed = index === ALL ? names.length > 1 : names.includes(index);
  if (isServed && state.view === "search" && kindOf(state) === "question") begin(askedAt(index, "search"), { body: bodyOf(state) });
});
