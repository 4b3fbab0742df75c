// What was asked for, kept in this tab by the id of its refusal, and how a relaxation changes it.

import {go} from "./route.js";
import {call} from "./api.js";

const PREFIX = "refused:";
const KEPT = 20;

/** Keep a request whose refusal has this id: `{kind: "ensemble" | "lease", body}`. */
export function keep(id, request) {
  const known = Object.keys(sessionStorage).filter((one) => one.startsWith(PREFIX));
  if (known.length >= KEPT) known.slice(0, known.length - KEPT + 1).forEach((one) => sessionStorage.removeItem(one));
  sessionStorage.setItem(PREFIX + id, JSON.stringify(request));
}

/** The request that was refused with this explanation, if it was made in this tab. */
export function kept(id) {
  const text = sessionStorage.getItem(PREFIX + id);
  return text ? JSON.parse(text) : null;
}

/** Make a request, or try it. The answer's JSON; a refusal is kept and raised as `Failure`. */
export async function request({kind, body}, {dry}) {
  const base = kind === "lease" ? "/leases" : "/ensembles";
  try {
    return await call("POST", dry ? `${base}?dry_run=true` : base, kind === "lease" ? {lease: body} : {ensemble: body});
  } catch (error) {
    if (error.body?.explanation) keep(error.body.explanation.id, {kind, body});
    throw error;
  }
}

/** Where what was made is shown. */
export function show(kind, found) {
  if (kind === "lease" && found.entry) go("/waiting");
  else go(kind === "lease" ? "/calendar" : `/applications/${found.ensemble.id}`, kind === "lease" ? {lease: found.lease.id} : {});
}

/** A relaxation's change in words: `db-ha: keep 2 → 1`. */
export function inWords(change) {
  const {policy, member, alternative, time, lease, ...fields} = change;
  const subject = policy ?? member ?? (lease ? `lease ${lease}` : "");
  const steps = Object.entries(fields).map(([name, value]) => {
    const [before, after] = Array.isArray(value) && value.length === 2 ? value : [null, value];
    return `${name} ${before === null ? "" : `${plain(before)} → `}${plain(after)}`;
  });
  return `${subject}${alternative === undefined ? "" : ` alternative ${alternative}`}${subject ? ": " : ""}${steps.join(", ")}`;
}

const plain = (value) => (value === null ? "none" : typeof value === "object" ? Object.entries(value).map(([key, inner]) => `${key} ${plain(inner)}`).join(" ") : String(value));

/** The request with a relaxation applied; null where the change is of a kind that is made by hand. */
export function relaxed({kind, body}, change) {
  const next = structuredClone(body);
  const described = kind === "lease" ? next.ensemble ?? next : next;
  const {policy, member, alternative, time, lease, ...fields} = change;
  if (alternative !== undefined) return null;
  let target = next;
  if (policy) target = (described.policies ?? []).find((one) => one.name === policy);
  else if (member) target = (described.members ?? []).find((one) => one.name === member) ?? (next.amount && member === "server" ? next.amount : null);
  else if (kind === "ensemble") target = next.decide = {...next.decide};
  if (!target) return null;
  for (const [name, value] of Object.entries(fields)) {
    const after = Array.isArray(value) && value.length === 2 ? value[1] : value;
    target[name] = name === "strength" && after === "preferred" ? {preferred: 1} : after;
  }
  return {kind, body: next};
}
