// Bars over time on a canvas. Rows are virtual: only those in view are drawn and have labels, whatever their number; the
// labels are text beside the canvas. An edge of a bar can be dragged; what that would do is asked when the pointer rests.

import {html, useEffect, useMemo, useRef, useState} from "./page.js";
import {DAY, HOUR, said} from "./time.js";

export const LABELS = 150;
const LANE = 22;
const PAD = 4;
const EDGE = 7;
const REST = 350;
const HIGHEST = 420;
/** Rows whose labels are there above and below those in view: so scrolling seldom makes others. */
const SPARE = 30;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Rows with their first lane's place: `{id, label, lanes, top, height, bars: [index]}`. */
export function rowsOf({rows, bars}) {
  const found = rows.id.map((id, index) => ({id, label: rows.label[index], lanes: rows.lanes[index], bars: []}));
  bars.row.forEach((row, index) => found[row].bars.push(index));
  let top = 0;
  for (const row of found) {
    row.top = top;
    row.height = row.lanes * LANE + PAD;
    top += row.height;
  }
  return {rows: found, height: top};
}

/** The index of the row at a height; of the last one below all. */
export function rowAt(rows, y) {
  let [low, high] = [0, rows.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (rows[middle].top <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}

const HOURS = new Intl.DateTimeFormat(undefined, {hour: "2-digit", minute: "2-digit"});
const DAYS = new Intl.DateTimeFormat(undefined, {weekday: "short", day: "numeric", month: "short"});

/** Instants at which an axis of this many pixels has a line, and what it says there. */
export function ticks(from, to, wide) {
  const most = Math.max(2, Math.min(14, Math.floor(wide / 76)));
  const step = [HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY].find((one) => (to - from) / one <= most) ?? 90 * DAY;
  const zone = new Date(from).getTimezoneOffset() * 60000;
  const found = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at < to; at += step) {
    found.push({at, text: (step < DAY ? HOURS : DAYS).format(at)});
  }
  return found;
}

/**
 * The chart. `timeline`: as the API answers; `from`, `to`, `mark`: milliseconds; `editable(index)`;
 * `onTry(index, edge, time)`: a promise of `{good, text}`; `onDrop(index, edge, time)`; `onOpen(index)`.
 */
export function Gantt({timeline, from, to, mark, chosen, editable, onTry, onDrop, onOpen, label}) {
  const canvas = useRef(null);
  const scroller = useRef(null);
  const drag = useRef(null);
  const [under, point] = useState(null);
  const [, redraw] = useState(0);
  const plan = useMemo(() => rowsOf(timeline), [timeline]);
  const visible = Math.min(plan.height, HIGHEST);
  const labels = useRef(null);
  const colours = useRef(null);
  const [first, scrollTo] = useState(0);
  const {bars} = timeline;
  const wide = () => canvas.current?.clientWidth ?? 600;
  const x = (time) => ((time - from) / (to - from)) * wide();
  const time = (px) => from + (px / wide()) * (to - from);
  const ends = (index) => {
    const moved = drag.current?.index === index ? drag.current : null;
    return [moved?.edge === "start" ? moved.time : bars.start[index] * 1000, moved?.edge === "end" ? moved.time : bars.end[index] === null ? to + DAY : bars.end[index] * 1000];
  };

  const draw = () => {
    const own = canvas.current;
    if (!own || !own.clientWidth) return;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [own.clientWidth, own.clientHeight];
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (own.width !== across || own.height !== down) [own.width, own.height] = [across, down];
    const context = own.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const scrolled = scroller.current.scrollTop;
    labels.current.style.transform = `translateY(${-scrolled}px)`;
    const colour = colours.current ??= {lease: css("--strong"), offer: css("--held"), waiting: css("--soft"), absence: css("--away"), line: css("--line"), text: css("--text"), on: css("--on-strong"), mark: css("--mark"), good: css("--good"), bad: css("--bad")};
    context.strokeStyle = colour.line;
    for (const {at} of ticks(from, to, width)) line(context, x(at), height);
    for (let at = rowAt(plan.rows, scrolled); at < plan.rows.length; at += 1) {
      const row = plan.rows[at];
      const top = row.top - scrolled;
      if (top > height) break;
      context.fillStyle = colour.line;
      context.fillRect(0, top + row.height - 1, width, 0.5);
      const lanes = [Math.floor(-top / LANE), Math.ceil((height - top) / LANE)];
      for (const index of row.bars) {
        const lane = bars.lane[index];
        if (lane >= lanes[0] && lane <= lanes[1]) bar(context, index, top + lane * LANE + 2, colour);
      }
    }
    if (mark >= from && mark <= to) {
      context.strokeStyle = colour.mark;
      context.lineWidth = 2;
      line(context, x(mark), height);
    }
  };
  const bar = (context, index, top, colours) => {
    const [start, end] = ends(index);
    const [left, right] = [Math.max(-4, x(start)), Math.min(wide() + 4, x(end))];
    if (right < 0 || left > wide()) return;
    const size = Math.max(3, right - left);
    const kind = bars.kind[index];
    const dragged = drag.current?.index === index ? drag.current : null;
    context.fillStyle = dragged?.result ? (dragged.result.good ? colours.good : colours.bad) : colours[kind] ?? colours.lease;
    context.globalAlpha = kind === "waiting" || kind === "offer" ? 0.55 : 1;
    context.beginPath();
    context.roundRect(left, top, size, LANE - 4, 4);
    context.fill();
    context.globalAlpha = 1;
    if (kind === "absence") hatch(context, left, top, size, colours.text);
    if (bars.id[index] === chosen || dragged) {
      context.strokeStyle = colours.mark;
      context.lineWidth = 2;
      context.stroke();
    }
    if (size > 30) {
      context.save();
      context.clip();
      context.fillStyle = kind === "lease" ? colours.on : colours.text;
      context.font = "12px system-ui";
      context.textBaseline = "middle";
      context.fillText(bars.label[index], Math.max(left, 0) + 6, top + (LANE - 4) / 2 + 1);
      context.restore();
    }
  };
  const line = (context, at, height) => {
    context.beginPath();
    context.moveTo(Math.round(at) + 0.5, 0);
    context.lineTo(Math.round(at) + 0.5, height);
    context.stroke();
  };
  const hatch = (context, left, top, size, colour) => {
    context.save();
    context.clip();
    context.strokeStyle = colour;
    context.globalAlpha = 0.45;
    context.lineWidth = 1;
    context.beginPath();
    for (let at = left - LANE; at < left + size; at += 7) {
      context.moveTo(at, top + LANE);
      context.lineTo(at + LANE, top);
    }
    context.stroke();
    context.restore();
    context.beginPath();
    context.roundRect(left, top, size, LANE - 4, 4);
  };

  useEffect(() => {
    const frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  });
  useEffect(() => {
    const watch = new ResizeObserver(() => redraw((old) => old + 1));
    watch.observe(canvas.current);
    const media = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => {
      colours.current = null;
      redraw((old) => old + 1);
    };
    media.addEventListener("change", changed);
    return () => {
      watch.disconnect();
      media.removeEventListener("change", changed);
    };
  }, []);

  const at = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top + scroller.current.scrollTop];
    const row = py < plan.height ? plan.rows[rowAt(plan.rows, py)] : undefined;
    const lane = row ? Math.floor((py - row.top) / LANE) : -1;
    for (const index of row?.bars ?? []) {
      if (bars.lane[index] !== lane) continue;
      const [start, end] = ends(index).map(x);
      if (px < start - EDGE || px > Math.max(end, start + 3) + EDGE) continue;
      const edge = Math.abs(px - end) <= EDGE && bars.end[index] !== null ? "end" : Math.abs(px - start) <= EDGE ? "start" : null;
      return {index, edge: edge && editable(index) ? edge : null, px, py};
    }
    return {index: null, px, py};
  };
  const down = (event) => {
    const found = at(event);
    if (found.index === null) return;
    canvas.current.setPointerCapture(event.pointerId);
    drag.current = found.edge ? {index: found.index, edge: found.edge, time: null, result: null} : {open: found.index};
    if (found.edge) drag.current.time = (found.edge === "end" ? bars.end : bars.start)[found.index] * 1000;
  };
  const move = (event) => {
    const held = drag.current;
    if (!held || held.open !== undefined) {
      const found = at(event);
      point(found.index === null ? null : found);
      canvas.current.style.cursor = found.edge ? "ew-resize" : found.index === null ? "default" : "pointer";
      return;
    }
    const box = canvas.current.getBoundingClientRect();
    held.time = Math.round(time(event.clientX - box.left) / 900000) * 900000;
    held.result = null;
    clearTimeout(held.timer);
    held.timer = setTimeout(async () => {
      const asked = held.time;
      const result = await onTry(held.index, held.edge, asked);
      if (drag.current === held && held.time === asked) {
        held.result = result;
        redraw((old) => old + 1);
      }
    }, REST);
    redraw((old) => old + 1);
  };
  const up = () => {
    const held = drag.current;
    drag.current = null;
    if (!held) return;
    clearTimeout(held.timer);
    if (held.open !== undefined) onOpen(held.open);
    else if (held.time !== (held.edge === "end" ? bars.end : bars.start)[held.index] * 1000) onDrop(held.index, held.edge, held.time);
    redraw((old) => old + 1);
  };
  /** The bars move in the frame of the scrolling itself; other labels are made where those that are there end. */
  const scrolled = () => {
    draw();
    const top = rowAt(plan.rows, scroller.current.scrollTop);
    if (Math.abs(top - first) > SPARE / 2) scrollTo(top);
  };
  const held = drag.current;
  const shown = held && held.open === undefined ? held.index : under?.index ?? null;
  const named = plan.rows.slice(Math.max(0, first - SPARE), first + Math.ceil(HIGHEST / LANE) + SPARE);
  return html`<div class="gantt" role="group" aria-label=${label}>
    <div class="axis" style=${{marginLeft: `${LABELS}px`}} aria-hidden="true">${ticks(from, to, wide()).map((one) => html`<span key=${one.at} style=${{left: `${(100 * (one.at - from)) / (to - from)}%`}}>${one.text}</span>`)}</div>
    <div class="scroll" ref=${scroller} style=${{height: `${visible}px`}} tabindex="0" role="region" aria-label="Rows; the table below has the same bars" onScroll=${scrolled}>
      <div style=${{height: `${plan.height}px`}}>
        <div class="stick" style=${{height: `${visible}px`}}>
          <div class="labels" style=${{width: `${LABELS}px`}}><div ref=${labels}>${named.map((row) => html`<span key=${row.id} title=${row.label} style=${{top: `${row.top}px`, height: `${row.height}px`}}>${row.label}</span>`)}</div></div>
          <canvas ref=${canvas} style=${{width: `calc(100% - ${LABELS}px)`, height: `${visible}px`}} onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerCancel=${() => { drag.current = null; }} onPointerLeave=${() => point(null)}></canvas></div></div></div>
    <p class="under" role="status">${shown === null ? "" : html`${bars.kind[shown]} <strong>${bars.label[shown]}</strong>: ${said(ends(shown)[0])} – ${bars.end[shown] === null ? "no end" : said(ends(shown)[1])}${held?.result ? html` <span class=${held.result.good ? "badge good" : "badge bad"}>${held.result.text}</span>` : ""}`}</p></div>`;
}
