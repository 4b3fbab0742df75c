// The map of a fleet on a canvas. Each host is one texel of an off-screen picture, which is scaled when one zooms; what
// stands in a cell is drawn only for the hosts that can be seen, once their cells are large enough.

import {html, useEffect, useMemo, useRef, useState} from "./page.js";
import {between, cellOf, hit, layout, step} from "./fleet_layout.js";

export const FLAG = {closed: 1, down: 2, away: 4, over: 8, violation: 16, filtered: 32, held: 64, exclusive: 128};
const NONE = 255;
const DETAIL = 14;
const NAMES = 58;
const FRAMES = 3;

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
/** `#fff` or `#ffffff` as three numbers. */
const rgb = (hex) => {
  const digits = hex.length === 4 ? `#${[...hex.slice(1)].map((one) => one + one).join("")}` : hex;
  return [1, 3, 5].map((at) => parseInt(digits.slice(at, at + 2), 16));
};

/** Colours of fills 0 to 100 %, between the two ends of one hue, and of what is special. */
function palette() {
  const [from, to] = [rgb(css("--ramp-0")), rgb(css("--ramp-1"))];
  const mix = (share) => from.map((part, index) => Math.round(part + (to[index] - part) * share));
  return {
    ramp: Array.from({length: 101}, (_, percent) => mix(percent / 100)),
    none: rgb(css("--free")), ground: rgb(css("--card")), text: css("--text"), soft: css("--soft"), line: css("--line"),
    mark: css("--mark"), bad: css("--bad"), strong: css("--strong"), card: css("--card"),
  };
}

/** A column of bytes from its base64; null where there is none. */
export const bytes = (text) => (typeof text === "string" ? Uint8Array.from(atob(text), (one) => one.charCodeAt(0)) : null);
/** A column of 16-bit numbers, little endian. */
export const words = (text) => new Uint16Array(bytes(text).buffer);

/** The picture: one texel per host. By how many of a flavor still fit, if `fits`, else by fill. */
function texture(plan, map, colours) {
  const canvas = document.createElement("canvas");
  const {unit} = plan;
  const wide = Math.ceil(plan.width * unit);
  canvas.width = wide;
  canvas.height = Math.ceil(plan.height * unit);
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const {data} = image;
  const most = largest(map.fits);
  for (const block of plan.blocks) {
    for (let within = 0; within < block.count; within += 1) {
      const host = block.first + within;
      const at = 4 * ((block.y + Math.floor(within / block.columns)) * unit * wide + (block.x + (within % block.columns)) * unit);
      const flags = map.flags[host];
      let colour = colours.none;
      if (map.fits) colour = map.fits[host] ? colours.ramp[Math.round(100 * Math.min(1, map.fits[host] / most))] : colours.none;
      else if (map.fill[host] !== NONE) colour = colours.ramp[Math.min(100, map.fill[host])];
      const faded = flags & FLAG.filtered;
      for (let part = 0; part < 3; part += 1) data[at + part] = faded ? Math.round(colour[part] * 0.12 + colours.ground[part] * 0.88) : colour[part];
      data[at + 3] = 255;
      for (let row = 0; row < unit; row += 1) {
        for (let column = row ? 0 : 1; column < unit; column += 1) data.copyWithin(at + 4 * (row * wide + column), at, at + 4);
      }
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** The largest number of a column, at least 1. */
function largest(column) {
  let found = 1;
  for (const one of column ?? []) if (one > found) found = one;
  return found;
}

/** Marks of state, by shape as well as by colour, in a cell of the given size; as `moorage fleet show -f svg` has them. */
function mark(context, flags, x, y, size, colours) {
  context.lineWidth = Math.max(1, Math.min(2.5, size / 12));
  if (flags & (FLAG.away | FLAG.down)) {
    context.strokeStyle = flags & FLAG.away ? colours.soft : colours.bad;
    context.beginPath();
    for (let offset = 0.25; offset < 2; offset += 0.5) {
      context.moveTo(x + Math.max(0, offset - 1) * size, y + Math.min(1, offset) * size);
      context.lineTo(x + Math.min(1, offset) * size, y + Math.max(0, offset - 1) * size);
    }
    context.stroke();
  } else if (flags & FLAG.closed) {
    context.strokeStyle = colours.text;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + size, y + size);
    context.moveTo(x + size, y);
    context.lineTo(x, y + size);
    context.stroke();
  }
  if (flags & FLAG.over) {
    context.strokeStyle = colours.mark;
    context.lineWidth = Math.max(1.5, Math.min(4, size / 7));
    context.strokeRect(x + context.lineWidth / 2, y + context.lineWidth / 2, size - context.lineWidth, size - context.lineWidth);
  }
  if (flags & FLAG.violation) {
    const corner = Math.min(size * 0.5, 16);
    context.fillStyle = colours.bad;
    context.beginPath();
    context.moveTo(x + size - corner, y);
    context.lineTo(x + size, y);
    context.lineTo(x + size, y + corner);
    context.fill();
  }
}

/** Wide for high, of the room that the map has in the window: below 760 px nothing is beside it. */
const aspect = () => Math.max(0.5, Math.min(3, (innerWidth - (innerWidth > 760 ? 220 : 28)) / Math.min(innerHeight * 0.68, 736)));

/**
 * The map. `map`: decoded columns `{blocks, parents, names, fill, flags, fits}`; `chosen`: index of a host or null;
 * `describe(host)`: the text under the pointer; `onOpen(host)`. `picked`: a set of hosts, to which a drag with the shift
 * key adds, and in which the space bar puts the host under the cursor or takes it out: `onPick(hosts, add)`.
 */
export function FleetMap({map, chosen, picked, describe, describeBlock, onOpen, onPick, label}) {
  const canvas = useRef(null);
  const view = useRef({scale: 0, x: 0, y: 0});
  const drag = useRef(null);
  const [under, point] = useState(null);
  const [cursor, move] = useState(null);
  const [scheme, see] = useState(0);
  const [extent, resize] = useState(0);
  const plan = useMemo(() => layout(map.blocks, map.parents, aspect()), [map.shape]);
  const colours = useMemo(palette, [scheme]);
  const most = useMemo(() => largest(map.fits), [map.fits]);
  const picture = useMemo(() => texture(plan, map, colours), [plan, map, colours]);

  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => see((old) => old + 1);
    media.addEventListener("change", changed);
    const watch = new ResizeObserver(() => resize((old) => old + 1));
    watch.observe(canvas.current);
    return () => {
      media.removeEventListener("change", changed);
      watch.disconnect();
    };
  }, []);

  const fit = () => {
    const {clientWidth, clientHeight} = canvas.current;
    const scale = Math.min(clientWidth / plan.width, clientHeight / plan.height, 120);
    view.current = {scale, x: (clientWidth - scale * plan.width) / 2, y: Math.max(0, Math.min(8, clientHeight - scale * plan.height))};
  };

  const draw = () => {
    const own = canvas.current;
    if (!own || !own.clientWidth) return;
    const ratio = devicePixelRatio || 1;
    const [wide, high] = [own.clientWidth, own.clientHeight];
    if (own.width !== Math.round(wide * ratio) || own.height !== Math.round(high * ratio)) {
      own.width = Math.round(wide * ratio);
      own.height = Math.round(high * ratio);
    }
    if (!view.current.scale) fit();
    const {scale, x: left, y: top} = view.current;
    const context = own.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, wide, high);
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, left, top, (scale * picture.width) / plan.unit, (scale * picture.height) / plan.unit);
    for (const band of plan.bands) {
      if (top + band.end * scale < 0 || top + band.y * scale > high) continue;
      context.fillStyle = colours.text;
      const size = Math.max(11, Math.min(16, scale * 1.4));
      context.font = `600 ${size}px system-ui`;
      context.textBaseline = "bottom";
      context.fillText(band.name, Math.max(4, left), top + band.y * scale + Math.max(size + 1, plan.head * 0.65 * scale + 2), wide - 8);
      if (scale < FRAMES) continue;
      for (const shelf of band.shelves) {
        if (top + (shelf.y + shelf.height) * scale < 0 || top + shelf.y * scale > high) continue;
        for (const block of shelf.blocks) drawBlock(context, block, wide, high);
      }
    }
    for (const [host, colour] of [...[...picked].map((one) => [one, colours.strong]), [cursor, colours.text], [chosen, colours.mark]]) {
      const cell = host === null || host === undefined ? null : cellOf(plan, host);
      if (!cell) continue;
      context.strokeStyle = colour;
      context.lineWidth = 2.5;
      context.strokeRect(left + cell.x * scale - 1.5, top + cell.y * scale - 1.5, scale + 3, scale + 3);
    }
    const {from, to} = drag.current ?? {};
    if (from) {
      context.strokeStyle = colours.mark;
      context.lineWidth = 1.5;
      context.setLineDash([5, 4]);
      context.strokeRect(from.x, from.y, to.x - from.x, to.y - from.y);
      context.setLineDash([]);
    }
  };

  const drawBlock = (context, block, wide, high) => {
    const {scale, x: left, y: top} = view.current;
    const [x, y] = [left + block.x * scale, top + block.y * scale];
    if (x > wide || x + block.columns * scale < 0) return;
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.strokeRect(x - 1, y - 1, block.columns * scale + 2, block.rows * scale + 2);
    // Where names had no room of their own they would cover the hosts above.
    if (plan.room * scale >= 11 && block.columns * scale > 16) {
      context.fillStyle = colours.soft;
      context.font = `${Math.max(10, Math.min(13, plan.room * scale - 3))}px system-ui`;
      context.textBaseline = "bottom";
      context.fillText(describeBlock(block, block.columns * scale), x, y - 2, block.columns * scale);
    }
    for (let within = 0; within < block.count; within += 1) {
      const [cx, cy] = [x + (within % block.columns) * scale, y + Math.floor(within / block.columns) * scale];
      if (cy > high || cy + scale < 0 || cx > wide || cx + scale < 0) continue;
      const host = block.first + within;
      const flags = map.flags[host];
      if (scale >= 5 && flags & 31) mark(context, flags, cx, cy, scale, colours);
      if (scale < DETAIL) continue;
      context.strokeStyle = colours.card;
      context.lineWidth = 1;
      context.strokeRect(cx + 0.5, cy + 0.5, scale - 1, scale - 1);
      if (scale < NAMES) continue;
      const dark = map.fits ? map.fits[host] / most > 0.55 : map.fill[host] > 55 && map.fill[host] !== NONE;
      context.fillStyle = dark && !(flags & FLAG.filtered) ? colours.card : colours.text;
      context.font = "12px system-ui";
      context.textBaseline = "top";
      context.fillText(map.names[host], cx + 5, cy + 5, scale - 10);
      context.fillText(map.fits ? `fits ${map.fits[host]}` : map.fill[host] === NONE ? "none" : `${map.fill[host]} %`, cx + 5, cy + 20, scale - 10);
    }
  };

  useEffect(() => {
    view.current.scale = 0;
  }, [plan]);
  useEffect(() => {
    const frame = requestAnimationFrame(draw);
    return () => cancelAnimationFrame(frame);
  });

  const at = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const {scale, x, y} = view.current;
    return {px: event.clientX - box.left, py: event.clientY - box.top, found: hit(plan, (event.clientX - box.left - x) / scale, (event.clientY - box.top - y) / scale)};
  };
  const zoom = (factor, px, py) => {
    const {scale, x, y} = view.current;
    const next = Math.max(0.4, Math.min(140, scale * factor));
    view.current = {scale: next, x: px - ((px - x) * next) / scale, y: py - ((py - y) * next) / scale};
    draw();
  };
  useEffect(() => {
    const own = canvas.current;
    const wheel = (event) => {
      event.preventDefault();
      const box = own.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
    };
    own.addEventListener("wheel", wheel, {passive: false});
    return () => own.removeEventListener("wheel", wheel);
  });
  const down = (event) => {
    canvas.current.setPointerCapture(event.pointerId);
    const {px, py} = at(event);
    drag.current = event.shiftKey && onPick ? {from: {x: px, y: py}, to: {x: px, y: py}} : {x: event.clientX, y: event.clientY, moved: 0};
  };
  const over = (event) => {
    if (drag.current?.from) {
      const {px, py} = at(event);
      drag.current.to = {x: px, y: py};
      draw();
      return;
    }
    if (drag.current) {
      const [dx, dy] = [event.clientX - drag.current.x, event.clientY - drag.current.y];
      drag.current = {x: event.clientX, y: event.clientY, moved: drag.current.moved + Math.abs(dx) + Math.abs(dy)};
      view.current = {...view.current, x: view.current.x + dx, y: view.current.y + dy};
      draw();
      return;
    }
    const {px, py, found} = at(event);
    point(found && {px, py, found});
  };
  const up = (event) => {
    const {from, to} = drag.current ?? {};
    if (from) {
      drag.current = null;
      const {scale, x, y} = view.current;
      const cell = (one) => ({x: (one.x - x) / scale, y: (one.y - y) / scale});
      onPick(between(plan, cell(from), cell(to)).filter((host) => !(map.flags[host] & FLAG.filtered)), true);
      draw();
      return;
    }
    const still = drag.current && drag.current.moved < 5;
    drag.current = null;
    const {found} = at(event);
    if (still && found && found.host !== null) onOpen(found.host);
  };
  const key = (event) => {
    if (/^(Arrow|Home|End)/.test(event.key)) {
      event.preventDefault();
      move(step(plan, cursor, event.key, map.names.length));
    } else if (event.key === "Enter" && cursor !== null) onOpen(cursor);
    else if (event.key === " " && onPick) {
      event.preventDefault();
      if (cursor !== null) onPick([cursor], !picked.has(cursor));
    }
    else if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 1.4 : 1 / 1.4, canvas.current.clientWidth / 2, canvas.current.clientHeight / 2);
    else if (event.key === "0") {
      fit();
      draw();
    }
  };
  const text = under && (under.found.host === null ? describeBlock(under.found.block, 1000) : describe(under.found.host));
  return html`<div class="map" data-extent=${extent}>
    <canvas ref=${canvas} role="application" tabindex="0" aria-label=${`${label}. Arrow keys walk from host to host, Enter opens one, plus and minus zoom.${onPick ? " The space bar selects one, dragging with the shift key several." : ""} The table has the same hosts.`}
      onPointerDown=${down} onPointerMove=${over} onPointerUp=${up} onPointerLeave=${() => point(null)} onKeyDown=${key} onDblClick=${(event) => { const {px, py} = at(event); zoom(2, px, py); }}></canvas>
    ${text ? html`<div class="hover" style=${{left: `${Math.min(under.px + 12, (canvas.current?.clientWidth ?? 300) - 200)}px`, top: `${under.py + 14}px`}}>${text}</div>` : null}
    <p class="hidden" role="status">${cursor === null ? "" : `${describe(cursor)}${picked.has(cursor) ? ", selected" : ""}`}</p></div>`;
}

/** The ramp of colours, for the legend. */
export function Ramp() {
  const own = useRef(null);
  useEffect(() => {
    const context = own.current.getContext("2d");
    const {ramp} = palette();
    ramp.forEach((colour, percent) => {
      context.fillStyle = `rgb(${colour})`;
      context.fillRect(percent, 0, 1, 10);
    });
  });
  return html`<canvas ref=${own} width="101" height="10" role="img" aria-label="pale: empty, dark: full"></canvas>`;
}
