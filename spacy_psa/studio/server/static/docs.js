// The page of the HTTP API, from openapi.json.

import { ask } from "./api.js";
import { make } from "./dom.js";

try {
  const { paths, components } = await ask("openapi.json");
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { description, requestBody }] of Object.entries(methods)) {
      const section = make("section", { class: "sentence" }, make("h2", {}, `${method.toUpperCase()} ${path}`),
        ...(description ?? "").split("\n\n").map((part) => make("p", {}, part)));
      for (const [kind, { schema }] of Object.entries(requestBody?.content ?? {})) {
        const name = schema.$ref?.split("/").at(-1);
        section.append(make("p", { class: "hint" }, kind),
          make("pre", { tabindex: "0" }, JSON.stringify(name ? components.schemas[name] : schema, null, 2)));
      }
      document.getElementById("paths").append(section);
    }
  }
} catch (error) {
  const box = document.getElementById("error");
  box.textContent = error.message;
  box.hidden = false;
}
