// Instants: the service's now, and how they are written. Times are shown in the viewer's zone, with UTC beside.

import {html, shared} from "./page.js";
import {ahead, call} from "./api.js";
import {session} from "./session.js";
import {tick} from "./live.js";

/** The clock of a simulation, in milliseconds; null where time goes by itself. */
const simulated = shared(null);

let reading = null;

/** Learn a simulation's clock; before it is known nothing that looks at the time is drawn. */
export function readClock() {
  if (!session.get()?.simulation || !session.get()?.session) {
    simulated.set(null);
    return Promise.resolve();
  }
  reading ??= call("GET", "/simulation/clock").catch(() => null).then((found) => {
    reading = null;
    if (found) simulated.set(Date.parse(found.clock.now));
  });
  return reading;
}
session.watch(readClock);
tick.watch(readClock);

/** Now, by the service's clock, in milliseconds. */
export const now = () => simulated.get() ?? Date.now() + ahead;
export const clock = simulated;

export const iso = (time) => new Date(time).toISOString().replace(/\.\d+Z$/, "Z");
export const DAY = 86400000;
export const HOUR = 3600000;

const DATE = new Intl.DateTimeFormat(undefined, {weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit"});

/** Milliseconds of an instant in text, such as one from the address; null where it is none. */
export function instant(text) {
  const found = text ? Date.parse(text) : NaN;
  return Number.isNaN(found) ? null : found;
}

/** An instant for people. */
export const said = (time) => (time === null || time === undefined ? "no end" : Number.isNaN(time) ? "no time" : DATE.format(new Date(time)));

/** An instant in the viewer's zone; UTC where one points at it. */
export function When({at, none = "no end"}) {
  if (!at) return html`<span class="soft">${none}</span>`;
  return html`<time datetime=${at} title=${`${at} (UTC)`}>${said(Date.parse(at))}</time>`;
}

/** A length in words: `2 d 4 h`, `40 min`. */
export function length(milliseconds) {
  const minutes = Math.round(Math.abs(milliseconds) / 60000);
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
  const hours = Math.round(minutes / 60);
  return `${Math.floor(hours / 24)} d${hours % 24 ? ` ${hours % 24} h` : ""}`;
}
