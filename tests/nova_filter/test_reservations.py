"""`--hint reservation=<id>`: the request presents a reservation of the caller's active lease."""

import io
import json
import threading
from collections.abc import Iterator
from typing import Any
from uuid import uuid4
from wsgiref.simple_server import make_server

import pytest
from tests.nova_filter.test_hints import NOVAS_OWN, SERVER, NovaApi, Quiet

from moorage.app import create_app
from moorage.domain.effects import Lane
from moorage.domain.period import HOUR
from moorage.nova_filter import filter_factory
from moorage.settings import configure, read
from moorage.testing.service import Service
from moorage.usecases.effect_dispatch import OutwardActions, carry_out

FLEET = 'fleet: f\nhosts:\n  - {name: "h{n}", count: 2, inventories: {VCPU: 16, MEMORY_MB: 4096}}\n'


class Cloud:
    """A lease of two servers of project-a from an hour from now on, and the filter."""

    def __init__(self, service: Service, endpoint: str) -> None:
        self.service, self.endpoint, self.nova = service, endpoint, NovaApi()
        roles = [{"name": "db", "count": 2, "resources": {"VCPU": 4, "MEMORY_MB": 512}}]
        lease = {
            "name": "week",
            "start": "2026-11-21T10:00:00Z",
            "duration": "PT1H",
            "ensemble": {"name": "week", "members": roles},
        }
        answer = service.call("POST", "/leases", {"lease": lease})
        assert answer.status_code == 201, answer.text
        [self.reservation] = [one["id"] for one in answer.json["lease"]["reservations"]]

    def later(self, hours: int) -> None:
        """So much later, with everything done that is due then."""
        self.service.clock.pass_by(hours * HOUR)
        for lane in Lane:
            for one in self.service.store.due_effects(10, lane):
                carry_out(self.service.env, OutwardActions(), one)

    def boot(
        self, reservation: Any, token: str = "ann:project-a", **options: str
    ) -> tuple[int, Any]:
        body = {"server": SERVER, "os:scheduler_hints": {"reservation": reservation}}
        text = json.dumps(body).encode()
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/v2.1/servers",
            "CONTENT_LENGTH": str(len(text)),
            "HTTP_X_AUTH_TOKEN": token,
            "HTTP_X_ROLES": "member",
            "wsgi.input": io.BytesIO(text),
        }
        options = {"endpoint": self.endpoint, **options}
        statuses: list[str] = []
        application = filter_factory({}, **options)(self.nova)
        answer = b"".join(application(environ, lambda status, _, *__: statuses.append(status)))
        return int(statuses[-1].split()[0]), json.loads(answer)


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    service = Service(FLEET)
    settings = configure(read({"database": "sqlite://"}, {}, files=()))
    application = create_app(settings, store=service.store, clock=service.clock)
    with make_server("127.0.0.1", 0, application, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield Cloud(service, f"http://127.0.0.1:{server.server_port}/v1")
        server.shutdown()
        thread.join()
    service.close()


def test_an_active_leases_reservation_is_presented(cloud: Cloud) -> None:
    cloud.later(1)
    for named in (cloud.reservation, cloud.reservation.upper()):
        assert cloud.boot(named) == (202, {})
    assert cloud.nova.global_ids == [f"req-{cloud.reservation}"] * 2
    assert cloud.nova.seen[0]["server"] == SERVER


@pytest.mark.parametrize(("hours", "status"), [(0, "pending"), (2, "closed")])
def test_a_lease_that_is_not_active_is_refused(cloud: Cloud, hours: int, status: str) -> None:
    cloud.later(hours)
    found, body = cloud.boot(cloud.reservation)
    assert found == 409
    message = body["conflictingRequest"]["message"]
    assert message.startswith(f"lease week is {status}: it lasts from 2026-11-21T10:00:00Z until")
    assert cloud.nova.seen == []


def test_another_projects_reservation_is_none(cloud: Cloud) -> None:
    cloud.later(1)
    theirs = cloud.boot(cloud.reservation, token="bob:other")
    unknown = str(uuid4())
    nobodys = cloud.boot(unknown, token="bob:other")
    text = json.dumps(theirs).replace(cloud.reservation, unknown)
    assert json.loads(text) == json.loads(json.dumps(nobodys))
    assert theirs[0] == 404


def test_a_reservation_of_ports_has_no_places_for_servers(cloud: Cloud) -> None:
    port = {"name": "link", "kind": "port", "resources": {"MEMORY_MB": 1}}
    body = {"name": "now", "duration": "PT1H", "ensemble": {"name": "net", "members": [port]}}
    made = cloud.service.call("POST", "/leases", {"lease": body})
    assert made.status_code == 201, made.text
    (one,) = made.json["lease"]["reservations"]
    found, refusal = cloud.boot(one["id"])
    assert found == 409
    message = refusal["conflictingRequest"]["message"]
    assert message.startswith(
        f"reservation {one['id']} has no places for servers; to see the lease"
    )
    assert cloud.nova.seen == []


@pytest.mark.parametrize("hint", ["x", 1, [], ["a", "b"], NOVAS_OWN[:-1], f"{NOVAS_OWN} "])
def test_what_is_no_id_is_refused(cloud: Cloud, hint: Any) -> None:
    found, body = cloud.boot(hint)
    assert found == 400
    assert "hint reservation: not the id" in body["badRequest"]["message"]
    assert cloud.nova.seen == []


def test_one_id_in_a_list_is_understood(cloud: Cloud) -> None:
    cloud.later(1)
    assert cloud.boot([cloud.reservation]) == (202, {})
    assert cloud.nova.global_ids == [f"req-{cloud.reservation}"]


@pytest.mark.parametrize(("mode", "status"), [("refuse", 503), ("ordinary", 202)])
def test_moorage_away(cloud: Cloud, mode: str, status: int) -> None:
    away = "http://127.0.0.1:9/v1"
    found, _ = cloud.boot(cloud.reservation, endpoint=away, failure_mode=mode, timeout="1")
    assert found == status
    assert cloud.nova.global_ids == ([] if mode == "refuse" else [None])
