// The links between the views of a server, in <nav id="views">.

import { make } from "./dom.js";

export function showViews(views) {
  const all = [{ name: "Analyse", path: "/" }, ...views];
  if (all.length === 1) return;
  document.getElementById("views").replaceChildren(...all.map(({ name, path }) =>
    make("a", { href: path, "aria-current": path === location.pathname ? "page" : undefined }, name)));
}
