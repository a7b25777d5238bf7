// The view "Annotate": suggestions, and decisions about them, each of which is saved at once.

import { Away, ask } from "./api.js";
import { at, fail, make, recall, remember } from "./dom.js";
import { dropKeys, holdKeys, inField, replayKeys } from "./keys.js";
import { arm, armed, find, keyOf, labelOf, ordered, showLabels, startLabels, used } from "./labels.js";
import { closeMenu, openMenu } from "./menu.js";
import { comment, flag, showGuidelines, showNotes, startNotes } from "./notes.js";
import { listSoon, listTexts, markShown, startTexts } from "./texts.js";
import { showViews } from "./views.js";
import { words } from "./words.js";

const state = {
  trained: true, tags: false, least: 0.3, answer: null, text: null, before: new Map(), ended: null,
  open: 0, // requests whose answers are not shown yet
  past: [], place: -1, // the numbers of the texts that were shown, and which one is
  byKeys: true, // whether the focus was last moved by keys
};
const annotator = () => at("annotator").value.trim();
const busy = () => state.open > 0;

// One request after the other, in the name of who annotates now. Keys wait until the answers are shown.
let last = Promise.resolve();
let asked = 0;
const opened = `${Date.now()} ${Math.random()}`;
function request(path, body, place) {
  if (!annotator()) { fail(new Error("Who annotates? Write a name above.")); at("annotator").focus(); return last; }
  state.open += 1;
  at("status").textContent = "…";
  const whole = { annotator: annotator(), ...body };
  if (!path.endsWith("/text")) whole.key = `${opened} ${asked += 1}`; // an action that is sent again is done once
  last = last.then(() => perform(path, whole, place)).then(() => { state.open -= 1; replayKeys(busy); });
  return last;
}

async function perform(path, body, place) {
  try {
    const was = state.text;
    const answer = await answered(path, body);
    fail(null);
    count(answer.counts);
    if (answer.labels) learn(answer);
    const same = was?.text === answer.text;
    if (!same) state.before = new Map();
    show(answer, same ? place : undefined);
    const decided = body.decisions && body.decisions[0].verdict !== "skipped";
    at("status").textContent = !decided ? "" : same ? "Saved." : "Saved. The next text:";
    if (body.key) listSoon();
  } catch (error) {
    at("status").textContent = "";
    const left = dropKeys();
    fail(left ? new Error(`${error.message} (${left} keys after that did nothing.)`) : error);
  }
}

// Nothing is lost while the server is away: the request is sent again until it answers.
async function answered(path, body) {
  for (;;) {
    try {
      return await ask(path, body);
    } catch (error) {
      if (!(error instanceof Away)) throw error;
      fail(new Error(`${error.message} What you do is kept, and sent when it answers.`));
      await new Promise((resolve) => { setTimeout(resolve, 1000); });
    }
  }
}

const visit = (text) => request("api/annotation/text", { text });
const next = () => request("api/annotation/text", {});
const decide = (decisions, place, onward = !state.text.done) => request(
  "api/annotation/decide", { text: state.text.text, decisions, next: onward }, place,
);
const undo = () => request("api/annotation/undo", {});
const skip = () => decide([{ verdict: "skipped", start: 0, end: endOf(state.text.sentences.at(-1)) }], undefined, true);

// A tag is of one word, so that several words get it one by one.
function put(start, end, label) {
  used(label);
  const places = state.tags ? Array.from({ length: end - start }, (_, i) => [start + i, start + i + 1]) : [[start, end]];
  decide(places.map(([from, to]) => ({ verdict: "accepted", start: from, end: to, label })), end);
}

function back() {
  if (state.place > (state.text ? 0 : -1)) visit(state.past[state.text ? state.place -= 1 : state.place]);
}

function forth() {
  if (state.place + 1 < state.past.length) visit(state.past[state.place += 1]);
  else next();
}

function keep(number) {
  if (state.past[state.place] === number) return;
  state.past.splice(state.place + 1, Infinity, number);
  state.place = state.past.length - 1;
}

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
  const found = ordered().filter((other) => other !== label).map((one) => [one, () => put(start, end, one), keyOf(one)]);
  if (label) {
    found.unshift([`Wrong: not ${label}`, () => decide([{ verdict: "rejected", start, end, label }], start)]);
    if (!isAccepted(start, end, label)) found.unshift([`Right: ${label}`, () => put(start, end, label), keyOf(label)]);
  }
  if (!state.tags) found.push(["Nothing here", nothing(start, end), "0"]);
  if (isDecided(start, end)) found.push(["Undecided again", () => decide([{ verdict: "open", start, end }], start)]);
  return found;
}

// No token of the stretch is in a span: what was accepted there goes first.
const nothing = (start, end) => () => decide([
  { verdict: "open", start, end }, { verdict: "complete", start, end },
], start);

const isDecided = (start, end) => state.text.outside.some((i) => i >= start && i < end)
  || [...state.text.accepted, ...state.text.rejected].some((one) => one[0] < end && start < one[1]);

function asShown(sentence) {
  const accepted = items(sentence).filter((item) => !isAccepted(...item))
    .map(([start, end, label]) => ({ verdict: "accepted", start, end, label }));
  const rest = state.tags ? [] : [{ verdict: "complete", start: sentence.start, end: endOf(sentence) }];
  if (accepted.length + rest.length) decide([...accepted, ...rest], endOf(sentence));
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
  at("skip").disabled = answer.text === null;
  showNotes(answer.text, answer.notes ?? {});
  markShown(answer.text);
  if (answer.text !== null) keep(answer.text);
  at("back").disabled = state.place < (answer.text === null ? 0 : 1);
  if (answer.text === null) {
    at("result").replaceChildren(make("p", {}, "All texts are done."));
    at("undo").focus();
    return;
  }
  const problem = answer.problem ? [make("p", { class: "hint" }, `The model has no suggestions for this text: ${answer.problem}`)] : [];
  at("result").replaceChildren(...problem, ...answer.sentences.map(box));
  for (const sentence of answer.sentences) state.before.set(sentence.number, best(sentence));
  focusAt(place);
}

function box(sentence) {
  const view = {
    tokens: sentence.tokens, start: sentence.start, items: items(sentence), sure: sentence.sure,
    before: state.before.get(sentence.number), tags: state.tags, signal: state.ended.signal,
    required: state.text.accepted.map(([start, end]) => ({ start, end })),
    onSpan: ([start, end, label], element) => {
      if (state.tags && armed()) put(start, end, armed());
      else openMenu(element, textOf(sentence, start, end), choices(sentence, start, end, label));
    },
    onWords: (first, last, element) => {
      const [start, end] = [first + sentence.start, last + 1 + sentence.start];
      const tag = state.tags && items(sentence).find((item) => item[0] === start && item[1] === end)?.[2];
      if (armed()) put(start, end, armed());
      else openMenu(element, textOf(sentence, start, end), choices(sentence, start, end, tag));
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
  const suggests = state.tags ? items(sentence).some((item) => !isAccepted(...item)) : (state.trained && !state.text.problem) || items(sentence).length;
  const buttons = sentence.done ? [make("button", { type: "button", click: () => reopen(sentence) }, "Undecided again")]
    : [suggests && button("Right as shown", "d", asShown, true), !state.tags && button("Nothing else here", "n", nothingElse, !suggests)];
  return make("article", { class: `sentence${sentence.done ? " done" : ""}`, "data-number": sentence.number },
    shown, make("ul", { class: "chips", "aria-label": "Known to be wrong" }, ...chips),
    make("div", { class: "row" }, ...buttons.filter(Boolean)));
}

// After a decision the next suggestion, or the next word without a tag, has the focus, so that the
// keyboard alone suffices.
function focusAt(place) {
  const open = [...at("result").querySelectorAll(`.sentence:not(.done) ${state.tags ? ".word" : ".span:not(.required)"}`)]
    .filter((node) => !(state.tags && node.closest(".required")));
  const end = (node) => (state.tags ? Number(node.dataset.i) + sentenceOf(node).start + 1 : spanAt(node)[1]);
  const later = open.find((node) => place === undefined || end(node) > place);
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
  const selected = [...at("result").querySelectorAll(".word.selected")];
  const active = selected[0] ?? document.activeElement;
  const article = active.closest("#result article") ?? at("result").querySelector("article:not(.done)");
  if (!article) return null;
  const sentence = sentenceOf(article);
  const word = active.closest(".word");
  const span = active.closest(".span");
  if (!selected.length && span) return { sentence, item: spanAt(span) };
  const nodes = selected.length ? selected : word ? [word] : [];
  if (!nodes.length) return { sentence };
  const numbers = nodes.map((one) => Number(one.dataset.i) + sentence.start);
  return { sentence, item: [Math.min(...numbers), Math.max(...numbers) + 1] };
}

// A label goes to the selected words, or to what the keys are at; else it waits for the mouse.
function choose(label) {
  const item = state.text && target()?.item;
  if (item && (state.byKeys || at("result").querySelector(".selected"))) put(item[0], item[1], label);
  else arm(label === armed() ? "" : label);
}

const MOVES = ["Tab", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];
const ACTS = { u: undo, b: back, f: forth, g: flag, c: comment, "/": find };

function onKey(event) {
  if (event.target.closest("#menu") || inField(event.target) || event.ctrlKey || event.altKey || event.metaKey) return;
  if (MOVES.includes(event.key)) { state.byKeys = true; return; }
  const key = event.key.toLowerCase();
  const found = state.text && target();
  const [start, end, label] = found?.item ?? [];
  if (ACTS[key]) ACTS[key]();
  else if (key === "escape") arm("");
  else if (labelOf(key)) choose(labelOf(key));
  else if (key === "s" && state.text) skip();
  else if (key === "d" && found) asShown(found.sentence);
  else if (key === "n" && found && !state.tags) nothingElse(found.sentence);
  else if (key === "y" && label) put(start, end, label);
  else if (key === "x" && label) decide([{ verdict: "rejected", start, end, label }], start);
  else if (key === "0" && found?.item && !state.tags) nothing(start, end)();
  else return;
  event.preventDefault();
}

// The labels and whether there is a model: both may change while texts are annotated.
function learn(about) {
  state.trained = about.trained;
  state.tags = about.tags ?? state.tags;
  document.body.classList.toggle("of-tags", state.tags);
  showLabels(about.labels);
  at("begin").hidden = about.trained;
  at("from").hidden = !about.trained;
}

async function addLabel(label) {
  fail(null);
  try {
    learn(await ask("api/annotation/labels", { label }));
    if (state.answer) show(state.answer);
    return true;
  } catch (error) {
    fail(error);
    return false;
  }
}

function fromShare() {
  state.least = at("least").value / 100;
  at("share").textContent = `${at("least").value}%`;
  remember("least", at("least").value);
  if (state.answer) show(state.answer);
}

// A number after # in the address is that of the text to show first.
async function begin() {
  const [, number] = /^#(\d+)$/.exec(location.hash) ?? [];
  fail(null);
  Object.assign(state, { text: null, past: [], place: -1 }); // what is shown is another annotator's
  at("result").replaceChildren();
  try {
    const name = annotator();
    const about = await ask(`api/annotation${name ? `?annotator=${encodeURIComponent(name)}` : ""}`);
    at("annotator").value = about.annotator;
    learn(about);
    count(about.counts);
    listTexts().catch(fail);
    await (number ? visit(Number(number)) : next());
  } catch (error) {
    fail(error);
  }
}

holdKeys(busy);
document.addEventListener("keydown", onKey);
document.addEventListener("pointerdown", () => { state.byKeys = false; }, true);
addEventListener("beforeunload", (event) => { if (busy()) event.preventDefault(); });
startLabels(choose, addLabel);
startNotes(annotator, () => listTexts().catch(fail));
startTexts(annotator, visit);
at("list").open = at("beside").open = innerWidth > 1024;
showGuidelines().catch(fail);
at("back").addEventListener("click", back);
at("forth").addEventListener("click", forth);
at("least").addEventListener("input", fromShare);
at("skip").addEventListener("click", () => state.text && skip());
at("undo").addEventListener("click", undo);
at("annotator").addEventListener("change", () => {
  remember("annotator", annotator());
  begin();
});
at("annotator").value = recall("annotator") ?? "";
at("least").value = recall("least") ?? 30;
fromShare();
ask("api/models").then((answer) => showViews(answer.views)).catch(fail);
begin();
