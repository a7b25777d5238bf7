// Requests to the server; an answer that is an error is thrown with its text.

let open = 0; // requests; while there are some, the page shows that it is busy
const busy = (by) => { open += by; document.body.classList.toggle("busy", open > 0); };

export class Away extends Error {}

async function respond(path, body, quiet) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  if (!quiet) busy(1);
  try {
    const response = await fetch(path, options).catch(() => { throw new Away("The server does not answer: is it still running?"); });
    const content = response.ok ? await response.blob() : await response.json().catch(() => ({}));
    if (response.ok) return { response, content };
    const { detail } = content;
    const text = Array.isArray(detail) ? detail.map((one) => one.msg).join("; ") : detail;
    throw new Error(text || `The server answers ${response.status}.`);
  } finally {
    if (!quiet) busy(-1);
  }
}

export async function ask(path, body, { quiet = false } = {}) {
  return JSON.parse(await (await respond(path, body, quiet)).content.text());
}

export async function file(path) {
  const { response, content } = await respond(path);
  const [, name] = /filename="([^"]*)"/.exec(response.headers.get("Content-Disposition") ?? "") ?? [];
  return { name: name ?? "file", blob: content };
}
