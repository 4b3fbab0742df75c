// What if: hosts lost, closed or added, or an application placed. What would break, what could be placed again, and what still fits.

import {html, useEffect, useState} from "../lib/page.js";
import {Link, ask, go} from "../lib/route.js";
import {call, note} from "../lib/api.js";
import {may} from "../lib/session.js";
import {iso, instant} from "../lib/time.js";
import {Badge, Field, Problem, Table, count} from "../lib/parts.js";

const NAMED = {placed: ["good", "can be placed again"], refused: ["bad", "cannot be placed again"], undecided: ["warn", "not found out in time"]};
const split = (text) => (text ?? "").split(",").map((one) => one.trim()).filter(Boolean);

/** `4xh3@r9`: four hosts like h3 in r9. */
function added(text) {
  const found = /^(\d+)x([^@]+)(?:@(.+))?$/.exec(text);
  if (!found) throw new Error(`“${text}” is no number of hosts like one that there is. Write 4xh3@r9: four hosts like h3, in r9.`);
  return {count: Number(found[1]), like: found[2], domains: split(found[3]?.replaceAll("+", ","))};
}

/** What the address supposes, as the API takes it; null where it supposes nothing. */
function supposed(query) {
  const changes = [
    ...split(query.get("lose")).map((lose) => ({lose})),
    ...split(query.get("close")).map((close) => ({close})),
    ...split(query.get("add")).map((one) => ({add: added(one)})),
  ];
  if (!changes.length) return null;
  const at = instant(query.get("at"));
  return {changes, ...(at === null ? {} : {at: iso(at)})};
}

function Screen({route: {query}}) {
  const [found, tell] = useState({asked: null, data: null, error: null});
  const asked = ["lose", "close", "add", "at"].map((one) => query.get(one) ?? "").join("|");
  const [draft, write] = useState({lose: query.get("lose") ?? "", close: query.get("close") ?? "", add: query.get("add") ?? ""});
  useEffect(() => {
    const control = new AbortController();
    const simulate = async () => {
      const simulation = supposed(query);
      if (!simulation) return tell({asked, data: null, error: null});
      tell({asked: null, data: null, error: null});
      const data = await call("POST", "/simulations", {simulation}, {signal: control.signal});
      note("POST /simulations", data);
      return tell({asked, data: data.simulation, error: null});
    };
    simulate().catch((error) => error.name !== "AbortError" && tell({asked, data: null, error}));
    return () => control.abort();
  }, [asked]);
  const type = (name) => (event) => write({...draft, [name]: event.target.value});
  const send = (event) => {
    event.preventDefault();
    ask({lose: draft.lose.trim(), close: draft.close.trim(), add: draft.add.trim()}, {replace: false});
  };
  return html`<form class="row" onSubmit=${send}>
      <${Field} label="Lose (hosts, or domains such as rack/r2)"><input value=${draft.lose} placeholder="rack/r2, h7" onInput=${type("lose")} /><//>
      <${Field} label="Close"><input value=${draft.close} placeholder="h3" onInput=${type("close")} /><//>
      <${Field} label="Add (4xh3@r9: four like h3, in r9)"><input value=${draft.add} placeholder="4xh3@r9" onInput=${type("add")} /><//>
      <button class="main">What if?</button></form>
    <${Problem} error=${found.error} />
    ${found.asked !== asked ? html`<p class="soft" role="status">Thinking…</p>` : found.data ? html`<${Outcome} of=${found.data} />` : found.error ? null : html`<p class="empty">Suppose that a rack is lost, a host is closed, or others come. Nothing is written.</p>`}`;
}

function Outcome({of}) {
  const {counts, breaks} = of;
  const hosts = [[of.down, "down"], [of.closed, "closed"], [of.added, "added"]].filter(([some]) => some.length);
  return html`<p role="status">${hosts.map(([some, word]) => `${count(some.length, "host")} ${word}`).join(", ")}. ${counts.ensembles
      ? html`${count(counts.ensembles, "application")} would lose members: <${Badge} kind=${counts.without_quorum ? "bad" : "good"}>${counts.without_quorum} without quorum<//> <${Badge} kind=${counts.placed === counts.ensembles ? "good" : "warn"}>${counts.placed} of ${counts.ensembles} can be placed again now<//>`
      : "No application would lose members."}</p>
    ${of.losses.length ? html`<h2>Lost members</h2><${Table} label="Lost members" id=${(row) => row.ensemble_id} rows=${of.losses} columns=${[
      {name: "ensemble", label: "Application", show: (row) => html`<${Link} to=${`/applications/${row.ensemble_id}`}>${row.ensemble}<//>`},
      {name: "project_id", label: "Project"},
      {name: "lost", label: "Loses", show: (row) => row.lost.join(", "), key: (row) => row.lost.length},
      {name: "quorum", label: "Left", show: (row) => html`<${Badge} kind=${row.quorum ? "good" : "bad"}>${row.roles.map((one) => `${one.left} of ${one.placed} ${one.role}, needs ${one.needed}`).join("; ")}<//>`, key: (row) => (row.quorum ? 1 : 0)},
      {name: "again", label: "Placed again", show: (row) => html`<${Badge} kind=${NAMED[row.again.verdict][0]}>${NAMED[row.again.verdict][1]}<//> ${row.again.why || Object.entries(row.again.hosts).map(([member, host]) => `${member} on ${host}`).join(", ")}`, key: (row) => row.again.verdict},
    ]} />` : null}
    ${breaks?.violations?.length ? html`<h2>Policies that would break</h2><${Table} label="Policies that would break" id=${(row) => `${row.ensemble_id} ${row.policy ?? row.members}`} rows=${breaks.violations} columns=${[
      {name: "ensemble", label: "Application", show: (row) => html`<${Link} to=${`/applications/${row.ensemble_id}`}>${row.ensemble}<//>`},
      {name: "policy", label: "What", show: (row) => html`<${Badge} kind=${row.required ? "bad" : "warn"}>${row.policy ?? row.members.join(", ")}<//>`, key: (row) => row.policy ?? row.type},
      {name: "text", label: "How"},
    ]} />` : null}
    ${of.capacity.length ? html`<h2>What still fits</h2><${Table} label="What still fits" id=${(row) => row.flavor} rows=${of.capacity} columns=${[
      {name: "flavor", label: "Flavor"},
      {name: "before", label: "Now", number: true},
      {name: "after", label: "Then", number: true},
      {name: "left", label: "With lost members placed again", number: true},
    ]} />` : null}
    ${of.down.length && may("moorage:plans:create") ? html`<p><button type="button" onClick=${() => go("/plans")}>Plans to drain or evacuate…</button></p>` : null}`;
}

export default {
  path: "/whatif",
  title: "What if",
  allowed: (session) => Boolean(session.rules?.["moorage:simulations:create"]),
  command: ({query}) => ["moorage whatif", ...["lose", "close", "add"].flatMap((name) => split(query.get(name)).map((one) => `--${name} ${one}`)), query.get("at") && `--at ${query.get("at")}`].filter(Boolean).join(" "),
  Screen,
};
