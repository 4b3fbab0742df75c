// Capacity over time: free, held and reserved, allocated and away, stacked on one axis.

import {html, useEffect, useRef, useState} from "./page.js";
import Plot from "../vendor/uplot.js";
import {LABELS, ticks} from "./gantt.js";

const PARTS = [["allocated", "--strong"], ["reserved", "--held"], ["away", "--away"], ["available", "--free"]];
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Stacked columns for the chart: seconds, then each part on top of those before. */
export function stacked(points, to) {
  const times = points.map((one) => Date.parse(one.at) / 1000);
  const sums = points.map(() => 0);
  const columns = PARTS.map(([part]) => points.map((one, index) => (sums[index] += one[part] ?? 0)));
  return [[...times, to / 1000], ...columns.map((column) => [...column, column.at(-1)])];
}

/** The chart of one resource class. `points`: as the API answers; `from`, `to`: milliseconds. */
export function Curves({points, from, to, name}) {
  const place = useRef(null);
  const [scheme, see] = useState(0);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => see((old) => old + 1);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, []);
  useEffect(() => {
    const own = place.current;
    const text = css("--soft");
    const grid = {stroke: css("--line"), width: 1};
    const plot = new Plot({
      width: own.clientWidth, height: 170, padding: [8, 0, 0, 0],
      legend: {show: false}, cursor: {drag: {x: false, y: false}, points: {show: false}},
      scales: {x: {range: () => [from / 1000, to / 1000]}, y: {range: (_, low, high) => [0, Math.max(1, high)]}},
      axes: [{
        stroke: text, grid, ticks: grid, size: 26,
        splits: () => ticks(from, to, own.clientWidth - LABELS).map((one) => one.at / 1000),
        values: () => ticks(from, to, own.clientWidth - LABELS).map((one) => one.text),
      }, {stroke: text, grid, ticks: grid, size: LABELS}],
      series: [{}, ...PARTS.map(([part, colour]) => ({label: part, stroke: css(colour), fill: css(colour), paths: Plot.paths.stepped({align: 1}), points: {show: false}}))].map((one, index, all) => (index ? all[all.length - index] : one)),
    }, reversed(stacked(points, to)), own);
    const watch = new ResizeObserver(() => plot.setSize({width: own.clientWidth, height: 170}));
    watch.observe(own);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [points, from, to, scheme]);
  return html`<figure class="curves"><div ref=${place} role="img" aria-label=${`${name}: ${inText(points)}`}></div>
    <figcaption class="legend">${PARTS.map(([part, colour]) => html`<span key=${part}><i style=${{background: `var(${colour})`}}></i> ${part === "available" ? "free" : part === "reserved" ? "held and reserved" : part}</span>`)}</figcaption></figure>`;
}

/** The whole is painted first, so that the parts below it stay visible. */
const reversed = ([times, ...columns]) => [times, ...columns.reverse()];

/** The lowest and the present amount that is free, for those who do not see the chart. */
function inText(points) {
  const lowest = points.reduce((found, one) => (one.available < found.available ? one : found), points[0]);
  return `${points[0].available} free of ${points[0].total} at first, at least ${lowest.available} from ${lowest.at}`;
}
