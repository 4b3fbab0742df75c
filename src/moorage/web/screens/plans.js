// Plans: ordered moves of servers, made, applied and followed.

import {html, useState} from "../lib/page.js";
import {Link, ask, go} from "../lib/route.js";
import {call, path, useData} from "../lib/api.js";
import {may} from "../lib/session.js";
import {When} from "../lib/time.js";
import {Badge, Beyond, Field, Problem, State, Table, count} from "../lib/parts.js";

export const STATES = {ready: "idle", running: "warn", paused: "bad", done: "good", canceled: "idle"};
const KINDS = {drain: "Drain hosts", evacuate: "Evacuate hosts that are down", repair: "Repair an application", rebalance: "Rebalance the fleet"};

/** What a kind of plan is for, in the field of its name. */
const SUBJECTS = {drain: "Hosts, or domains such as rack/r2", evacuate: "Hosts, or domains such as rack/r2", repair: "Application"};

/** The ensemble of this name or id. */
async function ensembleOf(text) {
  if (/^[0-9a-f-]{36}$/.test(text)) return text;
  const {ensembles} = await call("GET", path("/ensembles", {name: text, all_projects: "true", limit: 2}));
  if (ensembles.length === 1) return ensembles[0].id;
  throw new Error(ensembles.length ? `Several applications are called “${text}”: give the id.` : `No application is called “${text}”.`);
}

async function described(kind, subject, cold) {
  if (kind === "rebalance") return {kind};
  const named = subject.split(",").map((one) => one.trim()).filter(Boolean);
  if (kind === "repair") return {kind, ensemble: await ensembleOf(subject.trim())};
  return {kind, cold, hosts: named.filter((one) => !one.includes("/")), domains: named.filter((one) => one.includes("/"))};
}

function Make({query}) {
  const [kind, choose] = useState(KINDS[query.get("kind")] ? query.get("kind") : "drain");
  const [subject, name] = useState(query.get("of") ?? "");
  const [cold, stop] = useState(false);
  const [busy, work] = useState(false);
  const [error, tell] = useState(null);
  const send = async (event) => {
    event.preventDefault();
    work(true);
    tell(null);
    try {
      const {plan} = await call("POST", "/plans", {plan: await described(kind, subject, cold)});
      go(`/plans/${plan.id}`);
    } catch (failure) {
      tell(failure);
      work(false);
    }
  };
  return html`<form class="row" onSubmit=${send}>
      <${Field} label="Plan to"><select value=${kind} onChange=${(event) => choose(event.target.value)}>${Object.entries(KINDS).map(([key, label]) => html`<option value=${key}>${label}</option>`)}</select><//>
      ${SUBJECTS[kind] ? html`<${Field} label=${SUBJECTS[kind]}><input value=${subject} required onInput=${(event) => name(event.target.value)} /><//>` : null}
      ${kind === "drain" ? html`<label><input type="checkbox" checked=${cold} onChange=${(event) => stop(event.target.checked)} /> stop servers while they move</label>` : null}
      <button class="main" disabled=${busy}>Make a plan</button><span class="soft" role="status">${busy ? "Planning…" : "Nothing moves before the plan is applied."}</span></form>
    <${Problem} error=${error} />`;
}

function Screen({route: {query}}) {
  const found = useData(path("/plans", {state: query.get("state"), limit: 200}));
  const rows = found.data?.plans ?? [];
  return html`${may("moorage:plans:create") ? html`<${Make} query=${query} />` : null}
    <div class="row"><${Field} label="State"><select value=${query.get("state") ?? ""} onChange=${(event) => ask({state: event.target.value})}><option value="">all</option>${Object.keys(STATES).map((one) => html`<option>${one}</option>`)}</select><//></div>
    <${State} of=${found} empty=${rows.length ? null : query.get("state") ? "No plan is in this state." : "There are no plans yet."}>
    <${Table} label="Plans" id=${(row) => row.id} rows=${rows} onOpen=${(row) => go(`/plans/${row.id}`)} href columns=${[
      {name: "subject", label: "For", show: (row) => html`<${Link} to=${`/plans/${row.id}`}>${row.kind} ${row.subject}<//>`, key: (row) => `${row.kind} ${row.subject}`},
      {name: "state", label: "State", show: (row) => html`<${Badge} kind=${STATES[row.state] ?? "idle"}>${row.state}<//>`},
      {name: "move_count", label: "Moves", show: (row) => `${row.done} of ${row.move_count} done${row.failed ? `, ${row.failed} failed` : ""}`, key: (row) => row.move_count},
      {name: "unmoved_count", label: "Left out", show: (row) => (row.unmoved_count ? html`<${Badge} kind="warn">${count(row.unmoved_count, "server")}<//>` : "none"), key: (row) => row.unmoved_count},
      {name: "by", label: "By", show: (row) => html`<${When} at=${row.by} none="no matter" />`},
      {name: "created_at", label: "Made", show: (row) => html`<${When} at=${row.created_at} />`},
    ]} /><${Beyond} links=${found.data?.plans_links} number=${rows.length} /><//>`;
}

export default {
  path: "/plans",
  title: "Plans",
  allowed: (session) => Boolean(session.rules?.["moorage:plans:list"]),
  command: ({query}) => ["moorage plan list", query.get("state") && `--state ${query.get("state")}`].filter(Boolean).join(" "),
  Screen,
};
