// Why not: the parts that cannot hold together, what became of all hosts, and changes that were tried and work.

import {html, useEffect, useState} from "../lib/page.js";
import {Link, go} from "../lib/route.js";
import {change, useData} from "../lib/api.js";
import {When} from "../lib/time.js";
import {Badge, Bar, Problem, State, count} from "../lib/parts.js";
import {inWords, kept, relaxed, request, show} from "../lib/description.js";
import {caller, may} from "../lib/session.js";

const NAMED = ["policy", "booked", "stay", "closed", "quota"];

/** One part of a conflict in words. */
function inText(part) {
  if (part.topology) return `${part.topology}${part.have === undefined || part.have === null ? "" : `: ${part.have}`}${part.needed ? ` (needs ${part.needed})` : ""}`;
  const [kind, name] = Object.entries(part).find(([key]) => !["needs", "have", "needed"].includes(key)) ?? ["", "?"];
  return `${NAMED.includes(kind) ? name : `${kind} ${name}`}${part.needs ? ` needs ${part.needs}` : ""}`;
}

/** Two sides: what is asked for, and what there is. Without a fact, one need stands against the others. */
function sides(parts) {
  const facts = parts.filter((one) => one.topology);
  const needs = parts.filter((one) => !one.topology);
  return facts.length && needs.length ? [needs, facts] : [parts.slice(0, 1), parts.slice(1)];
}

function Conflict({conflict, minimal}) {
  const [left, right] = sides(conflict);
  return html`<div class="conflict" role="group" aria-label=${minimal ? "minimal conflict" : "conflict"}>
    <div class="side">${left.map((one) => html`<p key=${inText(one)}>${inText(one)}</p>`)}</div>
    <div class="against" aria-label="against">⇄</div>
    <div class="side">${right.length ? right.map((one) => html`<p key=${inText(one)}>${inText(one)}</p>`) : html`<p>what there is</p>`}</div></div>`;
}

const REASONS = {capacity: "too little free", unit: "amount not allowed", trait: "lacks the trait", aggregate: "not in the aggregate", policy: "excluded by the policy", closed: "closed", "out-of-service": "out of service"};

/** What became of the hosts: all that were considered, and how many each reason took out. */
function Funnel({counts}) {
  const all = Number.parseInt(counts.considered, 10);
  if (!all) return null;
  const rows = Object.entries(counts.rejected).sort((a, b) => Number.parseInt(b[1], 10) - Number.parseInt(a[1], 10));
  return html`<h2>What became of the hosts</h2><ul class="funnel"><li><span>considered</span><${Bar} parts=${[{share: 1, kind: "allocated", label: `${counts.considered}`}]} label=${`${counts.considered} hosts`} /><span>${counts.considered}</span></li>
    ${rows.map(([reason, number]) => {
      const [kind, ...rest] = reason.split(":");
      const name = rest.join(":");
      const share = Number.parseInt(number, 10) / all;
      return html`<li key=${reason}><span>${REASONS[kind] ?? kind}${name ? ": " : ""}${kind === "capacity" && may("moorage:fleet:map") ? html`<${Link} to="/fleet" query=${{class: name}}>${name}<//>` : name}</span><${Bar} parts=${[{share: 1 - share, kind: "allocated", label: "left"}, {share, kind: "rejected", label: `${number} out`}]} label=${`${number} of ${counts.considered} out`} /><span>− ${number}</span></li>`;
    })}</ul><p class="soft">A host may be out for several reasons, and counts for each.</p>`;
}

/** One relaxation, with its trial and its application. */
function Relaxation({item, asked, stored}) {
  const [result, tell] = useState(null);
  const [busy, work] = useState(false);
  const changed = asked && relaxed(asked, item.change);
  const patch = !asked && stored ? patchOf(item.change) : null;
  const run = async (dry) => {
    work(true);
    try {
      const found = changed
        ? await request(changed, {dry})
        : await change(`/ensembles/${stored}`, "ensemble", {...patch, decide: {}}, {dry});
      if (dry) tell({good: true, text: "It fits with this change. Nothing was written."});
      else if (changed) show(changed.kind, found);
      else go(`/applications/${stored}`);
    } catch (error) {
      tell({good: false, text: error.message, explanation: error.body?.explanation?.id});
    }
    work(false);
  };
  return html`<div class="card"><p><strong>${inWords(item.change)}</strong></p><p class="soft">${item.result}${item.verified ? "; solved" : ""}</p>
    ${(changed && may(changed.kind === "lease" ? "moorage:leases:create" : "moorage:ensembles:create")) || (patch && may("moorage:ensembles:update")) ? html`<p class="row"><button type="button" disabled=${busy} onClick=${() => run(true)}>Try</button><button type="button" class="main" disabled=${busy} onClick=${() => run(false)}>Apply</button></p>`
      : html`<p class="soft">${asked ? "Make this change by hand." : "Describe it again with this change."}</p>`}
    <p role="status">${result ? html`<${Badge} kind=${result.good ? "good" : "bad"}>${result.good ? "fits" : "refused"}<//> ${result.text} ${result.explanation ? html`<${Link} to=${`/why/${result.explanation}`}>Why not?<//>` : ""}` : ""}</p></div>`;
}

/** The change of a stored ensemble for a relaxation, or null. */
function patchOf({policy, member, alternative, time, lease, ...fields}) {
  if (alternative !== undefined || time || lease || !(policy || member)) return null;
  const after = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, Array.isArray(value) && value.length === 2 ? value[1] : value]));
  if (after.strength === "preferred") after.strength = {preferred: 1};
  return policy ? {policies: [{name: policy, ...after}]} : {members: [{name: member, ...after}]};
}

/** An explanation as a whole. `asked`: the request that was refused, where this tab made it. */
export function Why({explanation, asked, stored}) {
  return html`<p><${Badge} kind=${explanation.verdict === "refused" ? "bad" : "warn"}>${explanation.verdict}<//> stage <strong>${explanation.stage}</strong>, computed <${When} at=${explanation.computed_at} /></p>
    ${explanation.conflict.length ? html`<h2>${explanation.minimal ? "What cannot hold together" : "A conflict"} ${explanation.minimal ? html`<span class="soft">(minimal: each part alone can)</span>` : ""}</h2><${Conflict} ...${explanation} />` : null}
    ${explanation.more_conflicts.map((one, index) => html`<h3 key=${index}>Another conflict</h3><${Conflict} ...${one} />`)}
    ${explanation.note ? html`<h2>${explanation.stage === "quota" ? "What to do" : "Note"}</h2><p>${explanation.note}</p>` : null}
    ${explanation.stage === "quota" && !explanation.relaxations.length ? null : html`<h2>Changes that were tried</h2>`}${explanation.stage === "quota" && !explanation.relaxations.length ? null : explanation.relaxations.length ? html`<div class="cards">${explanation.relaxations.map((one) => html`<${Relaxation} key=${JSON.stringify(one.change)} item=${one} asked=${asked} stored=${stored} />`)}</div>`
      : html`<p class="empty">${explanation.pending ? "The search goes on…" : "No single small change makes it fit."}</p>`}
    ${explanation.earliest_start ? html`<p>It fits as it is from <${When} at=${explanation.earliest_start} />${explanation.earliest_end ? html` to <${When} at=${explanation.earliest_end} />` : ""} <${Badge} kind=${explanation.earliest_proved ? "good" : "idle"}>${explanation.earliest_proved ? "proved: not earlier" : "not proved"}<//></p>` : null}
    ${explanation.moves ? html`<p>It fits after ${count(explanation.moves, "move")} of other servers, which an operator can plan.</p>` : null}
    ${explanation.largest ? html`<p>So much fits now: ${explanation.largest.count} of ${explanation.largest.of} ${explanation.largest.role}.</p>` : null}
    ${explanation.other_zones.length ? html`<p>It fits in other zones: ${explanation.other_zones.join(", ")}.</p>` : null}
    ${explanation.complete ? null : html`<p class="soft">Time ran out before every search was finished.</p>`}
    <${Funnel} counts=${explanation.counts} />`;
}

function Screen({route: {path: where}}) {
  const id = where.split("/")[2];
  const [round, again] = useState(0);
  const found = useData(`/explanations/${id}`, {round});
  const explanation = found.data?.explanation;
  const stored = explanation?.links.some((one) => one.rel === "ensemble") ? explanation.ensemble_id : null;
  useEffect(() => {
    if (!explanation?.pending) return undefined;
    const timer = setTimeout(() => again(round + 1), 1500);
    return () => clearTimeout(timer);
  }, [explanation, round]);
  const asked = kept(id);
  return html`<${State} of=${found}>${explanation ? html`
    <p>${explanation.ensemble ? html`<strong>${explanation.ensemble}</strong>${caller()?.operator ? ` of project ${explanation.project_id}` : ""} was refused.` : ""} ${stored ? html`<${Link} to=${`/applications/${stored}`}>Its description<//>` : ""} ${asked ? html`<${Link} to="/place" query=${{again: id}}>Edit what was asked for<//>` : ""}</p>
    <${Why} explanation=${explanation} asked=${asked} stored=${stored} />` : null}<//>`;
}

export default {
  path: "/why/:id",
  title: "Why not",
  listed: false,
  under: "/refusals",
  allowed: (session) => Boolean(session.rules?.["moorage:explanations:show"]),
  command: ({path: where}) => `moorage explanation show ${where.split("/")[2]}`,
  Screen,
};
