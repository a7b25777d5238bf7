// The list of texts: a search, a filter, and a page of texts at a time.

import { ask } from "./api.js";
import { at, fail, make } from "./dom.js";

const state = { annotator: () => "", visit: () => {}, shown: null, first: 0, size: 0, asking: null, again: false };
const MARKS = { done: "✓", skipped: "↷" };

function row({ text, words, state: how, flagged, comments }) {
  const marks = [MARKS[how], flagged ? "⚑" : "", comments ? "✎" : ""].filter(Boolean).join(" ");
  const said = [`Text ${text}`, how, flagged ? "flagged" : "", comments ? "with comments" : ""].filter(Boolean).join(", ");
  return make("li", {}, make("button", {
    type: "button", "data-text": text, "aria-current": text === state.shown ? "true" : undefined,
    "aria-label": `${said}: ${words}`, dir: "auto", click: () => state.visit(text),
  }, make("span", { class: "hint", "aria-hidden": "true" }, `${text} ${marks} `), words));
}

// One question at a time; after its answer comes the last of those that were asked meanwhile.
export async function listTexts() {
  if (!state.annotator() || !at("list").open) return;
  state.again = Boolean(state.asking);
  state.asking ??= answers().finally(() => { state.asking = null; });
  await state.asking;
}

async function answers() {
  do {
    state.again = false;
    const body = { annotator: state.annotator(), search: at("search").value, filter: at("filter").value, first: state.first };
    show(await ask("api/annotation/texts", body, { quiet: true }));
  } while (state.again);
}

let timer = 0;
export function listSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => listTexts().catch(fail), 200);
}

function show({ total, first, size, rows }) {
  Object.assign(state, { first, size });
  at("texts").replaceChildren(...rows.map(row));
  at("found").textContent = total ? `${first + 1} to ${first + rows.length} of ${total}` : "There are none.";
  at("earlier").disabled = !first;
  at("later").disabled = first + rows.length >= total;
}

export function markShown(number) {
  state.shown = number;
  for (const node of at("texts").querySelectorAll("button")) {
    if (Number(node.dataset.text) === number) node.setAttribute("aria-current", "true");
    else node.removeAttribute("aria-current");
  }
}

// `visit(number)` shows a text.
export function startTexts(annotator, visit) {
  Object.assign(state, { annotator, visit });
  at("list").open = matchMedia("(width > 64rem)").matches; // else it would lie above the text
  const list = () => {
    at("texts").setAttribute("aria-busy", "true");
    listTexts().catch(fail).finally(() => at("texts").removeAttribute("aria-busy"));
  };
  const again = () => { state.first = 0; list(); };
  const turn = (by) => { state.first = Math.max(0, state.first + by); list(); };
  at("search").addEventListener("input", again);
  at("filter").addEventListener("change", again);
  at("list").addEventListener("toggle", list);
  at("earlier").addEventListener("click", () => turn(-state.size));
  at("later").addEventListener("click", () => turn(state.size));
}
