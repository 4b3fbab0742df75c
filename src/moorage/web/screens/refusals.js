// What was refused: how often for which cause, day by day, and each with its explanation.

import {html, useMemo} from "../lib/page.js";
import {Link, ask, go} from "../lib/route.js";
import {path, useData} from "../lib/api.js";
import {DAY, When, iso, now, said} from "../lib/time.js";
import {Badge, Bar, Field, State, Table, count} from "../lib/parts.js";

const STAGES = {static: "fits no fleet", capacity: "no room", policy: "policies", time: "not in that period", contention: "others were quicker", quota: "beyond the quota", unknown: "not found out"};
const DAYS = {"1": "a day", "7": "a week", "30": "30 days"};

/** Refusals per day as small columns, with the numbers in their titles and in a hidden table. */
function Trend({rows, days}) {
  const today = Math.floor(now() / DAY);
  const sums = useMemo(() => {
    const found = new Array(days).fill(0);
    for (const one of rows) {
      const ago = today - Math.floor(Date.parse(one.computed_at) / DAY);
      if (ago >= 0 && ago < days) found[days - 1 - ago] += 1;
    }
    return found;
  }, [rows, days]);
  const most = Math.max(1, ...sums);
  const wide = 100 / days;
  return html`<figure><svg viewBox="0 0 100 24" preserveAspectRatio="none" width="100%" height="80" role="img" aria-label=${`Refusals per day: ${sums.join(", ")}`}>
    ${sums.map((sum, index) => html`<rect key=${index} x=${index * wide + wide * 0.1} y=${23 - (22 * sum) / most} width=${wide * 0.8} height=${(22 * sum) / most} fill="var(--strong)"><title>${said((today - days + 1 + index) * DAY)}: ${sum}</title></rect>`)}</svg>
    <figcaption class="soft">Refusals per day, over ${DAYS[days]}; at most ${most} on one</figcaption></figure>`;
}

function Screen({route: {query}, session}) {
  const days = DAYS[query.get("days")] ? Number(query.get("days")) : 7;
  const all = session.operator && query.get("all") !== "0";
  const since = useMemo(() => iso(Math.floor((now() - days * DAY) / 60000) * 60000), [days]);
  const found = useData(path("/explanations", {since, stage: query.get("stage"), ensemble: query.get("ensemble"), all_projects: all ? "true" : null, limit: 1000}));
  const rows = found.data?.explanations ?? [];
  const stages = new Map();
  for (const one of rows) stages.set(one.stage, (stages.get(one.stage) ?? 0) + 1);
  return html`<form class="row" onSubmit=${(event) => event.preventDefault()}>
    <${Field} label="Of the last"><select value=${String(days)} onChange=${(event) => ask({days: event.target.value})}>${Object.entries(DAYS).map(([key, label]) => html`<option value=${key}>${label}</option>`)}</select><//>
    <${Field} label="Cause"><select value=${query.get("stage") ?? ""} onChange=${(event) => ask({stage: event.target.value || null})}><option value="">all</option>${Object.entries(STAGES).map(([key, label]) => html`<option value=${key}>${key}: ${label}</option>`)}</select><//>
    ${session.operator ? html`<label><input type="checkbox" checked=${all} onChange=${(event) => ask({all: event.target.checked ? null : "0"})} /> of all projects</label>` : null}</form>
  <${State} of=${found} empty=${rows.length ? null : "Nothing was refused."}>
    <div class="cards"><div class="card"><h2 class="first">Causes</h2><ul class="funnel">${[...stages].sort((a, b) => b[1] - a[1]).map(([stage, sum]) => html`<li key=${stage}><span>${stage}: ${STAGES[stage] ?? ""}</span><${Bar} parts=${[{share: sum / rows.length, kind: "allocated", label: `${sum}`}]} label=${`${sum} of ${rows.length}`} /><span>${sum}</span></li>`)}</ul></div>
      <div class="card"><h2 class="first">Trend</h2><${Trend} rows=${rows} days=${days} /></div></div>
    <h2>${count(rows.length, "refusal")}${found.data?.explanations_links?.length ? " (the newest)" : ""}</h2>
    <${Table} label="Refusals" id=${(row) => row.id} rows=${rows} onOpen=${(row) => go(`/why/${row.id}`)} href columns=${[
      {name: "ensemble", label: "What", show: (row) => html`<${Link} to=${`/why/${row.id}`}>${row.ensemble ?? "a description"}<//>`},
      ...(all ? [{name: "project_id", label: "Project"}] : []),
      {name: "stage", label: "Cause", show: (row) => html`<${Badge} kind="warn">${row.stage}<//>`},
      {name: "why", label: "Why"},
      {name: "computed_at", label: "When", show: (row) => html`<${When} at=${row.computed_at} />`},
    ]} /><//>`;
}

export default {
  path: "/refusals",
  title: "Refusals",
  allowed: (session) => Boolean(session.rules?.["moorage:explanations:list"]),
  command: ({query}, session) => ["moorage explanation list", session.operator && query.get("all") !== "0" && "--all-projects", query.get("stage") && `--stage ${query.get("stage")}`].filter(Boolean).join(" "),
  Screen,
};
