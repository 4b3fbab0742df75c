// The address: a path of the page and a query. All state of a screen that is worth sending to a colleague is in it.

import {html, shared} from "./page.js";
import {useShared} from "./follow.js";

const UI = document.documentElement.dataset.ui;
/** Parts of the query that all screens share: they stay when one goes to another screen. */
const KEPT = ["at", "span", "embed"];

function read() {
  return {path: location.pathname.slice(UI.length) || "/", query: new URLSearchParams(location.search)};
}

const current = shared(read());
addEventListener("popstate", () => current.set(read()));

export const useRoute = () => useShared(current);
export const route = () => current.get();

/** The address of a screen, with what all screens share. */
export function address(path, query = {}) {
  const all = new URLSearchParams();
  for (const name of KEPT) {
    const value = current.get().query.get(name);
    if (value) all.set(name, value);
  }
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") all.delete(name);
    else all.set(name, value);
  }
  const text = all.toString();
  return UI + path + (text ? `?${text}` : "");
}

/** Go to a screen. */
export function go(path, query = {}, {replace = false} = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", address(path, query));
  current.set(read());
}

/** Change parts of the query, on the same screen; null removes one. */
export function ask(changes, {replace = true} = {}) {
  const {path, query} = current.get();
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  const to = UI + path + (text ? `?${text}` : "");
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  current.set(read());
}

/** A link to a screen of the page. */
export function Link({to, query, children, ...rest}) {
  useRoute();
  const href = address(to, query);
  const follow = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(to, query);
  };
  return html`<a href=${href} onClick=${follow} ...${rest}>${children}</a>`;
}
