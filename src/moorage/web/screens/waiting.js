// Leases that wait: in which order, for what, and when they may be granted.

import {html} from "../lib/page.js";
import {Link, ask} from "../lib/route.js";
import {path, useData} from "../lib/api.js";
import {When} from "../lib/time.js";
import {Badge, Beyond, Field, State, Table} from "../lib/parts.js";

function Screen({route: {query}, session}) {
  const all = session.operator && query.get("all") !== "0";
  const found = useData(path("/waitlist", {status: query.get("status") ?? "waiting", all_projects: all ? "true" : null, limit: 1000}));
  const rows = [...(found.data?.entries ?? [])].sort((a, b) => (a.before ?? 1e9) - (b.before ?? 1e9));
  return html`<form class="row" onSubmit=${(event) => event.preventDefault()}>
    <${Field} label="Status"><select value=${query.get("status") ?? "waiting"} onChange=${(event) => ask({status: event.target.value})}>${["waiting", "granted", "expired", "cancelled", "failed"].map((one) => html`<option>${one}</option>`)}</select><//>
    ${session.operator ? html`<label><input type="checkbox" checked=${all} onChange=${(event) => ask({all: event.target.checked ? null : "0"})} /> of all projects</label>` : null}</form>
  <${State} of=${found} empty=${rows.length ? null : "Nothing waits."}>
    <${Table} label="Waitlist" id=${(row) => row.id} rows=${rows} columns=${[
      {name: "before", label: "Order", number: true, show: (row) => (row.before === null ? "–" : row.before + 1)},
      {name: "name", label: "Lease"},
      ...(all ? [{name: "project_id", label: "Project"}] : []),
      {name: "places", label: "Places", number: true},
      {name: "earliest_start", label: "May start", show: (row) => html`<${When} at=${row.earliest_start} />${row.latest_start === row.earliest_start ? "" : html` to <${When} at=${row.latest_start} />`}`},
      {name: "waits_for", label: "Waits for", show: (row) => { const link = row.links.find((one) => one.rel === "explanation"); return html`${row.waits_for}: ${row.why} ${link ? html`<${Link} to=${`/why/${link.href.split("/").pop()}`}>Why?<//>` : ""}`; }},
      {name: "estimate", label: "Estimate", show: (row) => (row.estimate ? html`<${When} at=${row.estimate.start} /> <${Badge} kind=${row.estimate.proved ? "good" : "idle"}>${row.estimate.proved ? "proved" : "estimate"}<//>` : html`<span class="soft">${row.estimate_note ?? "not made yet"}</span>`), key: (row) => row.estimate?.start},
    ]} /><${Beyond} links=${found.data?.entries_links} number=${rows.length} /><//>`;
}

export default {
  path: "/waiting",
  title: "Waiting",
  allowed: (session) => Boolean(session.rules?.["moorage:waitlist:list"]),
  command: ({query}, session) => ["moorage waitlist list", session.operator && query.get("all") !== "0" && "--all-projects", query.get("status") && `--status ${query.get("status")}`].filter(Boolean).join(" "),
  Screen,
};
