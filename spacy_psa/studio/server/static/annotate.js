// The view "Annotate": suggestions, and decisions about them, each of which is saved at once.

import { ask } from "./api.js";
import { hue, make, rankLabels } from "./dom.js";
import { closeMenu, openMenu } from "./menu.js";
import { watchTeach } from "./teach.js";
import { showViews } from "./views.js";
import { words } from "./words.js";

const at = (id) => document.getElementById(id);
const state = { labels: [], trained: true, least: 0.3, answer: null, text: null, busy: false, before: new Map(), ended: null };
const annotator = () => at("annotator").value.trim();

function fail(error) {
  at("error").textContent = error ? error.message : "";
  at("error").hidden = !error;
}

// One request after the other. A decision while another is on its way would be about what is no
// longer shown, so there is none.
let last = Promise.resolve();
function request(path, body, place) {
  if (state.busy && path.endsWith("/decide")) return last;
  last = last.then(() => perform(path, body, place));
  return last;
}

async function perform(path, body, place) {
  if (!annotator()) { fail(new Error("Who annotates? Write a name above.")); at("annotator").focus(); return; }
  state.busy = true; // until the text that it answers with is shown
  at("status").textContent = "…";
  fail(null);
  try {
    const answer = await ask(path, { annotator: annotator(), ...body });
    count(answer.counts);
    if (answer.done && path.endsWith("/decide")) {
      await perform("api/annotation/text", {});
      at("status").textContent = "Saved. The next text:";
      return;
    }
    state.before = state.text?.text === answer.text ? state.before : new Map();
    show(answer, place);
    at("status").textContent = path.endsWith("/decide") ? "Saved." : "";
  } catch (error) {
    at("status").textContent = "";
    fail(error);
  } finally {
    state.busy = false;
  }
}

const next = () => request("api/annotation/text", {});
const again = () => request("api/annotation/text", state.text ? { text: state.text.text } : {});
const decide = (decisions, place) => request("api/annotation/decide", { text: state.text.text, decisions }, place);

function count({ texts, done, decisions, skipped }) {
  at("progress").max = texts;
  at("progress").value = done;
  at("counts").textContent = `${done} of ${texts} texts done · ${decisions} decision${decisions === 1 ? "" : "s"} · ${skipped} skipped`;
}

const isAccepted = (start, end, label) => state.text.accepted.some((one) =>
  one[0] === start && one[1] === end && one[2] === label);
// The suggestions that are sure enough, and what is decided.
const best = (sentence) => sentence.analyses[0]?.items ?? [];
const items = (sentence) => best(sentence)
  .filter(([start, end, label, p]) => p >= state.least || isAccepted(start, end, label));
const endOf = (sentence) => sentence.start + sentence.tokens.length;
const textOf = (sentence, start, end) => sentence.tokens
  .slice(start - sentence.start, end - sentence.start).map((t) => t.join("")).join("").trim();

function choices(sentence, start, end, label) {
  const base = { start, end };
  const put = (verdict, one) => () => decide([{ verdict, ...base, label: one }], start);
  const found = [];
  if (label && !isAccepted(start, end, label)) found.push([`Right: ${label}`, put("accepted", label)]);
  if (label) found.push([`Wrong: not ${label}`, put("rejected", label)]);
  for (const one of state.labels.filter((other) => other !== label)) found.push([one, put("accepted", one)]);
  found.push(["Nothing here", nothing(start, end)]);
  if (isDecided(start, end)) found.push(["Undecided again", put("open", "")]);
  return found;
}

// No token of the stretch is in a span: what was accepted there goes first.
const nothing = (start, end) => () => decide([
  { verdict: "open", start, end }, { verdict: "complete", start, end },
], start);

const isDecided = (start, end) => state.text.outside.some((i) => i >= start && i < end)
  || [...state.text.accepted, ...state.text.rejected].some((one) => one[0] < end && start < one[1]);

function asShown(sentence) {
  decide([
    ...items(sentence).filter((item) => !isAccepted(...item)).map(([start, end, label]) => ({ verdict: "accepted", start, end, label })),
    { verdict: "complete", start: sentence.start, end: endOf(sentence) },
  ], endOf(sentence));
}

function nothingElse(sentence) {
  decide([{ verdict: "complete", start: sentence.start, end: endOf(sentence) }], endOf(sentence));
}

function reopen(sentence) {
  decide([{ verdict: "open", start: sentence.start, end: endOf(sentence) }], sentence.start);
}

function show(answer, place) {
  closeMenu();
  state.ended?.abort();
  state.ended = new AbortController();
  state.text = answer.text === null ? null : answer;
  state.answer = answer;
  at("actions").querySelector("#skip").disabled = answer.text === null;
  if (answer.text === null) {
    at("result").replaceChildren(make("p", {}, "All texts are done."));
    at("undo").focus();
    return;
  }
  at("result").replaceChildren(...answer.sentences.map(box));
  for (const sentence of answer.sentences) state.before.set(sentence.number, best(sentence));
  focusAt(place);
}

function box(sentence) {
  const view = {
    tokens: sentence.tokens, start: sentence.start, items: items(sentence), entropies: sentence.entropies,
    before: state.before.get(sentence.number), tags: false, signal: state.ended.signal,
    required: state.text.accepted.map(([start, end]) => ({ start, end })),
    onSpan: ([start, end, label], element) => openMenu(element, textOf(sentence, start, end), choices(sentence, start, end, label)),
    onWords: (first, last, element) => {
      const [start, end] = [first + sentence.start, last + 1 + sentence.start];
      openMenu(element, textOf(sentence, start, end), choices(sentence, start, end));
    },
  };
  const shown = words(view);
  const known = new Set(state.text.outside);
  shown.querySelectorAll(".word").forEach((node, i) => node.classList.toggle("outside", known.has(i + sentence.start)));
  const wrong = state.text.rejected.filter(([start]) => start >= sentence.start && start < endOf(sentence));
  const chips = wrong.map(([start, end, label]) => {
    const what = `${textOf(sentence, start, end)} is not ${label || "anything"}`;
    return make("li", {}, make("button", {
      type: "button", dir: "auto", "aria-label": `Take back: ${what}`,
      click: () => decide([{ verdict: "open", start, end }], start),
    }, `${what} ×`));
  });
  const button = (text, key, act, primary) => make("button", {
    type: "button", class: primary ? "primary" : undefined, "aria-keyshortcuts": key, click: () => act(sentence),
  }, text, make("kbd", {}, key.toUpperCase()));
  return make("article", { class: `sentence${sentence.done ? " done" : ""}`, "data-number": sentence.number },
    shown, make("ul", { class: "chips", "aria-label": "Known to be wrong" }, ...chips),
    make("div", { class: "row" }, ...(sentence.done ? [make("button", { type: "button", click: () => reopen(sentence) }, "Undecided again")]
      : state.trained ? [button("Right as shown", "d", asShown, true), button("Nothing else here", "n", nothingElse)]
        : [button("Nothing else here", "n", nothingElse, true)])));
}

// After a decision the next suggestion has the focus, so that the keyboard alone suffices.
function focusAt(place) {
  const open = [...at("result").querySelectorAll(".sentence:not(.done) .span:not(.required)")];
  const later = open.find((node) => place === undefined || spanAt(node)[1] > place);
  const first = [...at("result").querySelectorAll(".sentence:not(.done)")]
    .find((node) => place === undefined || endOf(sentenceOf(node)) > place);
  (later ?? open[0] ?? first?.querySelector(".word") ?? at("result")).focus({ preventScroll: false });
}

const sentenceOf = (element) => state.text.sentences[Number(element.closest("article").dataset.number)];

function spanAt(node) {
  const sentence = sentenceOf(node);
  const start = Number(node.querySelector(".word").dataset.i) + sentence.start;
  return items(sentence).find((item) => item[0] === start);
}

// What the keys are about: selected words, or the word or span with the focus.
function target() {
  const active = document.activeElement;
  const article = active.closest?.("#result article") ?? at("result").querySelector("article:not(.done)");
  if (!article) return null;
  const sentence = sentenceOf(article);
  const chosen = [...article.querySelectorAll(".word.selected")];
  const node = active.closest?.(".word");
  const span = active.closest?.(".span");
  if (!chosen.length && span) return { sentence, item: spanAt(span) };
  const nodes = chosen.length ? chosen : node ? [node] : [];
  if (!nodes.length) return { sentence };
  const numbers = nodes.map((one) => Number(one.dataset.i) + sentence.start);
  return { sentence, item: [Math.min(...numbers), Math.max(...numbers) + 1] };
}

function onKey(event) {
  const inField = event.target.closest("input, select, textarea, #menu");
  if (inField || event.ctrlKey || event.altKey || event.metaKey) return;
  const key = event.key.toLowerCase();
  if (key === "u") { undo(); event.preventDefault(); return; }
  if (!state.text) return;
  if (key === "s") { skip(); event.preventDefault(); return; }
  const found = target();
  if (!found) return;
  const [start, end, label] = found.item ?? [];
  const number = "1234567890".indexOf(key);
  if (key === "d") asShown(found.sentence);
  else if (key === "n") nothingElse(found.sentence);
  else if (found.item && key === "y" && label) decide([{ verdict: "accepted", start, end, label }], end);
  else if (found.item && key === "x" && label) decide([{ verdict: "rejected", start, end, label }], start);
  else if (found.item && key === "0") nothing(start, end)();
  else if (found.item && number >= 0 && state.labels[number]) {
    decide([{ verdict: "accepted", start, end, label: state.labels[number] }], end);
  } else return;
  event.preventDefault();
}

async function skip() {
  const length = endOf(state.text.sentences.at(-1));
  await request("api/annotation/decide", { text: state.text.text, decisions: [{ verdict: "skipped", start: 0, end: length }] });
  if (at("error").hidden) next();
}

const undo = () => request("api/annotation/undo", {});

function links() {
  for (const link of document.querySelectorAll("a[data-form]")) {
    const whose = at("whose").value ? `&annotator=${encodeURIComponent(at("whose").value)}` : "";
    link.href = `api/annotation/export?form=${link.dataset.form}${whose}`;
  }
}

// The labels, with colours by rank and a key for the first nine, and whether there is a model.
function learn(about) {
  state.labels = about.labels;
  state.trained = about.trained;
  rankLabels(about.labels);
  at("names").replaceChildren(...about.labels.map((label, i) => make("li", { "--hue": hue(label) },
    label, i < 9 ? make("kbd", {}, `${i + 1}`) : "")));
  at("digits").replaceChildren(...about.labels.slice(0, 9).flatMap((label, i) => [make("kbd", {}, `${i + 1}`), ` (${label}) `]));
  at("begin").hidden = about.trained;
  at("from").hidden = !about.trained;
}

async function taught() {
  try { learn(await ask(`api/annotation?annotator=${encodeURIComponent(annotator())}`)); } catch (error) { fail(error); }
  again();
}

async function addLabel(event) {
  event.preventDefault();
  const label = at("label").value.trim();
  if (!label) return;
  fail(null);
  try {
    learn(await ask("api/annotation/labels", { label }));
    at("label").value = "";
    if (state.answer) show(state.answer);
  } catch (error) {
    fail(error);
  }
}

function fromShare() {
  state.least = at("least").value / 100;
  at("share").textContent = `${at("least").value}%`;
  try { localStorage.setItem("least", at("least").value); } catch { /* then it is the default again */ }
  if (state.answer) show(state.answer);
}

async function begin() {
  fail(null);
  state.text = null; // what is shown is another annotator's
  at("result").replaceChildren();
  try {
    const name = annotator();
    const about = await ask(`api/annotation${name ? `?annotator=${encodeURIComponent(name)}` : ""}`);
    at("annotator").value = about.annotator;
    learn(about);
    at("whose").replaceChildren(make("option", { value: "" }, "all annotators, where they agree"),
      ...about.annotators.map((one) => make("option", {}, one)));
    links();
    count(about.counts);
    watchTeach(about.teach, taught);
    await next();
  } catch (error) {
    fail(error);
  }
}

document.addEventListener("keydown", onKey);
at("more").addEventListener("submit", addLabel);
at("least").addEventListener("input", fromShare);
at("skip").addEventListener("click", () => state.text && skip());
at("undo").addEventListener("click", undo);
at("whose").addEventListener("change", links);
at("annotator").addEventListener("change", () => {
  try { localStorage.setItem("annotator", annotator()); } catch { /* then it is asked again */ }
  begin();
});
try { at("annotator").value = localStorage.getItem("annotator") ?? ""; } catch { /* none is kept */ }
at("least").value = 30;
try { at("least").value = localStorage.getItem("least") ?? 30; } catch { /* none is kept */ }
fromShare();
ask("api/models").then((answer) => showViews(answer.views)).catch(fail);
begin();
