// The flag and the comments on a text, and the guidelines.

import { ask } from "./api.js";
import { at, fail, make } from "./dom.js";

const state = { text: null, owner: "", flag: false, annotator: () => "", onSaved: () => {} };
const onText = () => state.text !== null;

export function showNotes(text, notes) {
  const owner = state.annotator();
  const { flag = false, comment = "" } = notes[owner] ?? {};
  if (text !== state.text || owner !== state.owner) at("comment").value = comment; // what is being typed stays
  Object.assign(state, { text, owner, flag });
  at("flag").setAttribute("aria-pressed", `${flag}`);
  at("flag").disabled = at("comment").disabled = !onText();
  const others = Object.entries(notes).filter(([name, note]) => name !== owner && (note.comment || note.flag));
  at("others").replaceChildren(...others.map(([name, note]) => make("li", { dir: "auto" },
    make("b", {}, name), note.flag ? " ⚑ " : " ", note.comment)));
}

async function save(flag) {
  const text = state.text;
  const body = { annotator: state.annotator(), text, flag, comment: at("comment").value };
  try {
    const { notes } = await ask("api/annotation/note", body);
    if (text === state.text) showNotes(text, notes);
    state.onSaved();
  } catch (error) {
    fail(error);
  }
}

export const flag = () => onText() && save(!state.flag);
export const comment = () => { at("beside").open = true; at("comment").focus(); };

export function startNotes(annotator, onSaved) {
  Object.assign(state, { annotator, onSaved });
  at("flag").addEventListener("click", flag);
  at("comment").addEventListener("change", () => onText() && save(state.flag));
  at("comment").addEventListener("keydown", (event) => {
    if (event.key === "Escape") at("result").focus();
  });
}

// Their HTML is made by the server from Markdown, without any HTML of the file.
export async function showGuidelines() {
  const { html } = await ask("api/annotation/guidelines", undefined, { quiet: true });
  const read = new DOMParser().parseFromString(html, "text/html");
  for (const link of read.querySelectorAll("a")) Object.assign(link, { target: "_blank", rel: "noopener" });
  at("guidelines").replaceChildren(...read.body.childNodes);
  at("guidelines-box").hidden = !html;
}
