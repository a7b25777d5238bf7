// Requests to the server; an answer that is an error is thrown with its text.

export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The server does not answer: is it still running?");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) {
    const detail = answer.detail;
    const text = Array.isArray(detail) ? detail.map((one) => one.msg).join("; ") : detail;
    throw new Error(text || `The server answers ${response.status}.`);
  }
  return answer;
}
