"""A real Keystone in an environment of its own (`make keystone`), and Moorage in front of it."""

import base64
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.scenarios.processes.conftest import Served, starter

HERE = Path(__file__).parent
PYTHON = HERE.parents[2] / ".cache" / "keystone" / "bin" / "python"
PASSWORD = "correct-horse-battery"
MANAGE_SECONDS = 120


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


def call(method: str, url: str, body: object = None, **headers: str) -> Answer:
    """One request; header names are written with `_`."""
    data = None if body is None else json.dumps(body).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    if data is not None:
        names["content-type"] = "application/json"
    request = urllib.request.Request(url, data, names, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as found:
            return Answer(found.status, lower(found.headers), found.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, lower(error.headers), error.read())


def lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@dataclass
class Identity:
    """The identity service, by its own API."""

    url: str
    process: "subprocess.Popen[str]"
    admin: str = ""

    def token(self, user: str, scope: object, password: str = PASSWORD) -> str:
        """A token of the user, all in the domain `default`."""
        who = {"name": user, "domain": {"id": "default"}, "password": password}
        auth: dict[str, Any] = {"identity": {"methods": ["password"], "password": {"user": who}}}
        if scope is not None:
            auth["scope"] = scope
        answer = call("POST", f"{self.url}/auth/tokens", {"auth": auth})
        assert answer.status == 201, answer.raw
        return answer.headers["x-subject-token"]

    def project(self, name: str) -> dict[str, Any]:
        """A project as a scope."""
        return {"project": {"name": name, "domain": {"id": "default"}}}

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """As the cloud's administrator."""
        answer = call(method, f"{self.url}{path}", body, x_auth_token=self.admin)
        assert answer.status < 300, answer.raw
        return answer.json if answer.raw else None

    def id_of(self, kind: str, name: str) -> str:
        [found] = self.ask("GET", f"/{kind}?name={quote(name)}")[kind]
        return str(found["id"])

    def make_project(self, name: str) -> str:
        body = {"project": {"name": name, "domain_id": "default"}}
        return str(self.ask("POST", "/projects", body)["project"]["id"])

    def make_role(self, name: str) -> None:
        """A role that no rule names by default."""
        self.ask("POST", "/roles", {"role": {"name": name}})

    def make_user(self, name: str, where: str, *roles: str) -> None:
        """`where` is the path to what the roles are in: `/projects/{id}`, `/system`."""
        body = {"user": {"name": name, "domain_id": "default", "password": PASSWORD}}
        user = self.ask("POST", "/users", body)["user"]["id"]
        for role in roles:
            path = f"{where}/users/{user}/roles/{self.id_of('roles', role)}"
            self.ask("PUT", path)

    def make_service(self, kind: str, url: str) -> None:
        """An entry of the catalog."""
        made = self.ask("POST", "/services", {"service": {"type": kind, "name": kind}})
        for interface in ("public", "internal"):
            endpoint = {"service_id": made["service"]["id"], "interface": interface, "url": url}
            self.ask("POST", "/endpoints", {"endpoint": endpoint | {"region_id": "RegionOne"}})


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Identity]:
    """Keystone with fernet tokens on SQLite, its roles and an administrator."""
    if not PYTHON.exists():
        pytest.skip("Keystone is not installed: make keystone")
    home = tmp_path_factory.mktemp("identity")
    config = home / "keystone.conf"
    config.write_text(
        f"[database]\nconnection = sqlite:///{home}/keystone.db\n"
        f"[fernet_tokens]\nkey_repository = {home}/fernet\n"
        f"[fernet_receipts]\nkey_repository = {home}/fernet\n"
        "[identity]\npassword_hash_rounds = 4\n"
    )
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    keys = home / "fernet"
    keys.mkdir(mode=0o700)
    for number in ("0", "1"):  # the next one, and the one in use
        (keys / number).write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
    manage = [str(PYTHON.with_name("keystone-manage")), "--config-file", str(config)]
    for words in (
        ("db_sync",),
        ("bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", "RegionOne"),
    ):
        ran = subprocess.run(
            [*manage, *words],
            env=environ,
            capture_output=True,
            text=True,
            timeout=MANAGE_SECONDS,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [str(PYTHON), str(HERE / "identity_server.py"), str(config)],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        assert port, (home / "log").read_text()
        made = Identity(f"http://127.0.0.1:{port}/v3", process)
        made.admin = made.token("admin", made.project("admin"))
        made.make_service("identity", made.url)
        yield made
    finally:
        process.kill()
        process.wait(60)
        process.stdin.close()
        process.stdout.close()


def section(url: str, **more: str) -> str:
    """`[keystone_authtoken]` as an operator writes it."""
    options = {
        "auth_type": "password",
        "auth_url": url,
        "www_authenticate_uri": url,
        "username": "moorage",
        "password": PASSWORD,
        "user_domain_id": "default",
        "project_name": "service",
        "project_domain_id": "default",
        **more,
    }
    return "[keystone_authtoken]\n" + "".join(f"{k} = {v}\n" for k, v in options.items())


StartGuarded = Callable[..., Served]


@pytest.fixture(scope="session")
def people(identity: Identity) -> Identity:
    """The identity service with projects, and a user for every role."""
    service = identity.make_project("service")
    shop = identity.make_project("shop")
    identity.make_project("other")
    identity.make_user("moorage", f"/projects/{service}", "service")
    identity.make_user("nova", f"/projects/{service}", "service")
    for role in ("admin", "member", "reader"):
        identity.make_user(role + "-of-shop", f"/projects/{shop}", role)
    for user, role in (("comma-of-shop", "member,admin"), ("spaces-of-shop", "member, admin ")):
        identity.make_role(role)
        identity.make_user(user, f"/projects/{shop}", role)
    identity.make_user("watcher", "/system", "reader")
    identity.make_user("nobody", f"/projects/{shop}")
    return identity


@pytest.fixture(scope="session")
def guarded(people: Identity, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Moorage that asks this Keystone, logging all it can."""
    home = tmp_path_factory.mktemp("guarded")
    file = home / "guarded.conf"
    file.write_text("[DEFAULT]\nauth = keystone\nlog_level = debug\n" + section(people.url))
    with starter(home) as start:
        served = start("--config-file", str(file))
        people.make_service("placement", f"http://127.0.0.1:{served.port}/placement")
        people.make_service("ensemble", f"http://127.0.0.1:{served.port}/v1")
        yield served


@pytest.fixture
def start_guarded(tmp_path: Path) -> Iterator[StartGuarded]:
    """Start Moorage with a section of one's own."""
    with starter(tmp_path) as start:

        def make(url: str, *options: str, **more: str) -> Served:
            file = tmp_path / "own.conf"
            file.write_text("[DEFAULT]\nauth = keystone\n" + section(url, **more))
            return start("--config-file", str(file), *options)

        yield make


@pytest.fixture
def openstack(people: Identity, tmp_path: Path) -> Callable[..., Any]:
    """The real client: finds the services in the catalog."""

    def run(user: str, project: str, *words: str) -> Any:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("OS_")}
        own = {
            "OS_AUTH_URL": people.url,
            "OS_USERNAME": user,
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": project,
            "OS_USER_DOMAIN_ID": "default",
            "OS_PROJECT_DOMAIN_ID": "default",
            "OS_IDENTITY_API_VERSION": "3",
            "HOME": str(tmp_path),
        }
        return subprocess.run(
            [str(Path(sys.executable).with_name("openstack")), *words],
            env=kept | own,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run
