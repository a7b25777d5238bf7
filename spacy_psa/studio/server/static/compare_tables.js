// The tables of a comparison.

import { key } from "./compare_figures.js";
import { make } from "./dom.js";

const points = (value) => (100 * value).toFixed(2);
const range = ([low, high]) => `${points(low)} to ${points(high)}`;
const name = (label) => make("th", { scope: "row", dir: "auto" }, label);

export const scrolled = (table, label) => make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);

export function scoreTable(data) {
  const two = data.models.length === 2;
  const group = (span, ...content) => make("th", { colspan: span, scope: "colgroup" }, ...content);
  const column = (text) => make("th", { scope: "col" }, text);
  const head = make("thead", {},
    make("tr", {}, make("td", { colspan: 2 }), ...data.models.map((one, i) => group(4, key(i), one.name)), two ? group(2, "difference") : ""),
    make("tr", {}, column("type"), column("gold"),
      ...data.models.flatMap(() => ["P", "R", "F1", "95% interval"].map(column)), ...(two ? ["F1", "95% interval"].map(column) : [])));
  const rows = data.scores.map(({ label, gold, models, difference }) => make("tr", {},
    name(label ?? "all"), make("td", {}, gold.toLocaleString("en")),
    ...models.flatMap(({ p, r, f }) => [
      ...[p, r, f].map((one) => make("td", {}, points(one.value))), make("td", { class: "hint" }, range(f.interval))]),
    ...(difference ? [make("td", {}, points(difference.value)), make("td", { class: "hint" }, range(difference.interval))] : [])));
  return scrolled(make("table", { class: "scores" }, head, make("tbody", {}, ...rows)), "Scores");
}

export function intervalTable(data) {
  const heads = data.models.flatMap((one) => [`${one.name}: P`, `${one.name}: R`]);
  return scrolled(make("table", { class: "counts" },
    make("thead", {}, make("tr", {}, ...["type", ...heads].map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...data.scores.map(({ label, models }) => make("tr", {}, name(label ?? "all"),
      ...models.flatMap(({ p, r }) => [p, r].map((one) => make("td", {}, range(one.interval)))))))), "Intervals");
}

export function binTable(bins, of) {
  const heads = ["probability", "units", "mean", "right"];
  return scrolled(make("table", { class: "counts" },
    make("thead", {}, make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...bins.filter((bin) => bin.size).map(({ lower, upper, size, confidence, accuracy }) => make("tr", {},
      name(range([lower, upper])), ...[size.toLocaleString("en"), points(confidence), points(accuracy)].map((text) => make("td", {}, text)))))), `Bins, ${of}`);
}

export function significance(data) {
  if (data.p_value === null) return "";
  const p = data.p_value < 0.001 ? "p < 0.001" : `p = ${data.p_value.toFixed(3)}`;
  return make("p", {}, `The difference in F1 of all ${data.units}: ${p} (paired permutation test over sentences, two-sided).`);
}

export function confusionTable({ rows, moved }, labels, of) {
  const names = [...labels, ""];
  const most = Math.max(1, ...rows.flatMap((row, i) => row.filter((_, j) => i !== j)));
  const top = Math.max(1, ...rows.map((row, i) => row[i]));
  const cell = (count, i, j) => make("td", {
    class: i === j ? "most" : "wrong", "--a": 0.5 * (i === j ? count / top : count / most),
    title: moved[i][j] ? `${moved[i][j]} of them with different bounds` : undefined,
  }, count ? count.toLocaleString("en") : "");
  return scrolled(make("table", { class: "counts" },
    make("thead", {}, make("tr", {}, make("th", {}, "gold, predicted"),
      ...names.map((one) => make("th", { scope: "col", dir: "auto" }, one || "missed")))),
    make("tbody", {}, ...rows.map((row, i) => make("tr", {}, name(names[i] || "invented"), ...row.map((count, j) => cell(count, i, j)))))),
  `Confusion, ${of}`);
}

// Rows of counts of several models: F1, and the numbers that it is made of.
export function countTable(data, models, title) {
  const head = ["group", "gold", ...data.models.flatMap((one) => [`${one.name}: F1`, "right", "predicted"])];
  return scrolled(make("table", { class: "counts" },
    make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))),
    make("tbody", {}, ...models[0].map((row, i) => make("tr", {}, name(row.name), make("td", {}, row.gold.toLocaleString("en")),
      ...models.flatMap((own) => [own[i].f1 === null ? "" : points(own[i].f1), own[i].right, own[i].predicted].map((one) => make("td", {}, String(one)))))))), title);
}

// A row for all units and each type and length: F1 of each model in the four schemes.
export function schemeTable({ partial_credit: models, models: names }) {
  const schemes = Object.keys(models[0]);
  const groups = (part) => [...new Set(models.flatMap((own) => Object.keys(own.strict[part])))].sort();
  const row = (text, of) => make("tr", {}, name(text), ...models.flatMap((own) => schemes.map((scheme) => {
    const found = of(own[scheme]);
    return make("td", {}, found ? points(found.f) : "");
  })));
  const head = (text) => make("th", { scope: "col" }, text);
  return scrolled(make("table", { class: "scores" },
    make("thead", {}, make("tr", {}, make("td", {}), ...names.map((one, i) => make("th", { colspan: schemes.length, scope: "colgroup" }, key(i), one.name))),
      make("tr", {}, head("F1"), ...models.flatMap(() => schemes.map(head)))),
    make("tbody", {}, row("all", (found) => found),
      ...groups("per_type").map((label) => row(label, (found) => found.per_type[label])),
      ...groups("per_length").map((tokens) => row(tokens === "1" ? "1 token" : `${tokens} tokens`, (found) => found.per_length[tokens])))), "Partial credit");
}
