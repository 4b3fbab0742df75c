// One plan: its moves in order, how far each is, what cannot move and why; apply, pause and cancel.

import {html, useState} from "../lib/page.js";
import {Link, go} from "../lib/route.js";
import {call, useData} from "../lib/api.js";
import {may} from "../lib/session.js";
import {When} from "../lib/time.js";
import {Badge, Bar, Dialog, Problem, State, Table, count, short} from "../lib/parts.js";
import {STATES} from "./plans.js";

const MOVES = {waiting: "idle", moving: "warn", done: "good", failed: "bad", skipped: "idle"};
const OVER = ["done", "canceled"];

/** What may be done in a state: verb, button, rule, and a question where it is asked before. */
const ACTS = [
  {verb: "apply", label: (plan) => (plan.state === "paused" ? "Go on" : "Apply"), when: (plan) => ["ready", "paused"].includes(plan.state) && plan.moves.length, asks: (plan) => `${count(plan.moves.filter((one) => ["waiting", "failed"].includes(one.state)).length, "server")} will be moved, ${plan.limits.parallel} at a time.`},
  {verb: "pause", label: () => "Pause", when: (plan) => plan.state === "running"},
  {verb: "cancel", label: () => "Cancel", when: (plan) => !OVER.includes(plan.state), asks: () => "No further move begins. What was moved stays where it is."},
];

/** A member with its application, or the id of a server. */
const Who = ({of}) => (of.member ? html`<${Link} to=${`/applications/${of.ensemble_id}`}>${of.ensemble} ${of.member}<//>` : html`<span title=${of.server}>server ${short(of.server)}</span>`);

function Screen({route}) {
  const where = `/plans/${encodeURIComponent(route.path.split("/")[2])}`;
  const [round, again] = useState(0);
  const [asked, question] = useState(null);
  const [error, tell] = useState(null);
  const found = useData(where, {round});
  const act = async ({verb}) => {
    question(null);
    tell(null);
    try {
      await call("POST", `${where}/${verb}`);
    } catch (failure) {
      tell(failure);
    }
    again(round + 1);
  };
  const plan = found.data?.plan;
  return html`<${Problem} error=${error} />
    <${State} of=${found}>${plan ? html`<${Head} plan=${plan} />
      <p class="row">${ACTS.filter((one) => one.when(plan) && may(`moorage:plans:${one.verb}`)).map((one) => html`<button type="button" key=${one.verb} class=${one.verb === "apply" ? "main" : ""} onClick=${() => (one.asks ? question(one) : act(one))}>${one.label(plan)}</button>`)}
        ${OVER.includes(plan.state) && plan.hosts.length ? html`<button type="button" onClick=${() => go("/plans", {kind: plan.kind, of: plan.subject})}>Plan again…</button>` : null}</p>
      <${Moves} plan=${plan} />
      ${plan.unmoved.length ? html`<h2>What cannot move</h2><${Table} label="What cannot move" id=${(row) => `${row.server} ${row.member}`} rows=${plan.unmoved} columns=${[
        {name: "server", label: "Server", show: (row) => html`<${Who} of=${row} />`},
        {name: "host_name", label: "On"},
        {name: "reason", label: "Why", show: (row) => html`<${Badge} kind="warn">${row.code}<//> ${row.reason}`},
      ]} />` : null}` : null}<//>
    ${asked ? html`<${Dialog} title=${`${asked.label(plan)} this plan?`} onClose=${() => question(null)} actions=${html`<button type="button" class="main" onClick=${() => act(asked)}>${asked.label(plan)}</button>`}><p>${asked.asks(plan)}</p><//>` : null}`;
}

function Head({plan}) {
  const over = (state) => plan.moves.filter((one) => one.state === state).length;
  const parts = Object.keys(MOVES).filter((one) => one !== "waiting").map((state) => ({share: plan.moves.length ? over(state) / plan.moves.length : 0, kind: {done: "allocated", moving: "held", failed: "down", skipped: "reserved"}[state], label: `${over(state)} ${state}`}));
  return html`<p role="status"><${Badge} kind=${STATES[plan.state] ?? "idle"}>${plan.state}<//> ${plan.kind} ${plan.subject}: ${count(plan.moves.length, "move")}${plan.optimal ? " (no plan has fewer)" : plan.lower_bound ? ` (no plan has fewer than ${plan.lower_bound})` : ""}, ${(plan.memory_mb / 1024).toFixed(1)} GiB of memory${plan.by ? html`, by <${When} at=${plan.by} />` : ""}. ${plan.note}</p>
    ${plan.moves.length ? html`<p><${Bar} parts=${parts} label=${parts.map((one) => one.label).join(", ")} /></p>` : null}`;
}

function Moves({plan}) {
  const rows = plan.moves.map((move, number) => ({...move, number}));
  if (!rows.length) return html`<p class="empty">${plan.unmoved.length ? "No server can move." : "Nothing has to move."}</p>`;
  return html`<h2>Moves, in order</h2><${Table} label="Moves" id=${(row) => row.id} rows=${rows} columns=${[
    {name: "number", label: "No.", number: true, show: (row) => row.number + 1},
    {name: "server", label: "Server", show: (row) => html`<${Who} of=${row} />`, key: (row) => row.member ?? row.server},
    {name: "source_name", label: "From"},
    {name: "target_name", label: "To"},
    {name: "kind", label: "How"},
    {name: "after", label: "Waits for", show: (row) => (row.after.length ? row.after.map((one) => one + 1).join(", ") : "nothing"), key: (row) => row.after.length},
    {name: "state", label: "State", show: (row) => html`<${Badge} kind=${MOVES[row.state]}>${row.state}<//> ${row.error}`},
    {name: "ended_at", label: "Ended", show: (row) => html`<${When} at=${row.ended_at} none="" />`},
  ]} />`;
}

export default {
  path: "/plans/:id",
  title: "Plan",
  listed: false,
  under: "/plans",
  allowed: (session) => Boolean(session.rules?.["moorage:plans:show"]),
  command: ({path}) => `moorage plan show ${path.split("/")[2]}`,
  Screen,
};
