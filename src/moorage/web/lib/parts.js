// Small parts of screens: tables, chips, notices, dialogs.

import {html, useLayoutEffect, useRef, useState} from "./page.js";

/** A number with what it counts. */
export const count = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;

/** A state as text in a colour and a shape of its own: `good`, `warn`, `bad` or `idle`. */
export const Badge = ({kind = "idle", children}) => html`<span class=${`badge ${kind}`}>${children}</span>`;

/** What went wrong, or nothing. */
export const Problem = ({error}) => (error ? html`<p class="problem" role="alert">${error.message}${error.code ? html` <code>${error.code}</code>` : ""}</p>` : null);

/** What a screen shows while its first answer is awaited, or where there is nothing. */
export function State({of, children, empty}) {
  if (of.error && !of.data) return html`<${Problem} error=${of.error} />`;
  if (!of.data) return html`<p class="soft" role="status">Reading…</p>`;
  if (empty) return html`<p class="empty">${empty}</p>`;
  return html`<${Problem} error=${of.error} />${children}`;
}

/**
 * A table that sorts by any column. `columns`: `{name, label, show(row), key(row), number}`; `onOpen` makes rows
 * openable by pointer and keyboard; `rows` beyond `limit` are shown on request.
 */
export function Table({columns, rows, id, label, onOpen, href, limit = 200}) {
  const [order, sort] = useState({by: null, down: false});
  const [most, more] = useState(limit);
  const column = columns.find((one) => one.name === order.by);
  const key = column && (column.key ?? ((row) => row[column.name]));
  const sorted = key ? [...rows].sort((a, b) => compare(key(a), key(b)) * (order.down ? -1 : 1)) : rows;
  return html`<div class="table" role="region" aria-label=${label} tabindex="0"><table>
    <caption class="hidden">${label}</caption>
    <thead><tr>${columns.map((one) => html`<th scope="col" class=${one.number ? "number" : ""} aria-sort=${one.name === order.by ? (order.down ? "descending" : "ascending") : "none"}>
      <button type="button" onClick=${() => sort({by: one.name, down: order.by === one.name && !order.down})}>${one.label}<span aria-hidden="true">${one.name === order.by ? (order.down ? " ↓" : " ↑") : ""}</span></button></th>`)}</tr></thead>
    <tbody>${sorted.slice(0, most).map((row) => html`<tr key=${id(row)} class=${onOpen ? "open" : ""} onClick=${onOpen ? (event) => event.target.closest("a,button,input") || onOpen(row) : undefined}>
      ${columns.map((one, index) => html`<td class=${one.number ? "number" : ""}>${index === 0 && onOpen && !href
        ? html`<button type="button" class="plain" onClick=${() => onOpen(row)}>${one.show ? one.show(row) : row[one.name]}</button>`
        : one.show ? one.show(row) : row[one.name]}</td>`)}</tr>`)}</tbody></table>
    ${sorted.length > most ? html`<p><button type="button" onClick=${() => more(most + limit)}>Show ${Math.min(limit, sorted.length - most)} more of ${sorted.length}</button></p>` : null}
  </div>`;
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, {numeric: true});
}

/** That a list goes on beyond what was read, as its links say. */
export const Beyond = ({links, number, hint = "Filter to see others."}) => (links?.length ? html`<p class="soft">There are more than the ${number} that are shown. ${hint}</p>` : null);

/** Who came by the keyboard goes on where they were, once a part that has taken it is gone. */
function useReturn(own, enter) {
  useLayoutEffect(() => {
    const before = document.activeElement;
    const {current} = own;
    enter(current);
    return () => {
      current.close?.();
      // It is in the page still, and what has the keyboard in it is about to go.
      if (before?.isConnected) queueMicrotask(() => before.focus());
    };
  }, []);
}

/** A dialog that takes the keyboard until it is closed. */
export function Dialog({title, onClose, children, actions}) {
  const own = useRef(null);
  useReturn(own, (dialog) => dialog.showModal());
  return html`<dialog ref=${own} aria-labelledby="dialog-title" onClose=${onClose} onCancel=${onClose}>
    <h2 id="dialog-title">${title}</h2>${children}
    <p class="actions">${actions}<button type="button" onClick=${onClose}>Close</button></p></dialog>`;
}

/** A part at the side of a screen. */
export function Drawer({title, onClose, children}) {
  const own = useRef(null);
  useReturn(own, (drawer) => drawer.focus());
  return html`<aside class="drawer" tabindex="-1" ref=${own} aria-label=${title} onKeyDown=${(event) => event.key === "Escape" && onClose()}>
    <header><h2>${title}</h2><button type="button" aria-label="Close" onClick=${onClose}>✕</button></header>${children}</aside>`;
}

/** A part that is folded at first, and made when it is unfolded: `children` may be long. */
export function Unfolded({title, children}) {
  const [open, unfold] = useState(false);
  return html`<details onToggle=${(event) => unfold(event.target.open)}><summary>${title}</summary>${open ? children : null}</details>`;
}

/** A labelled field of a filter row. */
export const Field = ({label, children}) => html`<label class="field"><span>${label}</span>${children}</label>`;

/** A bar of parts of a whole: `[{share, kind, label}]`. */
export const Bar = ({parts, label}) => html`<span class="bar" role="img" aria-label=${label}>${parts.map((one) => html`<span class=${one.kind} style=${{width: `${100 * Math.max(0, Math.min(1, one.share))}%`}} title=${one.label}></span>`)}</span>`;

/** A short form of an id. */
export const short = (id) => (id ?? "").slice(0, 8);
