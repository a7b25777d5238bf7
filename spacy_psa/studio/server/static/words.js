// The words of a sentence with its spans or tags, and the selection of words.

import { colour, make, nested, percent } from "./dom.js";

const asWord = (element) => element?.closest?.(".word");

// `view`: {tokens, start, items, before, sure, required, onSpan(item, element, word), onWords(first, last, element)}
export function words(view) {
  const { tokens, start, items, sure } = view;
  const box = make("div", { class: "words", dir: "auto", role: "group", "aria-label": "Words" });
  const nodes = tokens.map(([text], i) => make("span", {
    class: "word", tabindex: i ? "-1" : "0", "data-i": i,
    "--doubt": Math.min(1, 2 * (1 - sure[i])),
    title: `${percent(sure[i])} sure`,
  }, text));
  const owners = new Map();
  const { parts, depth } = nested(items, start, start + tokens.length, (i) => [nodes[i - start], tokens[i - start][1]],
    (item, inside, deep) => {
      const node = spanNode(view, item, inside, deep);
      owners.set(node, item);
      return node;
    });
  box.style.setProperty("--depth", depth);
  box.append(...parts, tokens.at(-1)?.[1] ?? "");
  select(view, box, nodes, owners);
  return box;
}

function spanNode(view, item, parts, depth) {
  const [from, to, label, p] = item;
  const known = view.required.some((one) => one.start === from && one.end === to);
  const old = view.before?.find((one) => one[0] === from && one[1] === to && one[2] === label);
  const children = [label, " ", percent(p)];
  if (view.before && !old) children.push(make("span", { class: "change" }, " new"));
  else if (old && Math.abs(old[3] - p) >= 0.005) {
    children.push(make("span", { class: "change" }, ` was ${percent(old[3])}`));
  }
  const node = make("span", {
    class: `span${known ? " required" : ""}${view.tags ? " tagged" : ""}`,
    role: "button", tabindex: view.tags ? "-1" : "0",
    "--mark": colour(label), "--p": p, "--depth": depth,
    "aria-label": `${parts.map((part) => part.textContent ?? part).join("")}, ${label}, ${percent(p)}`,
  }, view.tags ? make("span", {}, ...parts) : "", ...(view.tags ? [] : parts),
  make("span", { class: "name" }, ...children));
  node.addEventListener("keydown", (event) => {
    if (event.target === node && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      view.onSpan(item, node, item[0] - view.start);
    }
  });
  return node;
}

function select(view, box, nodes, owners) {
  let first = null;
  let last = null;
  let pressed = false;
  const show = () => nodes.forEach((node, i) => node.classList.toggle("selected",
    first !== null && i >= Math.min(first, last) && i <= Math.max(first, last)));
  const choose = () => view.onWords(Math.min(first, last), Math.max(first, last), nodes[last]);
  const go = (to) => {
    nodes.forEach((node, i) => { node.tabIndex = i === to ? 0 : -1; });
    nodes[to].focus();
  };
  const over = (event) => asWord(document.elementFromPoint(event.clientX, event.clientY));
  box.addEventListener("pointerdown", (event) => {
    const node = asWord(event.target);
    if (!node || event.button) return;
    pressed = true;
    first = last = Number(node.dataset.i);
    show();
  });
  box.addEventListener("pointermove", (event) => {
    const node = pressed && over(event);
    if (node && box.contains(node)) { last = Number(node.dataset.i); show(); }
  });
  box.addEventListener("pointercancel", () => { pressed = false; });
  box.addEventListener("click", (event) => {
    const was = pressed;
    pressed = false;
    const span = event.target.closest(".span");
    if (span && first === last) {
      const item = owners.get(span);
      view.onSpan(item, span, first ?? item[0] - view.start);
    } else if (was) { go(last); choose(); }
  });
  // After a drag over several words the click goes to their common parent, or nowhere.
  document.addEventListener("pointerup", (event) => {
    if (pressed && first !== last && !event.defaultPrevented) { pressed = false; go(last); choose(); }
  }, { signal: view.signal });
  box.addEventListener("keydown", (event) => {
    const node = asWord(event.target);
    if (!node) return;
    const at = Number(node.dataset.i);
    const forward = getComputedStyle(box).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
    const back = forward === "ArrowRight" ? "ArrowLeft" : "ArrowRight";
    const to = { [forward]: at + 1, [back]: at - 1, Home: 0, End: nodes.length - 1 }[event.key];
    if (to !== undefined && nodes[to]) {
      if (event.shiftKey) { first ??= at; last = to; } else { first = last = null; }
      show();
      go(to);
    } else if (event.key === "Enter" || event.key === " ") {
      if (first === null) { first = last = at; show(); }
      choose();
    } else if (event.key === "Escape") { first = last = null; show(); } else return;
    event.preventDefault();
  });
}
