// The page of the view "Review": probable errors, one by one.

import { ask } from "./api.js";
import { hue, make, percent } from "./dom.js";
import { showViews } from "./views.js";

const KINDS = {
  missed: "a span is missing", invented: "there is no span", bounds: "other bounds", type: "another type",
};
const at = (id) => document.getElementById(id);
const before = []; // the decided rows, the last one at the end
let row = null;
let busy = false;

// The words with spans, which may lie inside others.
function marked(spans, first, from, to) {
  const inside = spans.filter(([start, end]) => start >= from && end <= to)
    .sort((one, other) => one[0] - other[0] || other[1] - one[1]);
  const parts = [];
  let i = from;
  while (i < to) {
    const span = inside.find(([start]) => start === i);
    if (span) {
      const rest = inside.slice(inside.indexOf(span) + 1);
      parts.push(make("span", { class: "span required", "--hue": hue(span[2]), "--p": 1 },
        ...marked(rest, first, span[0], span[1]),
        make("span", { class: "name" }, span[2])), " ");
      [, i] = span;
    } else {
      parts.push(row.words[i - first]);
      i += 1;
    }
  }
  return parts;
}

function part(name, spans, p) {
  return make("div", { class: "sentence" },
    make("h2", {}, `${name}, ${percent(p)}`),
    make("p", { class: "words", dir: "auto" },
      ...marked(spans, row.first, row.first, row.first + row.words.length)));
}

function show(state) {
  row = state.row;
  at("progress").max = Math.max(1, state.total);
  at("progress").value = state.done;
  at("counts").textContent = `${state.done} of ${state.total} decided, ${state.accepted} accepted`;
  at("accept").disabled = at("keep").disabled = !row;
  at("undo").disabled = !before.length;
  if (!row) {
    at("result").replaceChildren(make("p", {}, "All is decided."));
    return;
  }
  const place = Object.values(row.document).join(" ") || row.doc;
  const title = `${row.number}. Probably ${KINDS[row.kind]} (${percent(row.chance)}), document ${place}`;
  at("result").replaceChildren(make("p", { class: "hint" }, title),
    part("Annotation", row.annotated, row.p_annotated),
    part("Correction", row.proposed, row.p_proposed));
}

async function send(body) {
  if (busy) return;
  busy = true;
  try {
    show(await ask("api/review", body));
    at("error").hidden = true;
  } catch (error) {
    at("error").textContent = error.message;
    at("error").hidden = false;
  }
  busy = false;
}

function decide(accept) {
  if (!row || busy) return;
  before.push(row.number);
  send({ number: row.number, accept });
}

function undo() {
  if (before.length && !busy) send({ number: before.pop(), accept: null });
}

at("accept").addEventListener("click", () => decide(true));
at("keep").addEventListener("click", () => decide(false));
at("undo").addEventListener("click", undo);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  const act = { y: () => decide(true), x: () => decide(false), u: undo }[event.key.toLowerCase()];
  if (!act) return;
  event.preventDefault();
  act();
});

ask("api/models").then((answer) => showViews(answer.views)).then(() => send(undefined));
