// The page of the view "Compare": waits for the comparison, and shows it.

import { ask } from "./api.js";
import { showComparison } from "./compare_view.js";
import { at, make } from "./dom.js";
import { showViews } from "./views.js";

const WAIT = 400; // milliseconds between two questions

async function compare() {
  const bar = make("progress", { "aria-label": "Comparison" });
  at("comparison").replaceChildren(bar);
  for (;;) {
    const answer = await ask("api/compare", {});
    if (answer.report) {
      at("status").textContent = "";
      at("save").hidden = false;
      showComparison(at("comparison"), answer.report);
      return;
    }
    bar.max = answer.total;
    bar.value = answer.done;
    at("status").textContent = `${answer.done} of ${answer.total} parts done`;
    await new Promise((resolve) => { setTimeout(resolve, WAIT); });
  }
}

ask("api/models").then((answer) => showViews(answer.views)).then(compare).catch((error) => {
  at("status").textContent = "";
  at("comparison").replaceChildren();
  at("error").textContent = error.message;
  at("error").hidden = false;
});
