// What is broken at present, and was: since when and why.

import {html} from "../lib/page.js";
import {Link, ask} from "../lib/route.js";
import {path, useData} from "../lib/api.js";
import {may} from "../lib/session.js";
import {When} from "../lib/time.js";
import {Badge, Beyond, Field, State, Table} from "../lib/parts.js";

const KINDS = {host: "a host changed", member_moved: "a member moved", member_removed: "a member was removed", neighbour: "a neighbour changed", ensemble: "its description changed", topology: "the topology changed", reference: "what it refers to changed", found: "found by the sweep"};

/** A cause in words: what, and who. `by` is work of the service itself, which only noticed what others did. */
export const listed = (cause) => inText(cause, (cause.hosts ?? []).join(", ")).join("");

/** A cause with its hosts as links, for those who may see them: there is who closed one, and why. */
export function Cause({of}) {
  if (!may("moorage:fleet:map")) return listed(of);
  return inText(of, (of.hosts ?? []).map((one, index) => html`${index ? ", " : ""}<${Link} key=${one} to="/fleet" query=${{host: one}}>${one}<//>`));
}

function inText(cause, hosts) {
  const who = cause.user ? `, by ${cause.user}` : cause.by ? `, noticed by the service (${cause.by})` : "";
  return [KINDS[cause.kind] ?? cause.kind, ...(hosts.length ? [" (", hosts, cause.reason ? `: ${cause.reason})` : ")"] : []), who];
}

function Screen({route: {query}, session}) {
  const all = session.operator && query.get("all") !== "0";
  const found = useData(path("/violations", {
    state: query.get("state") ?? "open", type: query.get("type"), host: query.get("host"), ensemble: query.get("ensemble"),
    all_projects: all ? "true" : null, limit: 1000,
  }));
  const rows = found.data?.violations ?? [];
  const set = (name) => (event) => ask({[name]: event.target.value.trim() || null});
  return html`<form class="row" onSubmit=${(event) => event.preventDefault()}>
    <${Field} label="State"><select value=${query.get("state") ?? "open"} onChange=${set("state")}>${["open", "ended", "all"].map((one) => html`<option>${one}</option>`)}</select><//>
    <${Field} label="Type"><input value=${query.get("type") ?? ""} placeholder="survive, lost, …" onChange=${set("type")} /><//>
    ${session.operator ? html`<${Field} label="Host"><input value=${query.get("host") ?? ""} onChange=${set("host")} /><//>
      <label><input type="checkbox" checked=${all} onChange=${(event) => ask({all: event.target.checked ? null : "0"})} /> of all projects</label>` : null}</form>
  <${State} of=${found} empty=${rows.length ? null : query.get("state") === "ended" ? "Nothing has been broken." : "Nothing is broken: every judged policy holds, and every member's host is in service."}>
    <${Table} label="Violations" id=${(row) => row.id} rows=${rows} columns=${[
      {name: "ensemble", label: "Application", show: (row) => html`<${Link} to=${`/applications/${row.ensemble_id}`}>${row.ensemble}<//>`},
      ...(all ? [{name: "project_id", label: "Project"}] : []),
      {name: "policy", label: "What", show: (row) => html`<${Badge} kind=${row.until ? "idle" : row.required ? "bad" : "warn"}>${row.policy ?? `${row.members.join(", ")} ${row.type.replace("_", " ")}`}<//>`, key: (row) => row.policy ?? row.type},
      {name: "text", label: "How"},
      {name: "since", label: "Since", show: (row) => html`<${When} at=${row.since} />`},
      {name: "until", label: "Until", show: (row) => html`<${When} at=${row.until} none="lasts" />`},
      {name: "because", label: "Cause", show: (row) => html`<${Cause} of=${row.because} />`, key: (row) => listed(row.because)},
    ]} /><${Beyond} links=${found.data?.violations_links} number=${rows.length} /><//>`;
}

export default {
  path: "/violations",
  title: "Violations",
  allowed: (session) => Boolean(session.rules?.["moorage:violations:list"]),
  command: ({query}, session) => ["moorage violation list", session.operator && query.get("all") !== "0" && "--all-projects", query.get("state") && `--state ${query.get("state")}`, query.get("type") && `--type ${query.get("type")}`, query.get("host") && `--host ${query.get("host")}`].filter(Boolean).join(" "),
  Screen,
};
