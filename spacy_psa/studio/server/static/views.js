// The links between the views of a server, in <nav id="views">.

import { make } from "./dom.js";

// Addresses are relative, since a proxy may put the server below a path.
export function showViews(views) {
  const all = [{ name: "Analyse", path: "/" }, ...views];
  if (all.length === 1) return;
  const shown = location.pathname.split("/").at(-1);
  document.getElementById("views").replaceChildren(...all.map(({ name, path }) => {
    const page = path.slice(1);
    return make("a", { href: page || "./", "aria-current": page === shown ? "page" : undefined }, name);
  }));
}
