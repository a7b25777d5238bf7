// The words that a word attends to in each layer, as a heat map over the sentence.

import { make } from "./dom.js";

export function heatMap(answer, tokens, word) {
  const parts = [];
  for (const [name, layers] of Object.entries(answer.components)) {
    const rows = layers.map(({ attention, gate }, i) => {
      const most = Math.max(...attention[word], 1e-9);
      const cells = attention[word].map((a, j) => make("td", {
        "--a": (0.85 * a) / most, title: a.toFixed(3), class: j === word ? "self" : undefined,
      }, tokens[j][0]));
      const own = gate ? `, own features ${(100 * gate[word]).toFixed(0)}%` : "";
      return make("tr", {}, make("th", { scope: "row" }, `${name}, layer ${i + 1}${own}`), ...cells);
    });
    parts.push(make("table", {}, ...rows));
  }
  return make("div", { class: "heat" }, make("p", { class: "hint" },
    `Attention of “${tokens[word][0]}”: the darker a word, the greater its weight`), ...parts);
}
