// One application: where its members stand, which policies hold and why, and what is left when a domain is lost.

import {html, useState} from "../lib/page.js";
import {Link, ask} from "../lib/route.js";
import {call, path, useData} from "../lib/api.js";
import {When} from "../lib/time.js";
import {Badge, Problem, State, Table, count} from "../lib/parts.js";
import {may} from "../lib/session.js";
import {Status} from "./applications.js";
import {listed} from "./violations.js";

const PAGE = 1000;

/** Whether a policy speaks of a member: selectors are roles, members, and what matches them by a star. */
export function concerns(policy, member) {
  return [...(policy.members ?? []), ...(policy.zip ?? [])].some((one) => {
    const text = typeof one === "string" ? one : one.role ?? one.name ?? "";
    return text === member.role || text === member.name || text === "*" || (text.endsWith("*") && member.name.startsWith(text.slice(0, -1)));
  });
}

/** What a policy asks, in a sentence of its own parameters. */
function asked(policy) {
  const shown = new Set(["name", "type", "members", "zip", "strength", "phase", "on_violation"]);
  const of = policy.zip ? `pairs of ${policy.zip.join(" and ")}` : (policy.members ?? []).map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(", ");
  const rest = Object.entries(policy).filter(([name]) => !shown.has(name)).map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(", ") : typeof value === "object" ? JSON.stringify(value) : value}`);
  return `${policy.type} of ${of || "all"}${rest.length ? `: ${rest.join(", ")}` : ""}`;
}

/** Why a policy holds or does not, from where its members stand. */
function because(policy, state, members) {
  if (state?.text) return state.text;
  const level = policy.level ?? "host";
  const own = members.filter((one) => concerns(policy, one) && one.domains?.[level]);
  if (!own.length) return "none of its members has a place";
  const most = new Map();
  for (const one of own) most.set(one.domains[level], (most.get(one.domains[level]) ?? 0) + 1);
  const used = count(most.size, level);
  if (policy.type === "survive") return `${used} used, at most ${Math.max(...most.values())} of ${own.length} on one`;
  if (policy.type === "proximity" || policy.type === "affinity") return `${count(own.length, "member")} on ${used}`;
  return `${count(own.length, "member")} on ${used}${policy.min_domains ? `, needs ${policy.min_domains}` : ""}`;
}

function Policies({ensemble, decision, compliance, members, light}) {
  const judged = new Map((compliance?.policies ?? []).map((one) => [one.name, one]));
  const slack = new Map((decision?.policies ?? []).map((one) => [one.name, one]));
  if (!ensemble.policies.length) return html`<p class="empty">It has no policies: its members may stand anywhere.</p>`;
  return html`<ul class="policies">${ensemble.policies.map((policy) => {
    const state = judged.get(policy.name);
    const placed = slack.get(policy.name);
    const required = policy.strength === undefined || policy.strength === "required";
    const kind = !state || !compliance.placed ? "idle" : state.ok ? "good" : required ? "bad" : "warn";
    const word = !state || !compliance.placed ? "not judged" : state.ok ? "met" : required ? "broken" : "not met";
    return html`<li key=${policy.name} tabindex="0" onMouseEnter=${() => light(policy)} onMouseLeave=${() => light(null)} onFocus=${() => light(policy)} onBlur=${() => light(null)}>
      <${Badge} kind=${kind}>${word}<//> <strong>${policy.name}</strong> ${required ? "" : html`<span class="soft">(preferred)</span>`}
      <br /><span class="soft">${asked(policy)}</span>
      <br />${compliance?.placed ? because(policy, state, members) : ""}${placed?.slack !== null && placed?.slack !== undefined && state?.ok ? `; slack ${placed.slack}` : ""}
      ${state?.since ? html`; since <${When} at=${state.since} />` : ""}${state?.because ? ` (${listed(state.because)})` : ""}</li>`;
  })}</ul>`;
}

/** Members by domain; a domain can be greyed out to see what is left. */
function Places({members, level, lit, lost, lose}) {
  const blocks = new Map();
  for (const one of members) {
    const name = one.domains?.[level] ?? "";
    if (!blocks.has(name)) blocks.set(name, []);
    blocks.get(name).push(one);
  }
  const names = [...blocks.keys()].sort((a, b) => (a === "") - (b === "") || a.localeCompare(b, undefined, {numeric: true}));
  return html`<div class="columns">${names.map((name) => html`<section key=${name} class=${`domain ${lost === name ? "lost" : ""}`} aria-label=${name || "no place"}>
    <header><strong>${name || "no place"}</strong>${name ? html`<button type="button" aria-pressed=${lost === name} onClick=${() => lose(lost === name ? null : name)}>${lost === name ? "Back" : "Lose"}</button>` : null}</header>
    ${byHost(blocks.get(name), level).map(([host, own]) => html`<div key=${host}>${host && level !== "host" ? html`<div class="host">${host}</div>` : null}
      ${own.map((one) => html`<span key=${one.name} class=${`chip ${one.status} ${one.out_of_service ? "out" : ""} ${lit && concerns(lit, one) ? "lit" : ""}`} title=${`${one.status}${one.out_of_service ? ", its host is out of service" : ""}${one.server_id ? `, server ${one.server_id}` : ""}`}>${one.name}</span>`)}</div>`)}
  </section>`)}</div>`;
}

function byHost(members, level) {
  const hosts = new Map();
  for (const one of members) {
    const host = level === "host" ? "" : one.domains?.host ?? "";
    if (!hosts.has(host)) hosts.set(host, []);
    hosts.get(host).push(one);
  }
  return [...hosts].sort(([a], [b]) => a.localeCompare(b, undefined, {numeric: true}));
}

/** What is left of each role when a domain is lost. */
function Left({members, level, lost, survival, policies}) {
  const losses = survival?.survivability.find((one) => one.level === level);
  if (lost === null) {
    return losses ? html`<p>When any one ${level} is lost: ${losses.roles.map((one) => html`<span class="chip" key=${one.role}>${one.ok ? "✓" : "✕"} ${one.role} keeps at least ${one.keeps} of ${one.total}, needs ${one.needed}</span>`)}</p>` : null;
  }
  const roles = new Map();
  for (const one of members.filter((member) => member.domains?.[level])) {
    const role = roles.get(one.role) ?? {all: 0, left: 0};
    role.all += 1;
    role.left += one.domains[level] === lost || one.out_of_service ? 0 : 1;
    roles.set(one.role, role);
  }
  const needs = (role) => losses?.roles.find((one) => one.role === role)?.needed ?? 0;
  const broken = policies.filter((one) => one.type === "survive" && one.level === level && (one.members ?? []).some((role) => roles.has(role) && roles.get(role).left < (one.keep ?? 1)));
  return html`<p role="status">Without ${lost}: ${[...roles].map(([role, {all, left}]) => html`<span class="chip" key=${role}>${left >= needs(role) ? "✓" : "✕"} ${role} ${left} of ${all}${needs(role) ? `, needs ${needs(role)}` : ""}</span>`)}
    ${broken.length ? html`<${Badge} kind="bad">breaks ${broken.map((one) => one.name).join(", ")}<//>` : null}</p>`;
}

/** What a list says of a decision. */
const inShort = (decision) => decision && {...decision, members: decision.assignments.length, claimed: decision.assignments.filter((one) => one.claimed_by).length};

function Actions({ensemble, decision}) {
  const [problem, say] = useState(null);
  const [done, tell] = useState(null);
  const act = async (method, where, body, text) => {
    say(null);
    try {
      await call(method, where, body);
      tell(text);
    } catch (error) {
      say(error);
    }
  };
  const id = encodeURIComponent(ensemble.id);
  return html`<p class="row">${!decision || ["expired", "released"].includes(decision.status)
    ? !may("moorage:decisions:create") ? null : html`<button type="button" onClick=${() => act("POST", "/decisions", {decision: {ensemble_id: ensemble.id}}, "placed and held")}>Place it now</button>` : null}
    ${decision?.status === "held" && !decision.lease_id && may("moorage:decisions:confirm") ? html`<button type="button" onClick=${() => act("POST", `/decisions/${decision.id}/confirm`, undefined, "confirmed: what was claimed stays, the rest is free")}>Confirm</button>` : null}
    ${decision?.status === "held" && !decision.lease_id && may("moorage:decisions:release") ? html`<button type="button" onClick=${() => act("DELETE", `/decisions/${decision.id}`, undefined, "released")}>Release the places</button>` : null}
    ${decision?.lease_id || !may("moorage:ensembles:delete") ? null : html`<button type="button" onClick=${() => confirm(`Delete the description of ${ensemble.name}? Its servers stay.`) && act("DELETE", `/ensembles/${id}`, undefined, "deleted; its servers stay")}>Delete…</button>`}
    <span role="status">${done ?? ""}</span><${Problem} error=${problem} />
    ${problem?.body?.explanation ? html`<${Link} to=${`/why/${problem.body.explanation.id}`}>Why not?<//>` : null}</p>`;
}

function Screen({route: {path: where, query}}) {
  const id = where.split("/")[2];
  const found = useData(`/ensembles/${id}`);
  const members = useData(path(`/ensembles/${id}/members`, {limit: PAGE}));
  const compliance = useData(`/ensembles/${id}/compliance?history=true`);
  const survival = useData(`/ensembles/${id}/survivability`);
  const [lit, light] = useState(null);
  const ensemble = found.data?.ensemble;
  const own = members.data?.members ?? [];
  const levels = [...new Set(own.flatMap((one) => Object.keys(one.domains ?? {})))];
  const level = query.get("level") ?? (levels.includes("rack") ? "rack" : levels.find((one) => one !== "host") ?? "host");
  const lost = query.get("lose");
  const judged = compliance.data?.compliance;
  return html`<${State} of=${found}>${ensemble ? html`
    <p><strong>${ensemble.name}</strong> <${Status} decision=${inShort(ensemble.decision)} broken=${judged && judged.placed ? judged.policies.filter((one) => !one.ok && one.required).length + judged.out_of_service.length : 0} />
      <span class="soft"> ${ensemble.members.map((one) => `${one.count} ${one.name}${one.flavor ? ` (${one.flavor})` : ""}`).join(", ")}; created <${When} at=${ensemble.created_at} /></span></p>
    <${Actions} ensemble=${ensemble} decision=${ensemble.decision} />
    ${judged?.out_of_service.length ? html`<p>${judged.out_of_service.map((one) => html`<${Badge} kind="bad" key=${one.member}>${one.member} ${one.condition.replace("_", " ")}: ${one.text}<//> `)}</p>` : null}
    ${ensemble.decision?.lease_id ? html`<p><${Link} to="/calendar" query=${{lease: ensemble.decision.lease_id}}>Its lease<//></p>` : null}
    <div class="row"><h2>Where it stands</h2>${levels.length > 1 ? html`<label class="field"><span>By</span><select value=${level} onChange=${(event) => ask({level: event.target.value, lose: null})}>${levels.map((one) => html`<option>${one}</option>`)}</select></label>` : null}</div>
    <${State} of=${members} empty=${own.length ? null : "It has no members."}><${Places} members=${own} level=${level} lit=${lit} lost=${lost} lose=${(name) => ask({lose: name})} />
      <${Left} members=${own} level=${level} lost=${lost} survival=${survival.data} policies=${ensemble.policies} />
      ${own.length === PAGE ? html`<p class="soft">The first ${PAGE} members are shown.</p>` : null}<//>
    <h2>Policies</h2><${Policies} ensemble=${ensemble} decision=${ensemble.decision} compliance=${judged} members=${own} light=${light} />
    ${Object.keys(ensemble.decision?.max_additional ?? {}).length ? html`<p>Room for more now: ${Object.entries(ensemble.decision.max_additional).map(([role, one]) => html`<span class="chip" key=${role}>${one.exact ? "" : "at least "}${one.count} ${role}</span>`)}</p>` : null}
    <h2>What was broken</h2><${State} of=${compliance} empty=${judged?.history?.length ? null : "Nothing that has ended."}>
      <${Table} label="Violations that have ended" id=${(row) => row.id} rows=${judged?.history ?? []} columns=${[
        {name: "policy", label: "What", show: (row) => row.policy ?? `${row.members.join(", ")} ${row.type.replace("_", " ")}`},
        {name: "text", label: "How"},
        {name: "since", label: "Since", show: (row) => html`<${When} at=${row.since} />`},
        {name: "until", label: "Until", show: (row) => html`<${When} at=${row.until} />`},
        {name: "because", label: "Cause", show: (row) => listed(row.because), key: (row) => listed(row.because)},
      ]} /><//>` : null}<//>`;
}

export default {
  path: "/applications/:id",
  title: "Application",
  listed: false,
  under: "/applications",
  allowed: (session) => Boolean(session.rules?.["moorage:ensembles:show"]),
  command: ({path: where}) => `moorage ensemble show ${where.split("/")[2]} --map`,
  Screen,
};
