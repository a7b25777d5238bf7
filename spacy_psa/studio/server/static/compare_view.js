// The whole comparison, from the data of `spacy-psa compare`.

import { errorBrowser } from "./compare_errors.js";
import { bars, key, reliability } from "./compare_figures.js";
import { binTable, confusionTable, countTable, intervalTable, schemeTable, scoreTable, significance } from "./compare_tables.js";
import { make, rankLabels } from "./dom.js";

const number = (value) => value.toLocaleString("en");
const part = (title, ...content) => make("section", {}, make("h2", {}, title), ...content);
const figures = (...content) => make("div", { class: "figures" }, ...content);
const named = (data, model, ...content) => make("div", {}, make("h3", {}, key(model), data.models[model].name), ...content);
const note = (text) => make("p", { class: "hint" }, text);
const folded = (title, table) => make("details", {}, make("summary", {}, title), table);
const SCHEMES = "Percent. What is right: strict, bounds and type; exact, bounds; partial, bounds, and half for an overlap; type, the type with an overlap.";
const SEEN = "Three groups: units that the training data has with this type; other units all of whose words it has; units with a new word.";

export function showComparison(root, data) {
  const { gold, models, units } = data;
  rankLabels(data.labels);
  const of = models.map((one) => `${one.name} (${one.component})`).join(" and ");
  root.replaceChildren(
    make("p", {}, `${of} on ${gold.path}: ${number(gold.units)} gold ${units} in ${number(gold.sentences)} sentences, ${number(gold.tokens)} words.`),
    part("Scores", scoreTable(data), significance(data),
      note("Percent. Intervals are 95% bootstrap intervals over sentences."), folded("Intervals of P and R", intervalTable(data))),
    part("Partial credit", schemeTable(data), note(SCHEMES)),
    part("Confusion", figures(...data.confusion.map((one, i) => named(data, i, confusionTable(one, data.labels, data.models[i].name)))),
      note("Overlapping units count as a pair, even if their bounds differ.")),
    part("Calibration", figures(...data.calibration.map((one, i) => named(data, i, ...calibration(one, i, data.models[i].name)))),
      note("How many of the predicted units are right, by their probability; on the broken line, probabilities are calibrated. The low bars show the number of units, on a log scale.")),
    part("F1 by the length of sentences", ...counts(data, data.lengths, "tokens", (row) => `, ${number(row.sentences)} sentences`)),
    part("F1 by words seen in training", ...(data.seen ? [...counts(data, data.seen, "words", () => ""), note(SEEN)]
      : [note("Left out: no training data was given (--train).")])),
    part("Errors", ...errorBrowser(data)),
  );
}

function calibration(found, model, name) {
  const measures = { ece: "ECE", ece_adaptive: "ECE, adaptive bins", brier: "Brier" };
  if (!found) return [note("This component has no probabilities.")];
  const values = Object.entries(measures).filter(([name]) => found[name] !== null)
    .map(([name, text]) => `${text} ${found[name].toFixed(4)}`);
  return [reliability(found, model), note(values.join(" · ")), folded("Numbers", binTable(found.bins, name))];
}

function counts(data, models, unit, more) {
  const groups = models[0].map((row, i) => ({
    name: row.name, values: models.map((own) => own[i].f1),
    notes: models.map((own, m) => `${data.models[m].name}, ${row.name}: F1 ${(100 * own[i].f1).toFixed(2)}, ${number(own[i].gold)} gold${more(own[i])}`),
  }));
  return [bars(groups, `F1 by ${unit}`), make("p", { class: "kinds" }, ...data.models.map((one, i) => make("span", {}, key(i), one.name))),
    folded("Numbers", countTable(data, models, `F1 by ${unit}`))];
}
