// The login page: the ways in that the service has.

import {html, useState} from "./page.js";
import {login} from "./session.js";

const WAYS = {
  role: {title: "Role", fields: [["user", "User", "admin"], ["project", "Project", "admin"]], body: (values) => ({user: values.user || "admin", project: values.project || "admin", role: values.role || "admin"})},
  token: {title: "Token", fields: [["token", "Token", "", "password"]], body: (values) => ({token: values.token})},
  password: {
    title: "User and password",
    fields: [["user", "User"], ["password", "Password", "", "password"], ["user_domain", "Domain of the user", "Default"], ["project", "Project"], ["project_domain", "Domain of the project", "Default"]],
    body: (values) => ({user: values.user, password: values.password, user_domain: values.user_domain || "Default", project: values.project || null, project_domain: values.project_domain || "Default"}),
  },
  application_credential: {
    title: "Application credential",
    fields: [["id", "Id"], ["secret", "Secret", "", "password"]],
    body: (values) => ({application_credential: {id: values.id, secret: values.secret}}),
  },
};

export function Login({login: known, why}) {
  const [way, choose] = useState(known.methods[known.methods.length > 1 ? 1 : 0]);
  const [values, fill] = useState({});
  const [problem, say] = useState(null);
  const [busy, work] = useState(false);
  const send = async (event) => {
    event.preventDefault();
    work(true);
    say(null);
    try {
      await login(WAYS[way].body(values));
    } catch (error) {
      say(error.message);
      work(false);
    }
  };
  return html`${known.auth === "noauth2" ? html`<section class="band" aria-label="Notice">Nobody proves who they are here (auth = noauth2): for trying out only.</section>` : null}
  <main class="login"><h1>Moorage</h1>
    ${why ? html`<p role="alert">${why}</p>` : null}
    ${known.methods.length > 1 ? html`<p class="choice">${known.methods.map((one) => html`<label><input type="radio" name="way" checked=${one === way} onChange=${() => choose(one)} /> ${WAYS[one].title}</label>`)}</p>` : null}
    <form onSubmit=${send}>
      ${WAYS[way].fields.map(([name, label, usual, type = "text"]) => html`<label class="field" key=${way + name}><span>${label}</span><input name=${name} type=${type} placeholder=${usual ?? ""} autocomplete=${type === "password" ? "current-password" : "username"} value=${values[name] ?? ""} onInput=${(event) => fill({...values, [name]: event.target.value})} /></label>`)}
      ${way === "role" ? html`<label class="field"><span>Role</span><select value=${values.role ?? "admin"} onChange=${(event) => fill({...values, role: event.target.value})}><option>admin</option><option>member</option><option>reader</option></select></label>` : null}
      ${problem ? html`<p class="problem" role="alert">${problem}</p>` : null}
      <button class="main" disabled=${busy}>Log in</button>
    </form></main>`;
}
