// The choices for a span or for selected words. Many of them have a field that finds one by its name.

import { make } from "./dom.js";

const MANY = 16;
const menu = document.getElementById("menu");
let opener = null;

export function openMenu(anchor, title, choices) {
  opener = anchor;
  const buttons = choices.map(([text, act, key]) => make("button", {
    type: "button", "data-key": key || undefined, "aria-keyshortcuts": key || undefined, click: () => { closeMenu(); act(); },
  }, text, key ? make("kbd", { "aria-hidden": "true" }, key) : ""));
  const field = make("input", { type: "search", autocomplete: "off", placeholder: "find", "aria-label": "Find a choice" });
  field.addEventListener("input", () => {
    const part = field.value.trim().toLowerCase();
    choices.forEach(([text], i) => { buttons[i].hidden = !text.toLowerCase().includes(part); });
  });
  menu.replaceChildren(make("p", { dir: "auto" }, title), buttons.length > MANY ? field : "", make("div", { class: "row" }, ...buttons));
  menu.hidden = false;
  const box = anchor.getBoundingClientRect();
  const left = Math.min(box.left, document.documentElement.clientWidth - menu.offsetWidth - 8);
  menu.style.left = `${Math.max(8, left) + scrollX}px`;
  menu.style.top = `${box.bottom + scrollY + 6}px`;
  buttons[0]?.focus();
}

export function closeMenu() {
  if (menu.hidden) return;
  menu.hidden = true;
  if (opener?.isConnected) opener.focus();
}

menu.addEventListener("keydown", (event) => {
  const buttons = [...menu.querySelectorAll("button:not([hidden])")];
  const field = menu.querySelector("input");
  const at = buttons.indexOf(document.activeElement);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (event.target === field && field.value && !["Escape", "Enter", "ArrowDown"].includes(event.key)) return;
  // A digit is the key of a label; a letter goes to the field, or to the next choice that begins with it.
  const keyed = buttons.find((button) => button.dataset.key === event.key);
  const next = [...buttons.slice(at + 1), ...buttons].find((button) =>
    button.textContent.toLowerCase().startsWith(event.key.toLowerCase()));
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Escape") closeMenu();
  else if (keyed) keyed.click();
  else if (event.target === field && event.key === "Enter") { if (field.value) buttons[0]?.click(); }
  else if (step) buttons[(at + step + buttons.length) % buttons.length].focus();
  else if (field && event.key.length === 1 && event.key !== " ") { field.focus(); return; }
  else if (event.key.length === 1 && event.key !== " " && next) next.focus();
  else return;
  event.preventDefault();
});
document.addEventListener("pointerdown", (event) => {
  if (!menu.hidden && !menu.contains(event.target)) menu.hidden = true;
});
