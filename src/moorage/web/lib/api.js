// Requests to the API, with typed failures, and the hook that reads one path and keeps it fresh.

import {useEffect, useRef, useState} from "../vendor/hooks.js";
import {shared} from "./page.js";
import {caller, over} from "./session.js";
import {tick} from "./live.js";
import {useShared} from "./follow.js";

export const API = document.documentElement.dataset.api;

/** An answer that says no. `code` is the API's, such as `ensemble.infeasible`; `body` its first error. */
export class Failure extends Error {
  constructor(status, body) {
    const first = body?.errors?.[0] ?? {};
    super(first.detail || first.title || (status ? `The service answered ${status}.` : "The service does not answer."));
    this.status = status;
    this.code = first.code ?? "";
    this.body = first;
  }
}

/** What the screen has read: path → answer. Shown by the button JSON. */
export const answers = shared(new Map());

/** How far the service's clock is ahead of the viewer's, in milliseconds. */
export let ahead = 0;

function noteClock(answer) {
  const date = Date.parse(answer.headers.get("date"));
  if (date && Math.abs(date - Date.now() - ahead) > 2000) ahead = date - Date.now();
}

/** Send a request below the API's prefix; the answer's JSON, or null without one. Raises `Failure`. */
export async function call(method, path, body, {signal} = {}) {
  const headers = {"x-moorage-session": caller()?.id ?? ""};
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(API + path, {
      method, headers, signal, credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, null);
  }
  noteClock(answer);
  if (answer.status === 204) return null;
  const text = await answer.text();
  let found = null;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Failure(answer.status, null);
  }
  if (answer.ok) return found;
  const failure = new Failure(answer.status, found);
  if (answer.status === 401) over(failure.code);
  throw failure;
}

/** Change something in the generation that is there now: `noun` is its key in bodies. */
export async function change(where, noun, body, {dry = false} = {}) {
  const {generation} = (await call("GET", where))[noun];
  return call("PATCH", dry ? `${where}?dry_run=true` : where, {[noun]: {...body, generation}});
}

/** A path with a query; parts that are null or empty are left out, lists are repeated. */
export function path(base, query = {}) {
  const all = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") all.append(name, one);
    }
  }
  const text = all.toString();
  return text ? `${base}?${text}` : base;
}

/**
 * One reading at a time. Asked again meanwhile, it reads once more afterwards: where much happens and answers take
 * long, a reading that is given up for the next one would never come to an end. `read(signal)` does not reject.
 */
export function single(read) {
  let control = null;
  let again = false;
  const start = () => {
    again = control !== null;
    if (again) return;
    control = new AbortController();
    read(control.signal).then(() => {
      const more = again && !control.signal.aborted;
      control = null;
      if (more) start();
    });
  };
  return {start, stop: () => control?.abort()};
}

/** Starts what the effects of a component hold in `reading` whenever something has happened in the ledger. */
export function useAgain(reading, live = true) {
  const moved = useShared(tick);
  const seen = useRef(moved);
  useEffect(() => {
    if (live && moved !== seen.current) reading.current?.start();
    seen.current = moved;
  }, [moved]);
}

/**
 * Read a path, again whenever something has happened in the ledger. `{data, error, loading}`; while it is read again
 * the old answer stays. Without a path nothing is read. A new `round` reads again at once.
 */
export function useData(where, {live = true, round = 0} = {}) {
  const [state, set] = useState({data: null, error: null, loading: Boolean(where), of: null});
  const reading = useRef(null);
  useEffect(() => {
    if (!where) {
      set({data: null, error: null, loading: false, of: null});
      return undefined;
    }
    set((old) => ({...old, data: old.of === base(where) ? old.data : null, loading: true}));
    const own = single((signal) => call("GET", where, undefined, {signal}).then((data) => {
      note(where, data);
      set({data, error: null, loading: false, of: base(where)});
    }, (error) => {
      if (error.name !== "AbortError") set((old) => ({...old, error, loading: false}));
    }));
    reading.current = own;
    own.start();
    return () => {
      own.stop();
      reading.current = null;
    };
  }, [where, round]);
  useAgain(reading, live);
  return state;
}

const base = (where) => where.split("?")[0];

/** Keep what a screen has read, for the button JSON: by its path, after its method if that is not GET. */
export function note(where, data) {
  const next = new Map(answers.get());
  next.set(where, data);
  answers.set(next);
}

/** Forget what the last screen has read. */
export const forget = () => answers.set(new Map());
