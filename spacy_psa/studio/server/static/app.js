// The view "Analyse": a text, its analyses by the model, and evidence by clicks.

import { ask } from "./api.js";
import { heatMap } from "./attention.js";
import { at, fail, make, percent, rankLabels } from "./dom.js";
import { openMenu } from "./menu.js";
import { treePicture } from "./tree.js";
import { showViews } from "./views.js";
import { words } from "./words.js";

const SOME = 40; // sentences in an answer
const state = { models: [], text: "", evidence: [], sentences: new Map(), asked: new Set(), boxes: [], turn: 0 };

const model = () => state.models.find((one) => one.name === at("model").value);

const request = (sentences, limit) => ask("api/analyse", {
  text: state.text, model: model().name, evidence: state.evidence, sentences, limit, k: Number(at("k").value),
});

// Sentences are asked for, some at a time, when they come near to what is seen.
const near = new IntersectionObserver((entries) => {
  const seen = entries.filter((one) => one.isIntersecting && !state.asked.has(Number(one.target.dataset.number)));
  if (seen.length) fetchFrom(Number(seen[0].target.dataset.number));
}, { rootMargin: "1000px" });

async function fetchFrom(number) {
  const { turn } = state;
  const wanted = [...Array(SOME).keys()].map((i) => number + i)
    .filter((i) => i < state.boxes.length && !state.asked.has(i));
  wanted.forEach((i) => state.asked.add(i));
  try {
    const answer = await request(wanted);
    if (turn === state.turn) answer.sentences.forEach(enter);
  } catch (error) {
    if (turn !== state.turn) return;
    wanted.forEach((i) => state.asked.delete(i));
    fail(error);
  }
}

function enter(sentence) {
  const box = state.boxes[sentence.number];
  near.unobserve(box);
  const entry = { data: sentence, before: {}, box };
  state.sentences.set(sentence.number, entry);
  state.asked.add(sentence.number);
  show(entry);
}

async function analyse() {
  fail(null);
  if (!at("text").value.trim()) {
    at("status").textContent = "The text is empty: paste or type one.";
    return;
  }
  state.text = at("text").value;
  state.evidence = [];
  at("status").textContent = "…";
  state.turn += 1;
  const { turn } = state;
  try {
    const answer = await request(null, SOME);
    if (turn !== state.turn) return; // a later text was sent meanwhile
    rankLabels(...model().components.map((component) => component.labels));
    near.disconnect();
    state.sentences.clear();
    state.asked.clear();
    state.boxes = Array.from({ length: answer.count }, (_, i) => make("article", { class: "sentence", "data-number": i }));
    at("result").replaceChildren(...state.boxes);
    answer.sentences.forEach(enter);
    state.boxes.slice(answer.sentences.length).forEach((box) => near.observe(box));
    at("help").hidden = false;
    const count = answer.count === 1 ? "1 sentence" : `${answer.count} sentences`;
    at("status").textContent = model().components.length ? count
      : `The model ${model().name} has no component of spacy-psa to show: open one with crf_ner, crf_spans, crf_chunker, crf_tagger or constituency_parser.`;
  } catch (error) {
    at("status").textContent = "";
    fail(error);
  }
}

// Changes the evidence and shows what follows; evidence that no analysis agrees with is taken back.
// One change waits for the other, so that it is taken back alone.
let changing = Promise.resolve();
function given(number, change) {
  const { turn } = state;
  changing = changing.then(() => turn === state.turn && changed(number, change));
  return changing;
}

async function changed(number, change) {
  const old = state.evidence;
  const { turn } = state;
  state.evidence = change(old);
  fail(null);
  try {
    const answer = await request([number]);
    const entry = state.sentences.get(number);
    if (turn !== state.turn) return;
    entry.before = entry.data.components;
    [entry.data] = answer.sentences;
    show(entry);
    entry.box.querySelector(".word, .node")?.focus({ preventScroll: true });
  } catch (error) {
    if (turn === state.turn) state.evidence = old;
    fail(error);
  }
}

const within = (entry, one) => one.start >= entry.data.start
  && one.start < entry.data.start + entry.data.tokens.length;
const same = (one, other) => one.component === other.component && one.start === other.start
  && one.end === other.end && one.label === other.label;
const textOf = (entry, start, end) => entry.data.tokens
  .slice(start - entry.data.start, end - entry.data.start).map((t) => t.join("")).join("").trim();

function put(entry, one) {
  const number = entry.data.number;
  given(number, (old) => {
    const kept = old.filter((other) => !same(one, other) && !(one.required && other.required
      && other.component === one.component && excludes(one, other)));
    return [...kept, one];
  });
}

// Whether no analysis of their component has both spans.
function excludes(one, other) {
  if (one.start >= other.end || other.start >= one.end) return false;
  const { kind } = model().components.find(({ name }) => name === one.component);
  if (kind === "layers") return one.label === other.label;
  if (kind !== "nested") return true;
  const inside = (a, b) => a.start >= b.start && a.end <= b.end;
  return inside(one, other) === inside(other, one); // neither, or both: equal bounds
}

function choices(entry, component, start, end, label) {
  const base = { component: component.name, start, end };
  const found = [];
  if (label) {
    found.push([`Right: ${label}`, () => put(entry, { ...base, label, required: true })]);
    found.push([`Wrong: not ${label}`, () => put(entry, { ...base, label, required: false })]);
  }
  for (const one of component.labels.filter((other) => other !== label)) {
    found.push([one, () => put(entry, { ...base, label: one, required: true })]);
  }
  if (component.kind !== "tags") {
    found.push(["Nothing here", () => put(entry, { ...base, label: "", required: false })]);
  }
  return found;
}

const attention = (entry, word) => [
  `Attention of “${entry.data.tokens[word][0]}”`, () => attend(entry, word),
];

async function attend(entry, word) {
  fail(null);
  try {
    const answer = await ask("api/attention", {
      text: state.text, sentence: entry.data.number, model: model().name,
    });
    entry.box.querySelector(".heat")?.remove();
    entry.box.append(heatMap(answer, entry.data.tokens, word));
  } catch (error) {
    fail(error);
  }
}

function show(entry) {
  entry.ended?.abort();
  entry.ended = new AbortController();
  entry.box.replaceChildren(...model().components.flatMap((component) => {
    const answer = entry.data.components[component.name];
    if (!answer) return [];
    const part = component.kind === "trees" ? trees(entry, component, answer) : chain(entry, component, answer);
    return [make("section", { class: "component" }, make("h2", {}, component.name), ...part)];
  }), chips(entry));
  if (!model().components.length) entry.box.append(make("div", { class: "words", dir: "auto" }, textOf(entry, entry.data.start, Infinity)));
}

function chain(entry, component, answer) {
  const [best, ...others] = answer.analyses;
  if (!best) return [];
  const required = state.evidence.filter((one) => one.required && one.component === component.name);
  const view = {
    tokens: entry.data.tokens, start: entry.data.start, items: best.items, sure: answer.sure,
    before: entry.before[component.name]?.analyses[0]?.items, required, tags: component.kind === "tags",
    signal: entry.ended.signal,
    onSpan: ([start, end, label], element, word) => openMenu(element, textOf(entry, start, end),
      [...choices(entry, component, start, end, label), attention(entry, word)]),
    onWords: (first, last, element) => {
      const [start, end] = [first + entry.data.start, last + 1 + entry.data.start];
      const found = choices(entry, component, start, end);
      if (first === last) found.push(attention(entry, first));
      openMenu(element, textOf(entry, start, end), found);
    },
  };
  const rows = [best, ...others].map(({ probability, items }) => make("tr", {},
    make("td", { class: "number" }, percent(probability)),
    make("td", { dir: "auto" }, items.map(([s, e, label]) => `${textOf(entry, s, e)} (${label})`).join(", ") || "nothing")));
  const facts = `Probability of the best analysis: ${percent(best.probability)} · entropy ${(answer.entropy / Math.LN2).toFixed(2)} bits`
    + (answer.evidence < 1 - 1e-9 ? ` · probability of the evidence before: ${percent(answer.evidence)}` : "");
  const found = [words(view), make("details", {}, make("summary", {}, facts), make("table", {}, ...rows))];
  if (answer.sets) found.push(sets(entry, component, answer.sets));
  return found;
}

// What is true is among these with the probability that `calibrate --coverage` promised.
function sets(entry, component, { level, items }) {
  const places = new Map();
  for (const [start, end, label, probability] of items) {
    const key = `${start} ${end}`;
    if (!places.has(key)) places.set(key, { text: textOf(entry, start, end), labels: [] });
    places.get(key).labels.push([probability, label]);
  }
  const open = [...places.values()].filter(({ labels }) => component.kind !== "tags" || labels.length > 1);
  const rows = open.map(({ text, labels }) => make("tr", {}, make("td", { dir: "auto" }, text),
    make("td", {}, labels.sort((a, b) => b[0] - a[0]).map(([p, label]) => `${label} ${percent(p)}`).join(" or "))));
  const what = component.kind !== "tags" ? "true spans are among these" : "true tags are the shown ones or one of these";
  return make("details", { class: "sets" }, make("summary", {}, `${Math.round(level * 1000) / 10}% of ${what}: ${rows.length}`),
    make("table", {}, ...rows));
}

function trees(entry, component, answer) {
  if (!answer.trees.length) return [make("p", { class: "hint" }, "This sentence is not parsed.")];
  const box = make("div");
  const paint = (i) => {
    const { probability, tree } = answer.trees[i];
    const step = (by) => make("button", {
      type: "button", "aria-label": by < 0 ? "Better tree" : "Next tree",
      disabled: !answer.trees[i + by], click: () => paint(i + by),
    }, by < 0 ? "‹" : "›");
    box.replaceChildren(make("div", { class: "row" }, step(-1), step(1),
      make("span", { class: "hint" }, `tree ${i + 1} of ${answer.trees.length}: ${percent(probability)}`)),
    typeof tree === "number" ? "" : treePicture(tree, entry.data.tokens, entry.data.start, (node, shape, fold) =>
      openMenu(shape, textOf(entry, node.from, node.to), [
        ["Fold", fold], ...choices(entry, component, node.from, node.to, node.label),
      ])));
  };
  paint(0);
  return [box];
}

function chips(entry) {
  const own = state.evidence.filter((one) => within(entry, one));
  return make("ul", { class: "chips", "aria-label": "Evidence" }, ...own.map((one) => {
    const what = `${one.required ? "is" : "is not"} ${one.label || "anything"}`;
    const text = textOf(entry, one.start, one.end);
    return make("li", {}, make("button", {
      type: "button", dir: "auto", "aria-label": `Take back: ${text} ${what}`,
      click: () => given(entry.data.number, (old) => old.filter((other) => other !== one)),
    }, `${text} ${what} ×`));
  }));
}

at("form").addEventListener("submit", (event) => { event.preventDefault(); analyse(); });
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); analyse(); }
});
at("example").addEventListener("click", () => { at("text").value = model().example; analyse(); });
at("model").addEventListener("change", () => { at("example").hidden = !model().example; });
for (const id of ["model", "k"]) at(id).addEventListener("change", () => { if (state.text) analyse(); });
ask("api/models").then((answer) => {
  state.models = answer.models;
  showViews(answer.views);
  at("model").append(...answer.models.map((one) => make("option", {}, one.name)));
  at("example").hidden = !model().example;
}).catch(fail);
