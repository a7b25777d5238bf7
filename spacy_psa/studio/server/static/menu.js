// The choices for a span or for selected words.

import { make } from "./dom.js";

const menu = document.getElementById("menu");
let opener = null;

export function openMenu(anchor, title, choices) {
  opener = anchor;
  const buttons = choices.map(([text, act]) =>
    make("button", { type: "button", click: () => { closeMenu(); act(); } }, text));
  menu.replaceChildren(make("p", { dir: "auto" }, title), make("div", { class: "row" }, ...buttons));
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
  const buttons = [...menu.querySelectorAll("button")];
  const at = buttons.indexOf(document.activeElement);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") closeMenu();
  else if (step) buttons[(at + step + buttons.length) % buttons.length].focus();
  else return;
  event.preventDefault();
});
document.addEventListener("pointerdown", (event) => {
  if (!menu.hidden && !menu.contains(event.target)) menu.hidden = true;
});
