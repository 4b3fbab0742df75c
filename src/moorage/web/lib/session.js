// The session: who is logged in. The token itself is in a cookie that no script can read.

import {shared} from "./page.js";

const UI = document.documentElement.dataset.ui;

/** `{session, login, simulation, version}` of the service; null until it has answered. */
export const session = shared(null);

/** Why the last session ended, to be said on the login page. */
export const ended = shared(null);

async function ask(method, body) {
  const answer = await fetch(`${UI}/session`, {
    method,
    headers: body ? {"content-type": "application/json"} : {},
    body: body ? JSON.stringify(body) : undefined,
    credentials: "same-origin",
  });
  if (answer.status === 204) return null;
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.errors?.[0]?.detail || found.errors?.[0]?.title || `status ${answer.status}`);
  return found;
}

/** Learn who is logged in; with noauth2, where nobody proves anything, one is the operator at first. */
async function load() {
  let found = await ask("GET");
  if (!found.session && found.login.auth === "noauth2") {
    found = await ask("POST", {user: "admin", project: "admin", role: "admin"});
  }
  session.set(found);
}

/** Begun as soon as this module is there, while the others are still on their way. */
export const loaded = load();
loaded.catch(() => null); // `main.js` shows the failure

export async function login(body) {
  session.set(await ask("POST", body));
  ended.set(null);
}

export async function logout(why = null) {
  await ask("DELETE").catch(() => null);
  ended.set(why);
  session.set({...session.get(), session: null});
}

/** An answer with status 401 and this code says that this tab's session is over. */
export function over(code) {
  ended.set(code === "session.changed"
    ? "Somebody else has logged in with this browser. Log in again to go on here."
    : "The session has ended. Log in again.");
  session.set({...session.get(), session: null});
}

export const caller = () => session.get()?.session ?? null;
/** Whether the caller meets an access rule of the API. */
export const may = (rule) => Boolean(caller()?.rules?.[rule]);
