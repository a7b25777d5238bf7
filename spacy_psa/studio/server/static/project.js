// The view "Project": Teach, Export, and how far annotators agree.

import { ask, file } from "./api.js";
import { at, fail, make, percent } from "./dom.js";
import { watchTeach } from "./teach.js";
import { showViews } from "./views.js";

const many = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const row = (kind, cells) => make("tr", {}, ...cells.map((cell, i) =>
  make(kind, kind === "th" ? { scope: "col" } : { class: i ? "number" : undefined }, cell)));
const table = (head, rows) => make("div", { class: "scroll" },
  make("table", {}, make("thead", {}, row("th", head)), make("tbody", {}, ...rows.map((cells) => row("td", cells)))));

function showAnnotators(counts) {
  const rows = Object.entries(counts).map(([name, one]) => [name, `${one.done} of ${one.texts}`, one.decisions, one.skipped]);
  at("annotators").replaceChildren(rows.length ? table(["annotator", "texts done", "decisions", "skipped"], rows)
    : make("p", { class: "hint" }, "Nobody has decided anything."));
}

// Addresses of texts, at most some of each pair.
function links(numbers) {
  const shown = numbers.slice(0, 100).flatMap((number) => [make("a", { href: `annotate#${number}` }, `${number}`), " "]);
  return make("p", {}, numbers.length ? `They differ in ${many(numbers.length, "text")}: ` : "They differ nowhere.", ...shown,
    numbers.length > 100 ? "…" : "");
}

function showAgreement(pairs) {
  at("agreement").replaceChildren(...pairs.map(({ annotators, texts, words, kappa, labels, differ }) => make("article", {},
    make("h3", {}, annotators.join(" and ")),
    make("p", {}, `Kappa ${kappa === null ? "is not defined: both have one label for all words" : kappa.toFixed(2)}, over ${many(words, "word")} of ${many(texts, "text")}.`),
    labels.length ? table(["label", annotators[0], annotators[1], "both", "F1"],
      labels.map((one) => [one.label, one.first, one.second, one.both, percent(one.f1)])) : "",
    links(differ))));
  if (!pairs.length) at("agreement").append(make("p", { class: "hint" }, "No two annotators have decided the same words yet."));
}

async function save(form) {
  fail(null);
  at("exported").textContent = "…";
  try {
    const whose = at("whose").value ? `&annotator=${encodeURIComponent(at("whose").value)}` : "";
    const { name, blob } = await file(`api/annotation/export?form=${form}${whose}`);
    const link = make("a", { href: URL.createObjectURL(blob), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    at("exported").textContent = `Saved as ${name}.`;
  } catch (error) {
    at("exported").textContent = "";
    fail(error);
  }
}

async function learn() {
  try {
    const about = await ask("api/annotation");
    showAnnotators(about.counts_of);
    at("whose").replaceChildren(make("option", { value: "" }, "all annotators, where they agree"),
      ...about.annotators.map((one) => make("option", {}, one)));
    watchTeach(about.teach);
    showAgreement(await ask("api/annotation/agreement"));
  } catch (error) {
    fail(error);
  }
}

for (const button of document.querySelectorAll("[data-form]")) {
  button.addEventListener("click", () => save(button.dataset.form));
}
ask("api/models").then((answer) => showViews(answer.views)).catch(fail);
learn();
