// The errors of a comparison: filters, order, and a list that grows when its end comes near.

import { key } from "./compare_figures.js";
import { colour, make, nested, percent } from "./dom.js";

const MORE = 40; // errors that are added at a time
const AROUND = 60; // words that are shown before and after what is wrong

export function errorBrowser(data) {
  const names = data.models.map((one) => one.name);
  const select = (id, label, options) => {
    const field = make("select", { id, change: () => show() }, ...options.map(([value, text]) => make("option", { value }, text)));
    return [make("label", {}, label, field), field];
  };
  const who = names.length < 2 ? [["any", names[0]]] : [["any", "either model"], ["both", "both models"],
    ...names.flatMap((name, i) => [[`is${i}`, name], [`only${i}`, `only ${name}`]])];
  const [whoLabel, whoField] = select("who", "Who is wrong", who);
  const [kindLabel, kindField] = select("kind", "Kind", [["", "all kinds"], ...data.kinds.map((kind) => [kind, kind])]);
  const [typeLabel, typeField] = select("type", "Type", [["", "all types"], ...data.labels.map((label) => [label, label])]);
  const [orderLabel, orderField] = select("order", "Order", [["most", "surest first"], ["least", "least sure first"], ["text", "as in the corpus"]]);
  const find = make("input", { id: "find", type: "search", dir: "auto", input: () => show() });
  const status = make("p", { id: "found", role: "status", class: "hint" });
  const list = make("div", { id: "errors" });
  const more = make("button", { type: "button", id: "more", click: () => grow() }, "More");
  let chosen = [];
  let shown = 0;

  // The models whose errors count under the present choice; none if the case does not count.
  function counted(error) {
    const { value } = whoField;
    const wrong = names.map((_, i) => i).filter((i) => error.wrong[i]);
    if (value === "any") return wrong;
    if (value === "both") return wrong.length === names.length ? wrong : [];
    const model = Number(value.at(-1));
    if (!error.wrong[model] || (value.startsWith("only") && wrong.length > 1)) return [];
    return [model];
  }

  function fits(error, models) {
    const kind = kindField.value;
    const type = typeField.value;
    if (!models.length || (kind && !models.some((i) => error.kinds[i] === kind))) return false;
    if (type && ![error.gold, ...models.map((i) => error.found[i])].some((unit) => unit?.[2] === type)) return false;
    const text = find.value.trim().toLocaleLowerCase();
    return !text || textOf(data.sentences[error.sentence].tokens).toLocaleLowerCase().includes(text);
  }

  function show() {
    chosen = data.errors.map((error, place) => ({ error, place, models: counted(error) }))
      .filter(({ error, models }) => fits(error, models));
    for (const one of chosen) one.sure = Math.max(...one.models.map((i) => one.error.sure[i] ?? -1));
    const sign = { most: -1, least: 1, text: 0 }[orderField.value];
    const rank = (one) => (one.sure < 0 ? Infinity : sign * one.sure); // who is not sure comes last
    if (sign) chosen.sort((a, b) => (rank(a) === rank(b) ? a.place - b.place : rank(a) - rank(b)));
    status.textContent = `${chosen.length.toLocaleString("en")} of ${data.errors.length.toLocaleString("en")} errors`;
    shown = 0;
    list.replaceChildren();
    grow();
    if (list.firstChild) list.firstChild.tabIndex = 0;
  }

  function grow() {
    list.append(...chosen.slice(shown, shown + MORE).map(({ error }) => errorBox(data, error)));
    shown = list.childElementCount;
    more.hidden = shown >= chosen.length;
  }

  list.addEventListener("keydown", (event) => {
    const box = event.target.closest("article");
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (!step || event.target !== box) return;
    if (step.startsWith("next") && !box.nextElementSibling) grow();
    const next = box[step];
    if (!next) return;
    event.preventDefault();
    box.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
  new IntersectionObserver((entries) => {
    if (entries.some((one) => one.isIntersecting) && shown < chosen.length) grow();
  }, { rootMargin: "1500px" }).observe(more);
  show();
  return [make("div", { class: "filters", role: "search", "aria-label": "Errors" }, names.length > 1 ? whoLabel : "",
    kindLabel, typeLabel, orderLabel, make("label", {}, "Words", find)), status, list, more];
}

const textOf = (tokens) => tokens.map((token) => token.join("")).join("").trim();
const same = (one, other) => one[0] === other[0] && one[1] === other[1] && one[2] === other[2];

function errorBox(data, error) {
  const sentence = data.sentences[error.sentence];
  const kinds = data.models.map((model, i) => {
    const sure = error.sure[i] === null ? "" : `, ${percent(error.sure[i])} sure`;
    const what = error.wrong[i] ? make("b", {}, error.kinds[i]) : make("span", { class: "right" }, "right");
    return make("span", {}, key(i), `${model.name}: `, what, sure);
  });
  const lines = [["gold", error.gold, sentence.gold],
    ...data.models.map((model, i) => [model.name, error.found[i], sentence.found[i]])];
  return make("article", { class: "error", tabindex: "-1", "aria-label": `Sentence ${error.sentence + 1}` },
    make("div", { class: "kinds" }, make("span", { class: "hint" }, `sentence ${error.sentence + 1}`), ...kinds),
    ...lines.map(([name, own, units]) => make("div", { class: "line" }, make("span", {}, name),
      sentenceLine(sentence.tokens, data.units === "tags" ? [own].filter(Boolean) : units, own, error.units))),
    posteriorTable(data, error, sentence));
}

function sentenceLine(tokens, units, own, near) {
  const first = Math.max(0, Math.min(...near.map((unit) => unit[0])) - AROUND);
  const last = Math.min(tokens.length, Math.max(...near.map((unit) => unit[1])) + AROUND);
  // A unit that is wrong comes before others over the same words.
  const ordered = [...units].sort((one, other) => Boolean(own && same(other, own)) - Boolean(own && same(one, own)));
  const { parts, depth } = nested(ordered, first, last, (i) => tokens[i], (unit, inside, deep) => {
    const here = own && same(unit, own);
    return make("span", { class: `span${here ? " here" : ""}`, "--mark": colour(unit[2]), "--p": here ? 1 : 0.3, "--depth": deep },
      ...inside, make("span", { class: "name" }, unit[2]));
  });
  return make("div", { class: "words", dir: "auto", "--depth": depth }, first ? "… " : "", ...parts,
    last < tokens.length ? " …" : "");
}

function posteriorTable(data, error, sentence) {
  const models = data.models.map((_, i) => i).filter((i) => error.posteriors[i]);
  if (!models.length) return "";
  const owners = (unit) => [["gold", error.gold], ...data.models.map((model, i) => [model.name, error.found[i]])]
    .filter(([, own]) => own && same(own, unit)).map(([name]) => name).join(", ");
  return make("table", { class: "posteriors" },
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "probability of"), make("th", { scope: "col" }, "found by"),
      ...models.map((i) => make("th", { scope: "col" }, key(i), data.models[i].name)))),
    make("tbody", {}, ...error.units.map((unit, j) => make("tr", {},
      make("td", { dir: "auto" }, `${textOf(sentence.tokens.slice(unit[0], unit[1]))} (${unit[2]})`),
      make("td", { class: "hint" }, owners(unit)),
      ...models.map((i) => make("td", { class: "number", title: String(error.posteriors[i][j]) }, percent(error.posteriors[i][j])))))));
}
