// The training in the background: its button, and how it stands.

import { ask } from "./api.js";
import { at } from "./dom.js";

let timer = 0;
const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

function show(status) {
  const running = status.state === "running";
  at("teach").disabled = running;
  at("stop").hidden = !running;
  at("taught").textContent = status.message;
  return running;
}

async function follow(send) {
  clearTimeout(timer);
  try {
    const status = await send();
    if (show(status)) timer = setTimeout(follow, 700, () => ask("api/annotation/teach", undefined, { quiet: true }));
  } catch (error) {
    show({ state: "failed", message: error.message });
  }
}

export function watchTeach(status) {
  if (show(status)) follow(() => ask("api/annotation/teach"));
  at("teach").onclick = async () => {
    at("teach").disabled = true;
    at("taught").textContent = "Teach begins …";
    await painted(); // as the training takes the processor from this page as soon as it begins
    follow(() => ask("api/annotation/teach", {}));
  };
  at("stop").onclick = () => follow(() => ask("api/annotation/teach/stop", {}));
}
