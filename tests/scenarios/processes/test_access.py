"""The guarded service as a process: HTTPS, static tokens, a policy file, proxies; quiet logs."""

import http.client
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers.certificate import write_certificate
from tests.servers.ports import free_port

from moorage.tokens import listing, secret
from moorage.tokens.listing import Token

pytestmark = pytest.mark.process

LIST = "/placement/resource_providers"
PROVIDERS = "placement:resource_providers:list"


class Guarded:
    """A running service with everything on, and what is needed to talk to it."""

    def __init__(self, home: Path, serve: Any) -> None:
        self.cert, self.key = write_certificate(home)
        self.policy = home / "policy.yaml"
        self.policy.write_text(f'"{PROVIDERS}": "role:auditor"\n')
        self.tokens = home / "tokens.yaml"
        self.admin, self.auditor = self.token("root", "admin"), self.token("eye", "auditor")
        self.context = ssl.create_default_context(cafile=str(self.cert))
        self.served = serve(
            *("--auth", "token-file", "--token-file", str(self.tokens), "--host", "0.0.0.0"),
            *("--tls-cert", str(self.cert), "--tls-key", str(self.key)),
            *("--policy-file", str(self.policy), "--trusted-proxies", "127.0.0.1"),
            *("--cors-allowed-origin", "https://site.example", "--log-level", "debug"),
        )

    def token(self, name: str, *roles: str) -> str:
        text = secret.new_token(name)
        listing.add(self.tokens, Token(name, secret.hashed(text), name, "shop", roles))
        return text

    def ask(
        self, method: str, path: str, token: str = "", body: object = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.served.port, timeout=60, context=self.context
        )
        names = {name.replace("_", "-"): text for name, text in headers.items()}
        if token:
            names["x-auth-token"] = token
        data = None
        if body is not None:
            data, names["content-type"] = json.dumps(body), "application/json"
        try:
            connection.request(method, path, data, names)
            answer = connection.getresponse()
            raw = answer.read()
            found = {name.lower(): text for name, text in answer.getheaders()}
            return answer.status, json.loads(raw) if raw else None, found
        finally:
            connection.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, serve: Any) -> Iterator[Guarded]:
    home = tmp_path_factory.mktemp("guarded")
    with serve(home) as start:
        yield Guarded(home, start)


@pytest.mark.nightly
def test_the_containers_health_check_speaks_https_where_the_service_does(
    guarded: Guarded, shared: Any, serve: Any, tmp_path: Path
) -> None:
    program = Path(__file__).parents[3] / "packaging" / "container" / "healthy.py"

    def status(port: int, host: str = "") -> int:
        own = {**os.environ, "MOORAGE_PORT": str(port)} | ({"MOORAGE_HOST": host} if host else {})
        asked = subprocess.run(
            [sys.executable, program], env=own, check=False, capture_output=True, timeout=60
        )
        return asked.returncode

    with serve(tmp_path) as start:
        assert [status(one.port) for one in (guarded.served, shared)] == [0, 0]
        assert status(guarded.served.port, "0.0.0.0") == 0
        elsewhere = start("--host", "127.0.0.2")
        assert [status(elsewhere.port, host) != 0 for host in ("127.0.0.2", "")] == [False, True]
        six = start("--host", "::1")
        assert [status(six.port, host) for host in ("::1", "::")] == [0, 0]
    assert status(free_port()) != 0


def test_it_says_https_and_proves_who_it_is(guarded: Guarded) -> None:
    assert "serving on https://0.0.0.0:" in guarded.served.line
    assert "auth token-file" in guarded.served.line
    assert guarded.ask("GET", "/healthz")[0] == 200
    stranger = http.client.HTTPSConnection(
        "127.0.0.1", guarded.served.port, timeout=60, context=ssl.create_default_context()
    )
    with pytest.raises(ssl.SSLCertVerificationError):
        stranger.request("GET", "/healthz")
    stranger.close()


def test_plain_http_gets_no_answer_and_disturbs_nobody(guarded: Guarded) -> None:
    with pytest.raises((http.client.HTTPException, OSError)):
        guarded.served.get("/healthz")
    assert guarded.ask("GET", "/healthz")[0] == 200


def test_tokens_and_rules_of_files_are_in_force_and_read_again(guarded: Guarded) -> None:
    assert guarded.ask("GET", LIST)[0] == 401
    assert guarded.ask("GET", LIST, "admin")[0] == 401
    assert guarded.ask("GET", LIST, guarded.admin)[0] == 403
    assert guarded.ask("GET", LIST, guarded.auditor)[0] == 200
    late = guarded.token("late", "latecomer")
    guarded.policy.write_text(f'"{PROVIDERS}": "role:auditor or role:latecomer"\n')
    guarded.served.eventually(lambda: guarded.ask("GET", LIST, late)[0] == 200)
    listing.remove(guarded.tokens, "late")
    guarded.served.eventually(lambda: guarded.ask("GET", LIST, late)[0] == 401)


def test_locations_are_https_and_the_named_proxys(guarded: Guarded) -> None:
    path, version = "/placement/resource_classes", "placement 1.39"
    own = {"openstack_api_version": version}
    body = {"name": "CUSTOM_A"}
    status, _, headers = guarded.ask("POST", path, guarded.admin, body, **own)
    port = guarded.served.port
    assert (status, headers["location"]) == (201, f"https://127.0.0.1:{port}{path}/CUSTOM_A")
    said = {"x_forwarded_host": "api.example", "x_forwarded_prefix": "/west", **own}
    _, _, headers = guarded.ask("PUT", f"{path}/CUSTOM_B", guarded.admin, **said)
    assert headers["location"] == f"https://api.example/west{path}/CUSTOM_B"


def test_pages_of_the_named_origin_may_ask(guarded: Guarded) -> None:
    asked = {"origin": "https://site.example", "access_control_request_method": "GET"}
    status, _, headers = guarded.ask("OPTIONS", LIST, **asked)
    assert (status, headers["access-control-allow-origin"]) == (200, "https://site.example")


def test_no_token_and_no_hash_is_ever_logged(guarded: Guarded) -> None:
    forged = secret.new_token("root")
    for token in (guarded.admin, guarded.auditor, forged):
        guarded.ask("GET", f"{LIST}?token={token}", token)
        guarded.ask("GET", "/v1/ensembles", token)
        guarded.ask("POST", LIST, token, {"name": token})
    log = guarded.served.log.read_text()
    assert LIST in log
    kept = [token.hash for token in listing.read(guarded.tokens).values()]
    for one in (guarded.admin, guarded.auditor, forged, *kept):
        assert one.rpartition(".")[2].rpartition("$")[2] not in log


def test_what_is_believed_without_proof_is_not_logged_either(start: Any) -> None:
    served = start("--log-level", "debug")
    assert served.get(LIST, x_auth_token="admin:s3cret-project")[0] == 200
    assert served.get("/v1/ensembles", x_auth_token="s3cret:x", x_roles="member")[0] == 200
    log = served.log.read_text()
    assert LIST in log
    assert "s3cret" not in log


@pytest.mark.parametrize(
    ("files", "options", "problem"),
    [
        ({"p": "a: [b"}, ("--policy-file", "p"), "policy file p is no YAML"),
        ({"c": "x", "k": "x"}, ("--tls-cert", "c", "--tls-key", "k"), "cannot use certificate c"),
        (
            {"m.conf": "[DEFAULT]\nauth=keystone\n[keystone_authtoken]\nauth_type=password\n"},
            ("--config-file", "m.conf"),
            "option auth_url of [keystone_authtoken]: it must say where Keystone is",
        ),
    ],
)
def test_what_cannot_be_used_is_said_at_the_start(
    run: Callable[..., Any],
    tmp_path: Path,
    files: dict[str, str],
    options: tuple[str, ...],
    problem: str,
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    ended = run("--port", "0", *options)
    assert ended.returncode == 2, "with which nobody starts it again"
    assert problem in ended.stderr
    assert "Traceback" not in ended.stderr
