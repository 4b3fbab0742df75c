// The fleet as operators see it: every host in its zone and rack, how full it is at an instant, and who is on it.

import {html, useEffect, useMemo, useRef, useState} from "../lib/page.js";
import {ask, go, Link} from "../lib/route.js";
import {call, note, path, single, useAgain, useData} from "../lib/api.js";
import {may} from "../lib/session.js";
import {When} from "../lib/time.js";
import {Badge, Drawer, Field, State, Table, count} from "../lib/parts.js";
import {FLAG, FleetMap, Ramp, bytes, words} from "../lib/fleet_map.js";

const NONE = 255;
/** Hosts of one absence that fit in an address. */
const MOST_PICKED = 500;

/** What is asked of the map, from the address. */
function question(query) {
  return {
    class: query.get("class"), at: query.get("at"), tree: query.get("tree"), level: query.get("level"),
    flavor: query.get("flavor"), trait: query.get("trait"), ensemble: query.get("ensemble"),
  };
}

/** Columns of the answer as arrays, with a mark of the layout that stays equal while hosts do. */
function decoded(map) {
  return {
    ...map,
    names: map.hosts.name,
    fill: bytes(map.hosts.fill),
    flags: words(map.hosts.flags),
    fits: bytes(map.hosts.fits),
    shape: `${map.tree}/${map.level}/${map.hosts.name.length}/${map.blocks.name.length}/${map.blocks.count.join()}`,
  };
}

function said(flags) {
  const found = [];
  if (flags & FLAG.away) found.push("away");
  else if (flags & FLAG.down) found.push("down");
  else if (flags & FLAG.closed) found.push("closed");
  if (flags & FLAG.over) found.push("over capacity");
  if (flags & FLAG.violation) found.push("a policy is broken here");
  if (flags & FLAG.exclusive) found.push("exclusive");
  return found.join(", ");
}

const state = (flags) => (flags & FLAG.away ? "away" : flags & FLAG.down ? "down" : flags & FLAG.closed ? "closed" : "open");

/** A page of ensembles, for the filter. */
function Filters({query, map}) {
  const flavors = useData("/flavors?limit=200", {live: false});
  // Read when somebody is about to choose one, not with every event: many look at the map.
  const [round, again] = useState(0);
  const ensembles = useData("/ensembles?all_projects=true&limit=200", {live: false, round});
  const levels = map?.trees[map.tree] ?? [];
  const set = (name) => (event) => ask({[name]: event.target.value || null});
  return html`<form class="row" onSubmit=${(event) => event.preventDefault()}>
    <${Field} label="Class"><select value=${query.get("class") ?? map?.class ?? ""} onChange=${set("class")}>${(map?.classes ?? []).map((one) => html`<option>${one}</option>`)}</select><//>
    <${Field} label="How many fit of"><select value=${query.get("flavor") ?? ""} onChange=${set("flavor")}><option value="">–</option>${(flavors.data?.flavors ?? []).map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select><//>
    ${map && Object.keys(map.trees).length > 1 ? html`<${Field} label="Tree"><select value=${map.tree} onChange=${(event) => ask({tree: event.target.value, level: null})}>${Object.keys(map.trees).map((one) => html`<option>${one}</option>`)}</select><//>` : null}
    ${levels.length > 1 ? html`<${Field} label="Blocks are"><select value=${map.level} onChange=${set("level")}>${levels.map((one) => html`<option>${one}</option>`)}</select><//>` : null}
    <${Field} label="State"><select value=${query.get("state") ?? ""} onChange=${set("state")}><option value="">all</option>${["open", "closed", "down", "away", "empty", "broken policy", "over capacity"].map((one) => html`<option>${one}</option>`)}</select><//>
    <${Field} label="Ensemble"><select value=${query.get("ensemble") ?? ""} onFocus=${() => again(round + 1)} onChange=${set("ensemble")}><option value="">all</option>${(ensembles.data?.ensembles ?? []).map((one) => html`<option value=${one.id}>${one.name}</option>`)}</select><//>
    <${Field} label="Trait"><input value=${query.get("trait") ?? ""} placeholder="HW_CPU_X86_AVX2" onChange=${set("trait")} /><//>
    <${Field} label="Shown as"><select value=${query.get("as") ?? "map"} onChange=${(event) => ask({as: event.target.value === "map" ? null : event.target.value})}><option value="map">map</option><option value="table">table</option></select><//>
  </form>`;
}

const STATES = {
  open: (flags) => !(flags & 7), closed: (flags) => state(flags) === "closed", down: (flags) => state(flags) === "down", away: (flags) => flags & FLAG.away,
  "broken policy": (flags) => flags & FLAG.violation, "over capacity": (flags) => flags & FLAG.over, empty: (flags, fill) => fill === 0 && !(flags & FLAG.held),
};

/** Everything on one host. */
function HostCard({name, at, onClose}) {
  const found = useData(`/hosts/${encodeURIComponent(name)}`);
  const host = found.data?.host;
  return html`<${Drawer} title=${name} onClose=${onClose}><${State} of=${found}>${host ? html`
    <p><${Badge} kind=${{open: "good", closed: "warn", down: "bad"}[host.state]}>${host.state}<//> ${Object.entries(host.domains).filter(([level]) => level !== "host").map(([level, domain]) => `${level} ${domain}`).join(", ")}</p>
    ${host.closed.map((one) => html`<p>${one.why}${one.reason ? `: ${one.reason}` : ""}${one.user_id ? `, by ${one.user_id}` : ""} ${one.start ? html`from <${When} at=${one.start} />` : ""} ${one.end ? html`until <${When} at=${one.end} />` : ""}</p>`)}
    ${host.resources ? html`<${Table} label="Resources" id=${(row) => row[0]} rows=${Object.entries(host.resources)} columns=${[
      {name: "class", label: "Class", show: (row) => row[0], key: (row) => row[0]},
      {name: "capacity", label: "Has", number: true, show: (row) => row[1].capacity, key: (row) => row[1].capacity},
      {name: "booked", label: "Booked", number: true, show: (row) => row[1].booked, key: (row) => row[1].booked},
    ]} />` : null}
    <h3>${count(host.consumers, "consumer")}${host.until ? html`, the last until <${When} at=${host.until} />` : ""}</h3>
    ${host.bookings.length ? html`<ul class="policies">${host.bookings.map((one) => html`<li key=${one.consumer + one.start}>
      ${one.ensemble ? html`<${Link} to=${`/applications/${one.ensemble}`}>${one.ensemble_name ?? one.ensemble.slice(0, 8)}<//> ${one.member ?? ""}` : html`<code>${one.consumer.slice(0, 8)}</code> <span class="soft">project ${one.project_id.slice(0, 12)}</span>`}
      ${one.lease ? html` <${Link} to="/calendar" query=${{lease: one.lease}}>lease<//>` : ""}<br /><span class="soft">${one.state}, ${Object.entries(one.amounts).map(([name, amount]) => `${name} ${amount}`).join(", ")}; <${When} at=${one.start} /> – <${When} at=${one.end} /></span></li>`)}</ul>` : html`<p class="empty">Nobody is on it${at ? " now" : ""}.</p>`}
    ${may("moorage:capacity_windows:create") ? html`<p><button type="button" onClick=${() => go("/calendar", {rows: "host", away: name})}>Plan an absence…</button></p>` : null}` : null}<//><//>`;
}

function Screen({route}) {
  const {query} = route;
  const chosen = query.get("host");
  const asked = question(query);
  const where = path("/fleet/map", asked);
  const read = useMap(where);
  const map = read.data;
  const shown = useMemo(() => {
    if (!map) return null;
    const test = STATES[query.get("state")];
    const find = query.get("find");
    if (!test && !find) return map;
    const flags = map.flags.map((one, host) => ((test && !test(one, map.fill[host])) || (find && !map.names[host].includes(find)) ? one | FLAG.filtered : one));
    return {...map, flags};
  }, [map, query.get("state"), query.get("find")]);
  const index = useMemo(() => (map && chosen ? map.names.indexOf(chosen) : null), [map, chosen]);
  const fits = map?.fits ? map.blocks.fits : null;
  const matching = useMemo(() => (shown ? shown.flags.reduce((sum, one) => sum + (one & FLAG.filtered ? 0 : 1), 0) : 0), [shown]);
  const describe = (host) => `${map.names[host]}: ${map.fill[host] === NONE ? `no ${map.class}` : `${map.fill[host]} % of ${map.class}`}${map.fits ? `, fits ${map.fits[host]}` : ""}${said(map.flags[host]) ? `; ${said(map.flags[host])}` : ""}`;
  const describeBlock = (block, wide) => {
    const number = fits ? `fits ${fits[block.index]}` : `${count(block.count, "host")}`;
    return wide > 110 ? `${block.name}  ${number}` : fits ? `${block.name} ${fits[block.index]}` : block.name;
  };
  const [names, pick] = useState(new Set());
  const picked = useMemo(() => new Set(map && names.size ? [...map.names.keys()].filter((host) => names.has(map.names[host])) : []), [map, names]);
  const picks = (hosts, add) => {
    const next = new Set(names);
    for (const one of hosts) if (add) next.add(map.names[one]); else next.delete(map.names[one]);
    pick(next);
  };
  const mayPlan = may("moorage:capacity_windows:create");
  const open = (host) => ask({host: map.names[host]}, {replace: false});
  return html`<${Filters} query=${query} map=${map} />
    ${read.error && !map ? html`<p><button type="button" onClick=${() => go("/fleet")}>Without filters</button></p>` : null}
    <${State} of=${read} empty=${map && !map.names.length ? "There are no hosts yet: they are there as soon as nova-compute or moorage-agent reports them." : null}>${shown ? html`
      <p class="legend"><span>${count(matching, "host")}${matching === map.names.length ? "" : ` of ${map.names.length}`} at ${query.get("at") ? html`<${When} at=${query.get("at")} />` : "this moment"}${fits ? html`: <strong>${fits.reduce((sum, one) => sum + one, 0)} of ${query.get("flavor")} fit</strong>, to stay without end` : ""}</span>
        <span><${Ramp} /> ${fits ? "fits few – many" : "empty – full"}</span><span>✕ closed</span><span>▨ down or away</span><span>▢ over capacity</span><span>◥ broken policy</span>
        ${query.get("find") ? html`<button type="button" onClick=${() => ask({find: null})}>names with “${query.get("find")}” ✕</button>` : null}</p>
      <div role="status">${names.size ? html`<p class="row"><span>${count(names.size, "host")} selected${names.size > MOST_PICKED ? `, at most ${MOST_PICKED} at once` : ""}</span>
        <button type="button" disabled=${names.size > MOST_PICKED} onClick=${() => go("/calendar", {rows: "host", away: [...names].join(" ")})}>Plan an absence…</button>
        <button type="button" onClick=${() => pick(new Set())}>Select none</button></p>` : null}</div>
      <div class=${chosen ? "split" : ""}>${query.get("as") === "table"
        ? html`<${HostTable} map=${shown} onOpen=${open} />`
        : html`<${FleetMap} map=${shown} chosen=${index} picked=${picked} onPick=${mayPlan ? picks : null} describe=${describe} describeBlock=${describeBlock} onOpen=${open} label=${`Map of ${map.names.length} hosts`} />`}
        ${chosen ? html`<${HostCard} name=${chosen} at=${query.get("at")} onClose=${() => ask({host: null})} />` : null}</div>` : null}<//>`;
}

/** The same hosts as a table. */
function HostTable({map, onOpen}) {
  const blockOf = useMemo(() => {
    const found = new Array(map.names.length);
    map.blocks.first.forEach((first, block) => found.fill(map.blocks.name[block], first, first + map.blocks.count[block]));
    return found;
  }, [map.shape]);
  const rows = useMemo(() => map.names.map((_, host) => host).filter((host) => !(map.flags[host] & FLAG.filtered)), [map]);
  const columns = [
    {name: "host", label: "Host", show: (host) => map.names[host], key: (host) => map.names[host]},
    {name: "block", label: map.level, show: (host) => blockOf[host], key: (host) => blockOf[host]},
    {name: "state", label: "State", show: (host) => html`<${Badge} kind=${{open: "good", down: "bad"}[state(map.flags[host])] ?? "warn"}>${state(map.flags[host])}<//>`, key: (host) => state(map.flags[host])},
    {name: "fill", label: `${map.class} in use`, number: true, show: (host) => (map.fill[host] === NONE ? "–" : `${map.fill[host]} %`), key: (host) => map.fill[host]},
    ...(map.fits ? [{name: "fits", label: "Fits", number: true, show: (host) => map.fits[host], key: (host) => map.fits[host]}] : []),
    {name: "said", label: "Remarks", show: (host) => said(map.flags[host]), key: (host) => said(map.flags[host])},
  ];
  return html`<${Table} label="Hosts" id=${(host) => map.names[host]} rows=${rows} columns=${columns} onOpen=${onOpen} />`;
}

/** The map's columns; what has changed since is asked for, and answered whole where the layout has changed. */
function useMap(where) {
  const [state, set] = useState({data: null, error: null});
  const reading = useRef(null);
  useEffect(() => {
    let old = null;
    const own = single((signal) => {
      const asked = old ? `${where}${where.includes("?") ? "&" : "?"}since=${encodeURIComponent(old.tag)}` : where;
      return call("GET", asked, undefined, {signal}).then((found) => {
        old = found.map.changed ? changed(old, found.map) : decoded(found.map);
        if (!found.map.changed) note(where, found);
        set({data: old, error: null});
      }, (error) => {
        if (error.name !== "AbortError") set((before) => ({...before, error}));
      });
    });
    reading.current = own;
    own.start();
    return () => {
      own.stop();
      reading.current = null;
    };
  }, [where]);
  useAgain(reading);
  return state;
}

function changed(old, map) {
  const {index, fill, flags, fits} = map.changed;
  const blocks = map.changed_blocks ? {...old.blocks, ...map.changed_blocks} : old.blocks;
  const head = {...old, revision: map.revision, tag: map.tag, blocks};
  if (!index.length) return head;
  const next = {...head, fill: old.fill.slice(), flags: old.flags.slice(), fits: old.fits?.slice() ?? null};
  const [fills, flagged, fitted] = [bytes(fill), words(flags), bytes(fits)];
  index.forEach((host, at) => {
    next.fill[host] = fills[at];
    next.flags[host] = flagged[at];
    if (next.fits && fitted) next.fits[host] = fitted[at];
  });
  return next;
}

export default {
  path: "/fleet",
  title: "Fleet",
  allowed: (session) => Boolean(session.rules?.["moorage:fleet:map"]),
  command: ({query}) => {
    if (query.get("host")) return `moorage host show ${query.get("host")}`;
    return ["moorage fleet show", query.get("ensemble") && `# ensemble ${query.get("ensemble")}`].filter(Boolean).join("  ");
  },
  Screen,
};
