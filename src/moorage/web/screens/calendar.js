// Leases, offers, what waits and absences of hosts over time, below the curves of capacity on the same axis.

import {html, useEffect, useMemo, useState} from "../lib/page.js";
import {Link, ask} from "../lib/route.js";
import {call, change, path, useData} from "../lib/api.js";
import {DAY, HOUR, When, instant, iso, now, said} from "../lib/time.js";
import {Badge, Beyond, Dialog, Drawer, Field, Problem, State, Table, Unfolded, count} from "../lib/parts.js";
import {may} from "../lib/session.js";
import {Gantt} from "../lib/gantt.js";
import {Curves} from "../lib/curves.js";

const RANGES = {"1": "a day", "7": "a week", "30": "30 days", "90": "90 days"};

/** Local text of an instant as `datetime-local` wants it. */
const local = (time) => new Date(time - new Date(time).getTimezoneOffset() * 60000).toISOString().slice(0, 16);

/** Try a change of a lease: `{good, text, explanation}`. */
async function tried(id, changes) {
  try {
    await change(`/leases/${id}`, "lease", changes, {dry: true});
    return {good: true, text: "fits"};
  } catch (error) {
    return {good: false, text: error.message, explanation: error.body?.explanation?.id};
  }
}

/** What would become of a lease, asked before it is changed. */
function Confirm({asked, onClose}) {
  const [result, tell] = useState(null);
  const [busy, work] = useState(false);
  const body = {[asked.edge]: iso(asked.time)};
  useEffect(() => {
    tried(asked.id, body).then(tell);
  }, [asked]);
  const apply = async () => {
    work(true);
    try {
      await change(`/leases/${asked.id}`, "lease", body);
      onClose();
    } catch (error) {
      tell({good: false, text: error.message, explanation: error.body?.explanation?.id});
      work(false);
    }
  };
  return html`<${Dialog} title=${`Change lease ${asked.label}`} onClose=${onClose} actions=${html`<button type="button" class="main" disabled=${busy || !result?.good} onClick=${apply}>Change it</button>`}>
    <p>${asked.edge === "end" ? "End" : "Start"}: ${said(asked.before)} → <strong>${said(asked.time)}</strong></p>
    <p role="status">${result ? html`<${Badge} kind=${result.good ? "good" : "bad"}>${result.good ? "fits" : "refused"}<//> ${result.good ? "" : result.text} ${result.explanation ? html`<${Link} to=${`/why/${result.explanation}`}>Why not?<//>` : ""}` : "Trying…"}</p><//>`;
}

/** A lease at the side: what it is, and its times as fields. */
function LeaseCard({id, onClose, onChange}) {
  const found = useData(`/leases/${id}`);
  const lease = found.data?.lease;
  const [times, set] = useState({});
  return html`<${Drawer} title=${lease ? `Lease ${lease.handle} ${lease.name}` : "Lease"} onClose=${onClose}><${State} of=${found}>${lease ? html`
    <p><${Badge} kind=${lease.degraded ? "bad" : lease.status === "active" ? "good" : "idle"}>${lease.degraded ? `degraded, ${lease.missing} missing` : lease.status}<//> guarantee ${lease.guarantee}</p>
    <p><${When} at=${lease.start} /> – <${When} at=${lease.end} /></p>
    <p><${Link} to=${`/applications/${lease.ensemble_id}`}>Its application<//>; ${lease.reservations.map((one) => `${one.remaining ?? ""} of ${one.count ?? ""} ${one.role} unclaimed`).join(", ")}</p>
    ${["pending", "active"].includes(lease.status) && may("moorage:leases:update") ? ["start", "end"].filter((edge) => edge === "end" || lease.status === "pending").map((edge) => html`<p class="row" key=${edge}><${Field} label=${edge === "end" ? "End (your time)" : "Start (your time)"}><input type="datetime-local" value=${times[edge] ?? local(Date.parse(lease[edge]))} onInput=${(event) => set({...times, [edge]: event.target.value})} /><//>
      <button type="button" disabled=${!times[edge]} onClick=${() => onChange({id, label: lease.name, edge, before: Date.parse(lease[edge]), time: Date.parse(times[edge])})}>Change…</button></p>`) : null}` : null}<//><//>`;
}

/** A button whose change is confirmed in a dialog: what was done, or why it was not. */
function Confirmed({label, question, run, onDone}) {
  const [open, unfold] = useState(false);
  const [error, say] = useState(null);
  const [busy, work] = useState(false);
  const act = async () => {
    work(true);
    try {
      await run();
      onDone();
    } catch (failure) {
      say(failure);
      work(false);
    }
  };
  return html`<p><button type="button" onClick=${() => unfold(true)}>${label}…</button></p>
    ${open ? html`<${Dialog} title=${label} onClose=${() => unfold(false)} actions=${html`<button type="button" class="main" disabled=${busy} onClick=${act}>${label}</button>`}><p>${question}</p><${Problem} error=${error} /><//>` : null}`;
}

/** An absence at the side: which hosts, who stays there, and its deletion. */
function AbsenceCard({id, onClose}) {
  const found = useData(`/capacity/planned/${encodeURIComponent(id)}`);
  const window = found.data?.window;
  return html`<${Drawer} title=${window?.reason || "Absence"} onClose=${onClose}><${State} of=${found}>${window ? html`
    <p><${Badge}>${window.status}<//> ${window.kind} of ${window.hosts.map((one) => html`<${Link} key=${one} to="/fleet" query=${{host: one}}>${one}<//> `)}</p>
    <p><${When} at=${window.start} /> – <${When} at=${window.end} /></p>
    <h3>${window.staying?.length ? `${window.staying.length} bookings stay there` : "Nobody is booked there then."}</h3>
    ${window.staying?.length ? html`<ul>${window.staying.slice(0, 50).map((one) => html`<li key=${one.consumer + one.host}><code>${one.consumer.slice(0, 8)}</code> on ${one.host}, project ${one.project_id.slice(0, 12)}, until <${When} at=${one.end} /></li>`)}</ul>` : null}
    ${may("moorage:capacity_windows:delete") ? html`<${Confirmed} label="Delete the absence" question=${`${window.hosts.join(", ")}: there as usual from ${said(Date.parse(window.start))} on. Leases that were given other places keep those.`}
      run=${() => call("DELETE", `/capacity/planned/${window.id}`)} onDone=${onClose} />` : null}` : null}<//><//>`;
}

/** An offer at the side, and its acceptance. */
function OfferCard({id, onClose, session}) {
  const found = useData(`/offers/${encodeURIComponent(id)}`);
  const offer = found.data?.offer;
  const own = offer?.project_id === session.project.id;
  return html`<${Drawer} title=${offer ? `Offer ${offer.handle} ${offer.name}` : "Offer"} onClose=${onClose}><${State} of=${found}>${offer ? html`
    <p><${Badge}>${offer.status}<//> guarantee ${offer.guarantee}; ${count(offer.places, "place")} held until <${When} at=${offer.expires_at} /></p>
    <p><${When} at=${offer.start} /> – <${When} at=${offer.end} /></p>
    ${own && may("moorage:offers:accept") ? html`<${Confirmed} label="Accept the offer" question="It becomes a lease. The other offers of the same request are given up."
      run=${async () => { const made = await call("POST", `/offers/${offer.id}/accept`, {lease: {}}); ask({offer: null, lease: made.lease.id}); }} onDone=${() => null} />` : null}
    ${own ? null : html`<p class="soft">Of project ${offer.project_id}, which may accept it.</p>`}` : null}<//><//>`;
}

/** Plan that hosts are away: tried first, with what it would mean. */
function Absence({hosts, onClose}) {
  const start = Math.ceil((now() + DAY) / HOUR) * HOUR;
  const [values, set] = useState({hosts, start: local(start), end: local(start + 8 * HOUR), reason: ""});
  const [result, tell] = useState(null);
  const [busy, work] = useState(false);
  const send = async (dry) => {
    work(true);
    try {
      const body = {window: {kind: "maintenance", hosts: values.hosts.split(/[\s,]+/).filter(Boolean), start: iso(Date.parse(values.start)), end: iso(Date.parse(values.end)), reason: values.reason}};
      const found = await call("POST", `/capacity/planned${dry ? "?dry_run=true" : ""}`, body);
      if (!dry) return onClose();
      tell({found});
    } catch (error) {
      tell({error});
    }
    return work(false);
  };
  const field = (name, type, label) => html`<${Field} label=${label}><input type=${type} value=${values[name]} onInput=${(event) => { set({...values, [name]: event.target.value}); tell(null); }} /><//>`;
  const {window, breaks} = result?.found ?? {};
  return html`<${Dialog} title="Plan an absence" onClose=${onClose} actions=${html`<button type="button" disabled=${busy} onClick=${() => send(true)}>Try</button><button type="button" class="main" disabled=${busy || !result?.found} onClick=${() => send(false)}>Plan it</button>`}>
    <p>New placements that would use these hosts in that time are refused; leases that have not started are given other places; running servers stay, and are listed.</p>
    <div class="row">${field("hosts", "text", "Hosts")}${field("start", "datetime-local", "From (your time)")}${field("end", "datetime-local", "Until (your time)")}${field("reason", "text", "Reason")}</div>
    <div role="status"><${Problem} error=${result?.error} />${window ? html`<p><${Badge} kind="good">possible<//> ${window.moved_leases?.length ? `${window.moved_leases.length} leases get other places.` : ""} ${window.staying?.length ? `${window.staying.length} bookings stay there:` : "Nobody is booked there then."}</p>
      ${window.staying?.length ? html`<ul>${window.staying.slice(0, 50).map((one) => html`<li key=${one.consumer + one.host}><code>${one.consumer.slice(0, 8)}</code> on ${one.host}, project ${one.project_id.slice(0, 12)}, until <${When} at=${one.end} /></li>`)}</ul>` : null}
      ${breaks?.found ? html`<p><${Badge} kind="warn">begins ${breaks.found} violations<//> ${breaks.violations.slice(0, 10).map((one) => `${one.ensemble}: ${one.text}`).join("; ")}</p>` : null}` : null}</div><//>`;
}

function Screen({route: {query}, session}) {
  const days = RANGES[query.get("days")] ? Number(query.get("days")) : 7;
  const start = useMemo(() => (instant(query.get("from")) ?? Math.floor((now() - days * DAY * 0.05) / HOUR) * HOUR), [query.get("from"), days]);
  const end = start + days * DAY;
  const all = session.operator && query.get("all") !== "0";
  const by = query.get("rows") ?? "lease";
  const found = useData(path("/timeline", {from: iso(start), to: iso(end), rows: by, all_projects: all ? "true" : null}));
  const capacity = useData(path("/capacity", {from: iso(Math.max(start, now())), to: iso(end), zone: query.get("zone"), max_points: 400}));
  const [proposed, propose] = useState(null);
  const timeline = found.data?.timeline;
  const {resources = {}} = capacity.data?.capacity.parts[0] ?? {};
  const name = resources[query.get("class")] ? query.get("class") : resources.VCPU ? "VCPU" : Object.keys(resources)[0];
  const chosen = query.get("lease") ?? query.get("absence") ?? query.get("offer");
  const choose = (kind, id) => ask({lease: null, absence: null, offer: null, ...(kind ? {[kind]: id} : {})}, {replace: false});
  const mark = instant(query.get("at")) ?? now();
  const leases = timeline ? timeline.bars.id.map((_, index) => index) : [];
  const move = (span) => ask({from: iso(start + span * days * DAY)});
  const opens = (index) => ["lease", "absence", "offer"].includes(timeline.bars.kind[index]);
  const open = (index) => opens(index) && choose(timeline.bars.kind[index], timeline.bars.id[index]);
  return html`<form class="row" onSubmit=${(event) => event.preventDefault()}>
      <${Field} label="Shown"><select value=${String(days)} onChange=${(event) => ask({days: event.target.value})}>${Object.entries(RANGES).map(([key, label]) => html`<option value=${key}>${label}</option>`)}</select><//>
      <button type="button" aria-label="Earlier" onClick=${() => move(-0.5)}>◀</button><button type="button" onClick=${() => ask({from: null})}>Today</button><button type="button" aria-label="Later" onClick=${() => move(0.5)}>▶</button>
      <${Field} label="Rows"><select value=${by} onChange=${(event) => ask({rows: event.target.value})}>${(session.operator ? ["lease", "project", "rack", "host"] : ["lease"]).map((one) => html`<option>${one}</option>`)}</select><//>
      ${name ? html`<${Field} label="Class"><select value=${name} onChange=${(event) => ask({class: event.target.value})}>${Object.keys(resources).map((one) => html`<option>${one}</option>`)}</select><//>` : null}
      ${session.operator ? html`<label><input type="checkbox" checked=${all} onChange=${(event) => ask({all: event.target.checked ? null : "0"})} /> of all projects</label>` : null}
      ${session.rules?.["moorage:capacity_windows:create"] ? html`<button type="button" onClick=${() => ask({away: " "})}>Plan an absence…</button>` : null}</form>
    <${Problem} error=${capacity.error} />
    ${name && capacity.data.capacity.exact ? html`<${Curves} points=${resources[name]} from=${start} to=${end} name=${name} />` : null}
    <div class=${chosen ? "split" : ""}><div><${State} of=${found} empty=${timeline && !leases.length ? "There are no leases, offers or absences in this time." : null}>${timeline ? html`
      <${Gantt} label="Leases, offers and absences" timeline=${timeline} from=${start} to=${end} mark=${mark} chosen=${chosen}
        editable=${(index) => may("moorage:leases:update") && timeline.bars.kind[index] === "lease" && ["pending", "active"].includes(timeline.bars.state[index])}
        onTry=${(index, edge, time) => tried(timeline.bars.id[index], {[edge]: iso(time)})}
        onDrop=${(index, edge, time) => propose({id: timeline.bars.id[index], label: timeline.bars.label[index], edge, time, before: timeline.bars[edge][index] * 1000})}
        onOpen=${open} />
      <${Unfolded} title="As a table"><${Table} label="Leases, offers and absences" id=${(index) => `${timeline.bars.id[index]}/${timeline.bars.row[index]}`} rows=${leases} columns=${[
        {name: "label", label: "Name", show: (index) => (opens(index) ? html`<button type="button" class="plain" onClick=${() => open(index)}>${timeline.bars.label[index]}</button>` : timeline.bars.label[index]), key: (index) => timeline.bars.label[index]},
        {name: "kind", label: "Kind", show: (index) => timeline.bars.kind[index], key: (index) => timeline.bars.kind[index]},
        {name: "state", label: "State", show: (index) => timeline.bars.state[index], key: (index) => timeline.bars.state[index]},
        {name: "row", label: by, show: (index) => timeline.rows.label[timeline.bars.row[index]], key: (index) => timeline.rows.label[timeline.bars.row[index]]},
        {name: "start", label: "Start", show: (index) => html`<${When} at=${iso(timeline.bars.start[index] * 1000)} />`, key: (index) => timeline.bars.start[index]},
        {name: "end", label: "End", show: (index) => html`<${When} at=${timeline.bars.end[index] === null ? null : iso(timeline.bars.end[index] * 1000)} />`, key: (index) => timeline.bars.end[index]},
      ]} /><//>
      <${Beyond} links=${found.data?.timeline_links} number=${timeline.rows.id.length} hint="Look at a shorter time." />` : null}<//></div>
      ${query.get("lease") ? html`<${LeaseCard} key=${chosen} id=${chosen} onClose=${() => choose()} onChange=${propose} />` : query.get("absence") ? html`<${AbsenceCard} key=${chosen} id=${chosen} onClose=${() => choose()} />`
        : chosen ? html`<${OfferCard} key=${chosen} id=${chosen} onClose=${() => choose()} session=${session} />` : null}</div>
    ${proposed ? html`<${Confirm} asked=${proposed} onClose=${() => propose(null)} />` : null}
    ${query.get("away") !== null && may("moorage:capacity_windows:create") ? html`<${Absence} hosts=${query.get("away").trim()} onClose=${() => ask({away: null})} />` : null}`;
}

export default {
  path: "/calendar",
  title: "Calendar and capacity",
  allowed: (session) => Boolean(session.rules?.["moorage:leases:list"]),
  command: ({query}) => (query.get("lease") ? `moorage lease show ${query.get("lease")}` : "moorage lease gantt"),
  Screen,
};
