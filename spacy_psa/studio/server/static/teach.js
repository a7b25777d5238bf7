// The training in the background: its button, and how it stands.

import { ask } from "./api.js";

const at = (id) => document.getElementById(id);
let timer = 0;

function show(status) {
  const running = status.state === "running";
  at("teach").disabled = running;
  at("stop").hidden = !running;
  at("taught").textContent = status.message;
  return running;
}

async function follow(send, onTaken) {
  clearTimeout(timer);
  try {
    const status = await send();
    if (show(status)) timer = setTimeout(follow, 700, () => ask("api/annotation/teach", undefined, { quiet: true }), onTaken);
    else if (status.state === "taken") onTaken();
  } catch (error) {
    show({ state: "failed", message: error.message });
  }
}

// `onTaken` is called when a new model is in use.
export function watchTeach(status, onTaken) {
  if (show(status)) follow(() => ask("api/annotation/teach"), onTaken);
  at("teach").onclick = () => follow(() => ask("api/annotation/teach", {}), onTaken);
  at("stop").onclick = () => follow(() => ask("api/annotation/teach/stop", {}), () => {});
}
