// What happens in the ledger: one long poll of events per tab tells every open screen to read again.

import {shared} from "./page.js";
import {caller, over, session} from "./session.js";

const API = document.documentElement.dataset.api;
const WAIT = "20s";
/** Milliseconds between two answers at least: many viewers of a busy ledger must cost it little. */
const APART = 1500;

/** Grows when something has happened. */
export const tick = shared(0);
/** Whether the service answers. */
export const online = shared(true);
/** The latest events, newest first. */
export const news = shared([]);

let running = null;

async function poll(own) {
  let cursor = "now";
  let pause = 1000;
  while (running === own) {
    const begun = performance.now();
    try {
      const mine = caller();
      const query = new URLSearchParams({after: cursor, wait: WAIT, limit: "200"});
      if (mine?.operator) query.set("all_projects", "true");
      const answer = await fetch(`${API}/events?${query}`, {
        headers: {"x-moorage-session": mine?.id ?? ""}, credentials: "same-origin",
      });
      if (running !== own || answer.status === 403) return;
      if (answer.status === 401) {
        const found = await answer.json().catch(() => null);
        if (running === own) over(found?.errors?.[0]?.code);
        return;
      }
      if (!answer.ok) throw new Error(String(answer.status));
      const found = await answer.json();
      if (running !== own) return;
      pause = 1000;
      if (!online.get()) {
        online.set(true);
        tick.set(tick.get() + 1);
      }
      cursor = found.cursor;
      if (found.events.length) {
        news.set([...found.events].reverse().concat(news.get()).slice(0, 50));
        tick.set(tick.get() + 1);
      }
      // A service where too many wait answers at once; it is not to be asked without end.
      await sleep(Math.max(0, begun + APART - performance.now()) * (1 + Math.random() / 4));
    } catch {
      if (running !== own) return;
      online.set(false);
      await sleep(pause);
      pause = Math.min(2 * pause, 15000);
    }
  }
}

const sleep = (time) => new Promise((done) => setTimeout(done, time));

/** Follow the events of whoever is logged in, while the tab is seen. */
export function follow() {
  const start = () => {
    running = null;
    if (caller() && document.visibilityState === "visible") {
      running = {};
      poll(running);
    }
  };
  session.watch(start);
  document.addEventListener("visibilitychange", () => {
    start();
    if (document.visibilityState === "visible") tick.set(tick.get() + 1);
  });
  start();
}
