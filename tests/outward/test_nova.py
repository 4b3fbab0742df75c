"""Nova and Keystone as small real servers: what is asked of them, and what their answers mean."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from tests.outward.conftest import MESSAGE, Answer, Receiver, Request, receiving

from moorage.domain.errors import InvalidDescription
from moorage.outward.nova import NovaClient
from moorage.usecases.effect_dispatch import OutwardFailure


@dataclass
class Cloud:
    """A compute API with some servers, and an identity API that gives tokens for it."""

    servers: set[str]
    password: str = "pw"
    status: int | None = None
    tokens: int = 0
    answers: threading.Event = field(default_factory=threading.Event)
    """Nothing of Nova is answered before."""
    url: str = ""
    made: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.answers.set()

    def answer(self, request: Request) -> Answer:
        self.made.append(request)
        if request.path.startswith("/identity"):
            return self._identity(request)
        self.answers.wait(60)
        if request.headers.get("x-auth-token") != f"token-{self.tokens}":
            return Answer(401)
        if self.status is not None:
            return Answer(self.status)
        server = request.path.removeprefix("/compute/servers/")
        if request.method == "DELETE" and server in self.servers:
            self.servers.discard(server)
            return Answer(204)
        return Answer(404, b'{"itemNotFound": {"code": 404, "message": "no such server"}}')

    def _identity(self, request: Request) -> Answer:
        here = {"rel": "self", "href": f"{self.url}/identity/v3/"}
        if request.method == "GET":
            version = {"id": "v3.14", "status": "stable", "links": [here]}
            return Answer(200, json.dumps({"version": version}).encode())
        user = json.loads(request.body)["auth"]["identity"]["password"]["user"]
        if user["password"] != self.password:
            return Answer(
                401, b'{"error": {"code": 401, "message": "no", "title": "Unauthorized"}}'
            )
        self.tokens += 1
        url = f"{self.url}/compute"
        endpoint = {"interface": "internal", "region": "r1", "region_id": "r1", "url": url}
        token = {
            "methods": ["password"],
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "user": {"id": "u", "name": "moorage", "domain": {"id": "d", "name": "Default"}},
            "project": {"id": "p", "name": "service", "domain": {"id": "d", "name": "Default"}},
            "roles": [{"id": "a", "name": "admin"}],
            "catalog": [
                {
                    "type": "compute",
                    "name": "nova",
                    "id": "c",
                    "endpoints": [endpoint | {"id": "e"}],
                }
            ],
        }
        body = json.dumps({"token": token}).encode()
        headers = {"X-Subject-Token": f"token-{self.tokens}", "Content-Type": "application/json"}
        return Answer(201, body, headers)


@contextmanager
def running(cloud: Cloud) -> Iterator[Receiver]:
    with receiving(cloud.answer) as receiver:
        cloud.url = receiver.url
        yield receiver


def section(cloud: Cloud, **more: str) -> Mapping[str, str]:
    return {
        "auth_type": "password",
        "auth_url": f"{cloud.url}/identity/v3",
        "username": "moorage",
        "password": "pw",
        "user_domain_name": "Default",
        "project_name": "service",
        "project_domain_name": "Default",
        "region_name": "r1",
        **more,
    }


def test_a_server_is_deleted_with_a_token_that_is_kept() -> None:
    cloud = Cloud({"server-1"})
    with running(cloud):
        nova = NovaClient(section(cloud), 20.0)
        assert nova(MESSAGE) == "Nova deletes the server"
        assert cloud.servers == set()
        assert nova(MESSAGE) == "Nova does not know the server"
    assert cloud.tokens == 1
    deletions = [one for one in cloud.made if one.method == "DELETE"]
    assert [one.path for one in deletions] == ["/compute/servers/server-1"] * 2
    assert deletions[0].headers["x-openstack-request-id"] == "req-effect-1"


def test_a_token_that_has_expired_is_asked_for_anew() -> None:
    cloud = Cloud({"server-1"})
    with running(cloud):
        nova = NovaClient(section(cloud), 20.0)
        nova(MESSAGE)
        cloud.tokens += 1
        cloud.servers.add("server-1")
        assert nova(MESSAGE) == "Nova deletes the server"


@pytest.mark.parametrize("status", [403, 409, 500, 503])
def test_a_refusal_is_a_failure(status: int) -> None:
    cloud = Cloud({"server-1"}, status=status)
    with running(cloud), pytest.raises(OutwardFailure, match=str(status)):
        NovaClient(section(cloud), 20.0)(MESSAGE)


def test_a_wrong_password_is_a_failure() -> None:
    cloud = Cloud({"server-1"}, password="another")
    with running(cloud), pytest.raises(OutwardFailure, match="401"):
        NovaClient(section(cloud), 20.0)(MESSAGE)
    assert cloud.servers == {"server-1"}


def test_a_region_without_nova_is_a_failure() -> None:
    cloud = Cloud(set())
    with running(cloud), pytest.raises(OutwardFailure, match="endpoint"):
        NovaClient(section(cloud, region_name="elsewhere"), 5.0)(MESSAGE)


def test_one_that_does_not_answer_is_left() -> None:
    cloud = Cloud({"server-1"})
    cloud.answers.clear()
    with running(cloud):
        with pytest.raises(OutwardFailure):
            NovaClient(section(cloud), 0.5)(MESSAGE)
        cloud.answers.set()


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"auth_type": "telepathy"}, "telepathy"), ({"auth_url": ""}, "auth_url")],
)
def test_a_section_that_makes_no_login_is_refused(change: dict[str, str], problem: str) -> None:
    given = {name: text for name, text in {**section(Cloud(set())), **change}.items() if text}
    with pytest.raises(InvalidDescription, match=problem):
        NovaClient(given, 5.0)
