// The frame around all screens: login, navigation, project switch, time, copy as command, JSON.

import {html, render, useEffect, useErrorBoundary, useRef, useState} from "./lib/page.js";
import {useShared} from "./lib/follow.js";
import {Link, ask, go, useRoute} from "./lib/route.js";
import {caller, ended, loaded, login, logout, session} from "./lib/session.js";
import {API, answers, call, forget, path} from "./lib/api.js";
import {follow, online} from "./lib/live.js";
import {DAY, When, clock, instant, iso, now, readClock, said} from "./lib/time.js";
import {Dialog} from "./lib/parts.js";
import {Login} from "./lib/login.js";
import {SCREENS, screenOf} from "./screens/index.js";

const SPANS = {"1d": 1, "7d": 7, "30d": 30, "90d": 90};

/** The instant that all screens show: now, or one ahead. */
function TimeSlider() {
  const {query} = useRoute();
  useShared(clock);
  const span = SPANS[query.get("span")] ? query.get("span") : "7d";
  const at = query.get("at");
  const start = now();
  const ahead = at ? Math.max(0, (instant(at) ?? start) - start) : 0;
  const whole = SPANS[span] * DAY;
  const step = Math.max(10 * 60000, Math.round(whole / 336 / 600000) * 600000);
  const waiting = useRef(null);
  const [shown, show] = useState(null);
  const set = (value) => {
    show(value);
    clearTimeout(waiting.current);
    waiting.current = setTimeout(() => {
      ask({at: value ? iso(Math.round((start + value) / 60000) * 60000) : null});
      show(null);
    }, 120);
  };
  const value = shown ?? ahead;
  return html`<div class="slider">
    <label for="slider">Shown</label>
    <input id="slider" type="range" min="0" max=${whole} step=${step} value=${Math.min(value, whole)}
      aria-valuetext=${value ? said(start + value) : "now"} onInput=${(event) => set(Number(event.target.value))} />
    <output for="slider">${value ? html`<${When} at=${iso(start + value)} />` : "now"}</output>
    <select aria-label="How far ahead" value=${span} onChange=${(event) => ask({span: event.target.value === "7d" ? null : event.target.value})}>
      ${Object.keys(SPANS).map((one) => html`<option value=${one}>${one}</option>`)}</select>
    ${at ? html`<button type="button" onClick=${() => ask({at: null})}>Now</button>` : null}
  </div>`;
}

function Projects() {
  const own = useShared(session).session;
  const auth = session.get().login.auth;
  const projects = own.projects ?? [];
  const [problem, say] = useState(null);
  const change = (body) => login(body).then(() => forget(), (error) => say(error.message));
  return html`<span class="who">
    ${projects.length > 1
      ? html`<label><span class="hidden">Project</span><select value=${own.project.id} onChange=${(event) => change({project: event.target.value})}>
          ${projects.map((one) => html`<option value=${one.id}>${one.name}</option>`)}</select></label>`
      : html`<span title="project">${own.project.name}</span>`}
    <span class="soft" title=${own.roles.join(", ")}>${own.user.name}${own.operator ? " (operator)" : ""}</span>
    <button type="button" onClick=${() => logout()}>${auth === "noauth2" ? "Change role" : "Log out"}</button>
    ${problem ? html`<span class="problem" role="alert">${problem}</span>` : null}</span>`;
}

/** Find by name: an ensemble, or for operators a host. */
function Search() {
  const field = useRef(null);
  useEffect(() => {
    const focus = (event) => {
      if (event.key === "/" && !event.target.closest("input,select,textarea,dialog")) {
        event.preventDefault();
        field.current.focus();
      }
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, []);
  const find = async (event) => {
    event.preventDefault();
    const text = field.current.value.trim();
    if (!text) return;
    const {operator} = caller();
    const named = await call("GET", path("/ensembles", {name: text, all_projects: operator ? "true" : null, limit: 2})).catch(() => null);
    const found = named?.ensembles ?? [];
    if (found.length === 1) go(`/applications/${found[0].id}`);
    else if (found.length || !operator) go("/applications", {name: text});
    else go("/fleet", {find: text});
  };
  return html`<form role="search" onSubmit=${find}><input ref=${field} type="search" aria-label=${caller().operator ? "Find a host or an ensemble" : "Find an ensemble"} placeholder=${caller().operator ? "host or ensemble  /" : "ensemble  /"} /></form>`;
}

function Json({onClose}) {
  const found = [...useShared(answers)];
  return html`<${Dialog} title="JSON" onClose=${onClose}>
    ${found.length ? null : html`<p class="empty">This screen has read nothing.</p>`}
    ${found.map(([path, data]) => html`<details open=${found.length === 1}><summary><code>${path.startsWith("/") ? `GET ${API}${path}` : path.replace(" ", ` ${API}`)}</code></summary><pre tabindex="0">${cut(JSON.stringify(data, null, 2))}</pre></details>`)}
  <//>`;
}

const LONGEST = 200000;
const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}\n… ${text.length - LONGEST} more characters` : text);

function Tools({screen, route}) {
  const [copied, say] = useState(null);
  const [open, show] = useState(false);
  const command = screen.command(route, caller());
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(command);
      say("copied");
    } catch {
      say("shown");
    }
    setTimeout(() => say(null), 4000);
  };
  return html`<div class="tools">
    <button type="button" onClick=${copy} title=${command}>Copy as command</button>
    <button type="button" onClick=${() => show(true)}>JSON</button>
    <span role="status">${copied ? html`<code>${command}</code> ${copied === "copied" ? "copied" : ""}` : ""}</span>
    ${open ? html`<${Json} onClose=${() => show(false)} />` : null}</div>`;
}

/** A screen; what it cannot draw ends neither the frame nor the other screens. */
function Drawn({screen, route, session: own}) {
  const [failure, reset] = useErrorBoundary((error) => console.error(error));
  useEffect(() => {
    if (failure) reset();
  }, [route.path, route.query]);
  if (failure) {
    return html`<div class="card" role="alert"><p class="problem">This screen cannot be drawn: ${failure.message}</p>
      <p class="row"><button type="button" onClick=${() => go(route.path)}>Without its filters</button><button type="button" onClick=${() => location.reload()}>Reload the page</button></p></div>`;
  }
  return html`<${screen.Screen} route=${route} session=${own} />`;
}

function Frame() {
  const own = useShared(session);
  const route = useRoute();
  const answers = useShared(online);
  const allowed = SCREENS.filter((one) => one.allowed(own.session));
  const screen = screenOf(route.path, allowed);
  useEffect(() => {
    forget();
    document.title = screen ? `${screen.title} · Moorage` : "Moorage";
  }, [route.path]);
  useEffect(() => {
    if (!screen && route.path === "/") go(allowed[0].path, {}, {replace: true});
  }, [route.path]);
  const embedded = route.query.get("embed") === "1";
  return html`
    ${own.login.auth === "noauth2" ? html`<section class="band" aria-label="Notice">Nobody proves who they are here (auth = noauth2): for trying out only.</section>` : null}
    ${answers ? null : html`<section class="band" aria-label="Connection"><span role="alert">The service does not answer. What is shown may be old; trying again.</span></section>`}
    <div class=${embedded ? "frame embedded" : "frame"}>
      ${embedded ? null : html`<header class="top"><a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>To the content</a><${Link} to="/" class="brand">Moorage<//><${Search} /><${TimeSlider} /><${Projects} /></header>
      <nav aria-label="Screens"><ul>${allowed.filter((one) => one.listed !== false).map((one) => html`<li key=${one.path}><${Link} to=${one.path} aria-current=${screen === one || screen?.under === one.path ? "page" : undefined}>${one.title}<//></li>`)}</ul>
        <p class="soft">${own.simulation ? html`simulation<br />` : ""}Moorage ${own.version}</p></nav>`}
      <main id="main" tabindex="-1">${screen
        ? html`<div class="head"><h1>${screen.title}</h1><${Tools} screen=${screen} route=${route} /></div><${Drawn} key=${screen.path} screen=${screen} route=${route} session=${own.session} />`
        : html`<h1>Not found</h1><p>There is no screen at <code>${route.path}</code> for ${own.session.roles.join(", ") || "this role"}.</p>`}</main>
    </div>`;
}

function Page() {
  const own = useShared(session);
  const why = useShared(ended);
  if (!own) return html`<p class="soft" role="status">Reading…</p>`;
  return own.session ? html`<${Frame} />` : html`<${Login} login=${own.login} why=${why} />`;
}

const place = document.getElementById("page");
loaded.then(readClock).then(() => {
  follow();
  render(html`<${Page} />`, place);
}, (error) => {
  render(html`<main class="login"><h1>Moorage</h1><p class="problem" role="alert">The service does not answer: ${error.message}</p><button type="button" onClick=${() => location.reload()}>Try again</button></main>`, place);
});
