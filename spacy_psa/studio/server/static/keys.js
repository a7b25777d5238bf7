// Keys that are pressed while an answer is on its way wait, and then act on what is shown.

const waiting = [];
export const inField = (element) => element.closest?.("input, select, textarea");

export function holdKeys(isBusy) {
  document.addEventListener("keydown", (event) => {
    if (!event.isTrusted || !isBusy() || inField(event.target)) return;
    if (event.ctrlKey || event.altKey || event.metaKey || event.key === "Shift") return;
    waiting.push({ key: event.key, shiftKey: event.shiftKey });
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
}

export function replayKeys(isBusy) {
  while (waiting.length && !isBusy()) press(waiting.shift());
}

// After an error the keys would be about something else. Returns how many there were.
export const dropKeys = () => waiting.splice(0).length;

function press({ key, shiftKey }) {
  const active = document.activeElement ?? document.body;
  const event = new KeyboardEvent("keydown", { key, shiftKey, bubbles: true, cancelable: true });
  if (!active.dispatchEvent(event)) return;
  // What a browser itself does with a key, it does not do with one that comes from a script.
  if ((key === "Enter" || key === " ") && active.tagName === "BUTTON") active.click();
  else if (key === "Tab") {
    const all = [...document.querySelectorAll("#result [tabindex='0'], #result button")];
    all[(all.indexOf(active) + (shiftKey ? -1 : 1) + all.length) % all.length]?.focus();
  }
}
