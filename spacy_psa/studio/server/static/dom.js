// Finds and makes elements. Text is always text, never HTML.

export const at = (id) => document.getElementById(id);

// Shows an error at the top of a page; null hides it.
export function fail(error) {
  at("error").textContent = error ? error.message : "";
  at("error").hidden = !error;
}

// What the browser keeps from one visit to the next, if it may.
export function recall(key) {
  try { return localStorage.getItem(key); } catch { return null; }
}

export function remember(key, value) {
  try { localStorage.setItem(key, value); } catch { /* then it is asked again */ }
}

export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  set(element, attributes);
  element.append(...children);
  return element;
}

export function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  set(element, attributes);
  element.append(...children);
  return element;
}

function set(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("--")) element.style.setProperty(key, value);
    else if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
}

export function percent(p) {
  if (p === 0 || p > 0.999995) return p ? "100%" : "0%";
  if (p > 0.9995) return ">99.9%";
  if (p < 0.0005) return "<0.1%";
  return `${(100 * p).toFixed(p > 0.99 || p < 0.01 ? 1 : 0)}%`;
}

// The colours of labels by rank are in style.css; the first ten differ also for people who do not see
// red and green. Each component has its own ranks. Labels without a rank get a colour by their letters.
const COLOURS = 10;
let ranks = new Map();
export function rankLabels(...components) {
  ranks = new Map(components.flatMap((labels) => labels.map((label, i) => [label, i])));
}

export function colour(label) {
  let rank = ranks.get(label);
  if (rank === undefined) {
    rank = 7;
    for (const letter of label) rank = (rank * 31 + letter.codePointAt(0)) % 9973;
  }
  return `var(--label-${rank % COLOURS})`;
}

// The words `from` to `to` with marks for spans [start, end, …], nested as boxes. A span that crosses
// the end of another is drawn in several parts. `token(i)` returns a word and the space after it;
// `mark(span, parts, depth)` returns the box of a span, or of its part, with `depth` boxes inside.
export function nested(spans, from, to, token, mark) {
  const here = spans.filter(([start, end]) => start < to && end > from);
  const parts = [];
  let depth = 0;
  for (let i = from, end; i < to; i = end) {
    const longest = Math.max(0, ...here.filter((span) => span[0] <= i).map((span) => span[1]));
    const span = here.find((one) => one[0] <= i && one[1] === longest && longest > i);
    end = span ? Math.min(longest, to) : i + 1;
    if (span) {
      const inside = nested(here.filter((one) => one !== span), i, end, token, mark);
      parts.push(mark(span, inside.parts, inside.depth));
      depth = Math.max(depth, inside.depth + 1);
    } else parts.push(token(i)[0]);
    if (end < to) parts.push(token(end - 1)[1]);
  }
  return { parts, depth };
}
