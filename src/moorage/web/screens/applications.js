// The applications of the project, or of all for operators: what each is, where it stands, whether its policies hold.

import {html} from "../lib/page.js";
import {Link, ask, go} from "../lib/route.js";
import {path, useData} from "../lib/api.js";
import {may} from "../lib/session.js";
import {When, length, now} from "../lib/time.js";
import {Badge, Beyond, Field, State, Table, count} from "../lib/parts.js";

/** As many as one answer has. */
const MOST = 1000;
const KINDS = {held: "warn", confirmed: "good", closed: "idle", expired: "bad", released: "idle", superseded: "idle"};

/** A decision's state in words: what it is, and how long it is held. `decision`: in short, as in listings. */
export function Status({decision, broken}) {
  if (broken) return html`<${Badge} kind="bad">${count(broken, "violation")}<//>`;
  if (!decision) return html`<${Badge}>not placed<//>`;
  if (decision.lease_id && decision.status === "held") {
    return html`<${Badge} kind="good">leased<//> <span class="soft"><${When} at=${decision.interval.start} /> – <${When} at=${decision.interval.end} /></span>`;
  }
  const left = decision.status === "held" && decision.expires_at ? Date.parse(decision.expires_at) - now() : null;
  const {claimed, members} = decision;
  const building = claimed && claimed < members ? `, ${claimed} of ${members} claimed` : "";
  return html`<${Badge} kind=${KINDS[decision.status] ?? "idle"}>${decision.status}${building}${left !== null ? `, ${length(left)} left` : ""}<//>`;
}

function Screen({route: {query}, session}) {
  const all = session.operator && query.get("all") !== "0";
  const common = {all_projects: all ? "true" : null, limit: query.get("limit") ? MOST : 200};
  const found = useData(path("/ensembles", {...common, name: query.get("name"), sort_key: "created_at", sort_dir: "desc"}));
  const rows = found.data?.ensembles ?? [];
  const columns = [
    {name: "name", label: "Name", show: (row) => html`<${Link} to=${`/applications/${row.id}`}>${row.name}<//>`},
    ...(all ? [{name: "project_id", label: "Project"}] : []),
    {name: "members", label: "Members", show: (row) => row.members.map((one) => `${one.count} ${one.name}`).join(", "), key: (row) => row.members.reduce((sum, one) => sum + one.count, 0)},
    {name: "status", label: "Status", show: (row) => html`<${Status} decision=${row.decision_summary} broken=${row.broken} />`, key: (row) => (row.broken ? 0 : row.decision_summary?.status ?? "z")},
    {name: "policies", label: "Policies met", show: (row) => policies(row), key: (row) => row.broken ?? 0},
    {name: "created_at", label: "Created", show: (row) => html`<${When} at=${row.created_at} />`},
  ];
  return html`<div class="row">
      <${Field} label="Name"><input type="search" value=${query.get("name") ?? ""} onChange=${(event) => ask({name: event.target.value.trim()})} /><//>
      ${session.operator ? html`<label><input type="checkbox" checked=${all} onChange=${(event) => ask({all: event.target.checked ? null : "0"})} /> of all projects</label>` : null}
      ${may("moorage:ensembles:create") ? html`<button type="button" class="main" onClick=${() => go("/place")}>Place an application…</button>` : null}</div>
    <${Quota} project=${session.project} />
    <${State} of=${found} empty=${rows.length ? null : query.get("name") ? html`No application is called “${query.get("name")}”. <${Link} to="/applications">Show all<//>` : html`Nothing is described yet. ${may("moorage:ensembles:create") ? html`<${Link} to="/place">Place an application<//>: paste a description, try it, and place it.` : ""}`}>
      <${Table} label="Applications" id=${(row) => row.id} rows=${rows} columns=${columns} onOpen=${(row) => go(`/applications/${row.id}`)} href />
      ${common.limit === MOST ? html`<${Beyond} links=${found.data?.ensembles_links} number=${rows.length} hint="Find others by name." />` : found.data?.ensembles_links?.length ? html`<p><button type="button" onClick=${() => ask({limit: MOST})}>Read more</button></p>` : null}<//>`;
}

const LIMITS = {held_units: "held places", ensembles: "applications", leases: "leases", lease_units: "leased places at one time", lease_unit_hours: "place hours of leases", offers: "offers", waitlist_entries: "waiting leases", series: "series"};

/** What is left of the limits of one's own project. */
function Quota({project}) {
  const found = useData(may("moorage:quotas:show") ? `/quotas/${encodeURIComponent(project.id)}` : null);
  const quota = found.data?.quota;
  const limits = quota ? Object.entries(LIMITS).map(([name, label]) => ({label, ...quota[name]})).filter((one) => typeof one.limit === "number" && typeof one.used === "number") : [];
  const short = limits.filter((one) => one.left <= one.limit / 5);
  return limits.length ? html`<details><summary>Quota of project ${project.name}: ${short.length ? short.map((one) => html`<${Badge} key=${one.label} kind=${one.left > 0 ? "warn" : "bad"}>${Math.max(0, one.left)} of ${one.limit} ${one.label} left<//> `) : "enough is left"}</summary>
    <${Table} label="Quota" id=${(row) => row.label} rows=${limits} columns=${[
      {name: "label", label: "Limit"}, {name: "limit", label: "At most", number: true}, {name: "used", label: "Used", number: true}, {name: "left", label: "Left", number: true},
    ]} /></details>` : null;
}

function policies(row) {
  const all = row.policies.length;
  if (!all) return html`<span class="soft">none</span>`;
  if (!row.decision_summary) return html`<span class="soft">${count(all, "policy", "policies")}</span>`;
  return `${row.broken ? `${row.broken} broken of` : `${row.decision_summary.policies_met} of`} ${all}`;
}

export default {
  path: "/applications",
  title: "Applications",
  allowed: (session) => Boolean(session.rules?.["moorage:ensembles:list"]),
  command: ({query}, session) => ["moorage ensemble list", session.operator && query.get("all") !== "0" && "--all-projects", query.get("name") && `--name ${query.get("name")}`].filter(Boolean).join(" "),
  Screen,
};
