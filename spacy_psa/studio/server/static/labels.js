// The bar of labels: a click or a key chooses one, and the filter finds one among many.

import { at, colour, make, rankLabels } from "./dom.js";

const KEYS = 9; // the first labels have a digit, which never changes
const state = { all: [], latest: [], armed: "", onChoose: () => {}, onAdd: () => {}, from: null };

export const armed = () => state.armed;
export const keyOf = (label) => {
  const rank = state.all.indexOf(label);
  return rank >= 0 && rank < KEYS ? `${rank + 1}` : "";
};
export const labelOf = (key) => (/^[1-9]$/.test(key) ? state.all[Number(key) - 1] : undefined);

// Few labels stay where they are; among many, those used last come first.
export const ordered = () => (state.all.length <= KEYS ? state.all
  : [...state.latest, ...state.all.filter((label) => !state.latest.includes(label))]);

export function used(label) {
  state.latest = [label, ...state.latest.filter((other) => other !== label)];
  show();
}

export function arm(label) {
  state.armed = label;
  show();
}

export function showLabels(all) {
  state.all = all;
  state.latest = state.latest.filter((label) => all.includes(label));
  if (!all.includes(state.armed)) state.armed = "";
  rankLabels(all);
  show();
}

const matching = () => {
  const part = at("label").value.trim().toLowerCase();
  const found = ordered().filter((label) => label.toLowerCase().includes(part));
  return [...found.filter((label) => label.toLowerCase().startsWith(part)),
    ...found.filter((label) => !label.toLowerCase().startsWith(part))];
};

function show() {
  at("names").replaceChildren(...matching().map((label) => make("li", {}, make("button", {
    type: "button", "--mark": colour(label), "aria-pressed": `${label === state.armed}`,
    "aria-keyshortcuts": keyOf(label) || undefined, click: () => state.onChoose(label),
  }, label, keyOf(label) ? make("kbd", { "aria-hidden": "true" }, keyOf(label)) : ""))));
  const name = at("label").value.trim();
  const known = state.all.some((label) => label.toLowerCase() === name.toLowerCase());
  at("add").hidden = !name || known;
  at("add").textContent = `Add “${name}”`;
}

function leave() {
  at("label").value = "";
  show();
  if (state.from?.isConnected) state.from.focus();
}

// The key of the filter: what had the focus gets it back, so that a label goes there.
export function find() {
  state.from = document.activeElement;
  at("label").focus();
}

// `onChoose(label)` arms a label or uses it; `onAdd(name)` adds one.
export function startLabels(onChoose, onAdd) {
  Object.assign(state, { onChoose, onAdd });
  at("label").addEventListener("input", show);
  at("label").addEventListener("keydown", (event) => {
    if (event.key === "Escape") { leave(); event.preventDefault(); }
  });
  at("more").addEventListener("submit", (event) => {
    event.preventDefault();
    const [first] = at("label").value.trim() ? matching() : [];
    if (first) { leave(); onChoose(first); } else if (!at("add").hidden) at("add").focus();
  });
  at("add").addEventListener("click", async () => {
    if (await onAdd(at("label").value.trim())) leave();
  });
}
