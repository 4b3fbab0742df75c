// Place an application: a description as one writes it for the command line, tried or placed and held, now or for a period.

import {html, useEffect, useState} from "../lib/page.js";
import {useData} from "../lib/api.js";
import {HOUR, iso, now} from "../lib/time.js";
import {Badge, Field, Problem} from "../lib/parts.js";
import {kept, request, show} from "../lib/description.js";
import {Why} from "./why.js";

const EXAMPLE = (flavor) => `name: shop
members:
  - {name: web, count: 3, flavor: ${flavor}}
  - {name: db, count: 3, flavor: ${flavor}}
policies:
  - {name: web-apart, type: anti-affinity, members: [web]}
  - {name: db-ha, type: survive, members: [db], level: rack, lose: 1, keep: 2}
`;
const HOLDS = {PT10M: "10 minutes", PT1H: "an hour", PT4H: "4 hours", P1D: "a day"};

const DRAFT = "draft";

/** The library for YAML, loaded when it is needed: a service that was upgraded meanwhile has it under another name. */
async function yaml() {
  try {
    return (await import("../vendor/yaml.js")).default;
  } catch {
    const error = new Error("This page is older than the service, or the service does not answer. Reload the page; what you have written is kept.");
    error.old = true;
    throw error;
  }
}

/** The description as a value. */
async function read(text) {
  const {load} = await yaml();
  const found = load(text);
  if (!found || typeof found !== "object" || Array.isArray(found)) throw new Error("A description has a name, members and policies.");
  return found.ensemble ?? found;
}

async function write(body) {
  const {dump} = await yaml();
  const {decide, ...rest} = body;
  return dump(rest, {lineWidth: 110, flowLevel: 2});
}

/** What was written before the page was loaded again, or null. */
function taken() {
  const draft = sessionStorage.getItem(DRAFT);
  sessionStorage.removeItem(DRAFT);
  return draft;
}

function Screen({route: {query}}) {
  const flavors = useData("/flavors?limit=50", {live: false});
  const again = query.get("again") ? kept(query.get("again")) : null;
  const [text, type] = useState(() => taken());
  const [kind, choose] = useState(again?.kind ?? "ensemble");
  const [hold, keepFor] = useState("PT1H");
  const [start, begin] = useState("");
  const [hours, last] = useState(8);
  const [outcome, tell] = useState(null);
  const [busy, work] = useState(false);
  useEffect(() => {
    if (text === null && again) write(again.kind === "lease" ? {name: again.body.name, ...again.body.ensemble} : again.body).then(type, (error) => tell({good: false, error}));
  }, []);
  const shown = text ?? (again || !flavors.data ? "" : EXAMPLE(flavors.data.flavors[0]?.name ?? "m1.small"));

  // What comes late must not be mixed with what is typed meanwhile.
  const awaited = text === null && !outcome && (again || !(flavors.data || flavors.error));

  const send = async (dry) => {
    work(true);
    tell(null);
    let asked = null;
    try {
      const described = await read(shown);
      const from = start ? Date.parse(start) : now() + HOUR;
      asked = kind === "ensemble"
        ? {kind, body: {...described, decide: {hold, ...described.decide}}}
        : {kind, body: {name: described.name, ensemble: {members: described.members, policies: described.policies ?? []}, start: iso(from), end: iso(from + hours * HOUR)}};
      const found = await request(asked, {dry});
      if (dry) tell({good: true, found});
      else show(kind, found);
    } catch (error) {
      tell({good: false, error, asked});
    }
    work(false);
  };
  const explanation = outcome?.error?.body?.explanation;
  return html`<form onSubmit=${(event) => { event.preventDefault(); send(false); }}>
    <label class="hidden" for="description">Description</label>
    <textarea id="description" spellcheck="false" disabled=${Boolean(awaited)} value=${shown} onInput=${(event) => type(event.target.value)}></textarea>
    <div class="row">
      <${Field} label="When"><select value=${kind} onChange=${(event) => choose(event.target.value)}><option value="ensemble">now</option><option value="lease">for a period, as a lease</option></select><//>
      ${kind === "ensemble"
        ? html`<${Field} label="Hold the places for"><select value=${hold} onChange=${(event) => keepFor(event.target.value)}>${Object.entries(HOLDS).map(([key, label]) => html`<option value=${key}>${label}</option>`)}</select><//>`
        : html`<${Field} label="From (your time)"><input type="datetime-local" value=${start} onInput=${(event) => begin(event.target.value)} required /><//>
          <${Field} label="Hours"><input type="number" min="1" max="8760" value=${hours} onInput=${(event) => last(Number(event.target.value))} /><//>`}
      <button type="button" disabled=${busy} onClick=${() => send(true)}>Try</button>
      <button class="main" disabled=${busy}>${kind === "ensemble" ? "Place and hold" : "Lease"}</button></div></form>
    <div role="status">${outcome?.good ? html`<p><${Badge} kind="good">fits<//> Nothing was written. ${places(outcome.found)}</p>` : ""}</div>
    ${outcome && !outcome.good ? explanation ? html`<div class="card" role="alert"><${Why} explanation=${explanation} asked=${outcome.asked} /></div>` : html`<${Problem} error=${outcome.error} />${outcome.error.old ? html`<p><button type="button" onClick=${() => { sessionStorage.setItem(DRAFT, shown); location.reload(); }}>Reload the page</button></p>` : ""}` : null}`;
}

/** How a trial would place it. */
function places(found) {
  const decision = found.decision ?? found.ensemble?.decision;
  if (!decision?.assignments) return "";
  const levels = Object.keys(decision.assignments[0]?.domains ?? {});
  return levels.map((level) => `${new Set(decision.assignments.map((one) => one.domains[level])).size} ${level}s`).join(", ");
}

export default {
  path: "/place",
  title: "Place an application",
  listed: false,
  under: "/applications",
  allowed: (session) => Boolean(session.rules?.["moorage:ensembles:create"]),
  command: () => "moorage ensemble create -f description.yaml --hold 1h",
  Screen,
};
