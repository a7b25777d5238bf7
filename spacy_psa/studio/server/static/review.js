// The page of the view "Review": probable errors, one by one.

import { ask } from "./api.js";
import { at, colour, fail, make, nested, percent, rankLabels } from "./dom.js";
import { showViews } from "./views.js";

const KINDS = {
  missed: "a span is missing", invented: "there is no span", bounds: "other bounds", type: "another type",
};
const before = []; // the decided rows, the last one at the end
let row = null;
let busy = false;

function marked(spans) {
  const token = (i) => {
    const word = row.words[i - row.first];
    return [word.trimEnd(), word.slice(word.trimEnd().length)];
  };
  return nested(spans, row.first, row.first + row.words.length, token, (span, inside, depth) =>
    make("span", { class: "span required", "--mark": colour(span[2]), "--p": 1, "--depth": depth },
      ...inside, make("span", { class: "name" }, span[2])));
}

function part(name, spans, p) {
  const { parts, depth } = marked(spans);
  return make("div", { class: "sentence" },
    make("h2", {}, `${name}, ${percent(p)}`),
    make("p", { class: "words", dir: "auto", "--depth": depth }, ...parts));
}

function show(state) {
  row = state.row;
  rankLabels(state.labels);
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
    fail(null);
  } catch (error) {
    fail(error);
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
