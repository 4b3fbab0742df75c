"""The filter before a nova-api that notes what reaches it, over a real Moorage on HTTP."""

import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import yaml
from falcon.testing import TestClient

from moorage.client.discovery import OPERATOR_TOKEN
from moorage.domain.server_groups import IMPORTED
from moorage.nova_filter import filter_factory
from moorage.nova_filter.hints import IMPORTED as FILTERED
from moorage.testing import in_process
from moorage.testing.service import HandClock

ROOT = Path(__file__).parents[2]
THREE_RACKS = (ROOT / "fleets/three-racks.yaml").read_text("utf-8")
TENANT = {"X-Auth-Token": "shop-user:shop", "X-Roles": "member"}
TOKEN = "shop-user:shop"
OTHER = "bob:other"
SERVER = {"name": "db", "flavorRef": "m1.xlarge", "imageRef": "i", "networks": "none"}
NOVAS_OWN = "99999999-9999-4999-8999-999999999999"


@dataclass
class NovaApi:
    """What stands behind the filter."""

    status: str = "202 Accepted"
    breaks: bool = False
    seen: list[dict[str, Any]] = field(default_factory=list)
    global_ids: list[str | None] = field(default_factory=list)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        if self.breaks:
            raise RuntimeError("nova-api broke")
        length = environ.get("CONTENT_LENGTH")
        text = environ["wsgi.input"].read(int(length) if length else -1)
        self.seen.append(json.loads(text))
        self.global_ids.append(environ.get("openstack.global_request_id"))
        start_response(self.status, [("Content-Type", "application/json")])
        return [b"{}"]


class Quiet(WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@dataclass
class Cloud:
    """A held shop, and nova-api behind the filter."""

    moorage: TestClient
    endpoint: str
    clock: HandClock
    nova: NovaApi = field(default_factory=NovaApi)

    def __post_init__(self) -> None:
        shop = yaml.safe_load((ROOT / "examples/shop.yaml").read_text(encoding="utf-8"))
        made = self.call("POST", "/ensembles", {"ensemble": {**shop, "decide": {"hold": "PT10M"}}})
        self.ensemble, self.decision = made["ensemble"]["id"], made["decision"]["id"]

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.moorage.simulate_request(method, f"/v1{path}", json=body, headers=TENANT)
        assert answer.status_code < 300, answer.text
        return answer.json if answer.content else None

    def members(self) -> dict[str, str]:
        """Member -> status."""
        found = self.call("GET", f"/ensembles/{self.ensemble}/members")["members"]
        return {one["name"]: one["status"] for one in found}

    def boot(
        self, hints: Any = None, *, token: str = TOKEN, key: str = "os:scheduler_hints", **how: Any
    ) -> tuple[int, Any]:
        """Create a server; the status and the body of the answer."""
        options = {"endpoint": self.endpoint, **how.pop("options", {})}
        presents = how.pop("presents", None)
        body = {"server": {**SERVER, **how}, **({} if hints is None else {key: hints})}
        return self.send(json.dumps(body).encode(), token, options, presents)

    def send(
        self,
        text: bytes,
        token: str = TOKEN,
        options: Any = None,
        presents: str | None = None,
        environ: Any = None,
    ) -> tuple[int, Any]:
        statuses: list[str] = []
        parts = self.serve(text, token, options, presents, environ or {}, statuses)
        try:
            answer = b"".join(parts)
        finally:
            if hasattr(parts, "close"):
                parts.close()
        return int(statuses[-1].split()[0]), json.loads(answer)

    def serve(
        self,
        text: bytes,
        token: str,
        options: Any,
        presents: str | None,
        more: Any,
        statuses: list[str],
    ) -> Any:
        """The answer as a WSGI server gets it."""
        application = filter_factory({}, **(options or {"endpoint": self.endpoint}))(self.nova)
        environ = {
            "REQUEST_METHOD": "POST",
            "PATH_INFO": "/v2.1/servers",
            "CONTENT_LENGTH": str(len(text)),
            "HTTP_X_AUTH_TOKEN": token,
            "HTTP_X_ROLES": "member",
            "wsgi.input": io.BytesIO(text),
            **({} if presents is None else {"openstack.global_request_id": presents}),
            **more,
        }
        return application(environ, lambda status, _, *__: statuses.append(status))


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    clock = HandClock()
    with (
        in_process.app(clock=clock, fleet=THREE_RACKS) as application,
        make_server("127.0.0.1", 0, application, handler_class=Quiet) as server,
    ):
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        endpoint = f"http://127.0.0.1:{server.server_port}/v1"
        yield Cloud(TestClient(application), endpoint, clock)
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("key", ["os:scheduler_hints", "OS-SCH-HNT:scheduler_hints"])
@pytest.mark.parametrize("place", ["shop", "shop/db", "shop/db[2]", "{id}", "{id}/db"])
def test_a_hint_claims_a_place_and_presents_it(cloud: Cloud, place: str, key: str) -> None:
    hints = {"moorage": place.format(id=cloud.ensemble), "different_host": "h"}
    assert cloud.boot(hints, key=key) == (202, {})
    building = [name for name, status in cloud.members().items() if status == "building"]
    assert building == (["db[2]"] if "[2]" in place else ["db[0]"])
    (claim,) = cloud.call("GET", f"/decisions/{cloud.decision}/claims")["claims"]
    assert cloud.nova.global_ids == [f"req-{claim['id']}"]
    claimed = {**hints, "moorage_claim": claim["id"]}
    assert cloud.nova.seen == [{"server": SERVER, key: claimed}]


def test_the_claim_ends_with_a_build_that_fails_later(cloud: Cloud) -> None:
    """Nova writes the server's allocations, and deletes them when no host could build it."""
    assert cloud.boot({"moorage": "shop/db[0]"}) == (202, {})
    headers = {
        "X-Auth-Token": OPERATOR_TOKEN,
        "OpenStack-API-Version": "placement 1.36",
        "X-Openstack-Request-Id": str(cloud.nova.global_ids[0]),
    }
    query = "/placement/allocation_candidates?resources=VCPU:8,MEMORY_MB:16384,DISK_GB:160"
    found = cloud.moorage.simulate_get(query, headers=headers).json["allocation_requests"]
    (allocations,) = (one["allocations"] for one in found)
    owner = {"project_id": "shop", "user_id": "ann", "consumer_generation": None}
    path, body = f"/placement/allocations/{NOVAS_OWN}", {"allocations": allocations, **owner}
    assert cloud.moorage.simulate_put(path, json=body, headers=headers).status_code == 204
    assert cloud.members()["db[0]"] == "active"
    assert cloud.moorage.simulate_delete(path, headers=headers).status_code == 204
    assert cloud.members()["db[0]"] == "held"
    (claim,) = cloud.call("GET", f"/decisions/{cloud.decision}/claims")["claims"]
    assert claim["status"] == "ended"


def test_metadata_names_a_member(cloud: Cloud) -> None:
    metadata = {"moorage:ensemble": cloud.ensemble, "moorage:member": "db[1]"}
    assert cloud.boot(metadata=metadata) == (202, {})
    assert cloud.members()["db[1]"] == "building"
    assert cloud.nova.seen[0]["server"]["metadata"] == metadata


def test_a_group_that_is_an_ensemble_is_taken_out(cloud: Cloud) -> None:
    assert cloud.boot({"group": cloud.ensemble}) == (202, {})
    claimed = str(cloud.nova.global_ids[0]).removeprefix("req-")
    hints = {"moorage": cloud.ensemble, "moorage_claim": claimed}
    assert cloud.nova.seen[0]["os:scheduler_hints"] == hints
    assert "building" in cloud.members().values()


@pytest.mark.parametrize("hints", [None, {}, {"group": NOVAS_OWN}, {"group": "x"}, {"query": "[]"}])
def test_other_servers_pass_untouched(cloud: Cloud, hints: Any) -> None:
    assert cloud.boot(hints) == (202, {})
    assert cloud.nova.global_ids == [None]
    assert cloud.nova.seen == [
        {"server": SERVER} if hints is None else {"server": SERVER, "os:scheduler_hints": hints}
    ]


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"server": 1}', b'{"x": 1}', b"\xff"])
def test_bodies_that_novas_schema_refuses_reach_it(cloud: Cloud, text: bytes) -> None:
    cloud.nova.breaks = True
    with pytest.raises(RuntimeError):
        cloud.send(text)


@pytest.mark.parametrize(
    ("hint", "status", "fault", "words"),
    [
        ("nothing", 404, "itemNotFound", "no ensemble nothing"),
        (NOVAS_OWN, 404, "itemNotFound", NOVAS_OWN),
        ("shop/cache", 404, "itemNotFound", "ensemble shop has no cache"),
        ("shop/db[7]", 404, "itemNotFound", "ensemble shop has no db[7]"),
        ("shop/db[x]", 400, "badRequest", "hint moorage: not"),
        ({}, 400, "badRequest", "hint moorage: not"),
        ("shop/web", 409, "conflictingRequest", "flavor.VCPU is 8, described as 1"),
    ],
)
def test_a_place_that_cannot_be_had_is_refused_at_once(
    cloud: Cloud, hint: Any, status: int, fault: str, words: str
) -> None:
    found, body = cloud.boot({"moorage": hint})
    assert (found, list(body)) == (status, [fault])
    assert body[fault]["code"] == status
    assert words in body[fault]["message"]
    assert cloud.nova.seen == [], "nova-api does not see it"
    assert set(cloud.members().values()) == {"held"}


def test_each_project_gets_places_of_its_own_roles(cloud: Cloud) -> None:
    web = {"name": "web", "count": 1, "flavor": SERVER["flavorRef"]}
    db = {"name": "db", "count": 1, "flavor": SERVER["flavorRef"], "project": OTHER.split(":")[1]}
    body = {"ensemble": {"name": "market", "members": [db, web]}}
    cloud.ensemble = cloud.call("POST", "/ensembles", body)["ensemble"]["id"]
    (share,) = cloud.call("GET", "/shares")["shares"]
    other = {"X-Auth-Token": OTHER, "X-Roles": "member"}
    path = f"/v1/shares/{share['id']}/accept"
    assert cloud.moorage.simulate_post(path, headers=other).status_code == 200
    cloud.call("POST", "/decisions", {"decision": {"ensemble_id": cloud.ensemble}})
    hints = {"moorage": cloud.ensemble}
    refused, told = cloud.boot({"moorage": f"{cloud.ensemble}/db"})
    assert (refused, "belongs to project" in str(told)) == (403, True)
    assert cloud.boot(hints) == (202, {})
    assert cloud.members() == {"web[0]": "building", "db[0]": "held"}
    assert cloud.boot(hints, token=OTHER) == (202, {})
    assert cloud.members() == {"web[0]": "building", "db[0]": "building"}


def test_another_projects_ensemble_is_not_there(cloud: Cloud) -> None:
    for hint in ("shop", cloud.ensemble):
        status, body = cloud.boot({"moorage": hint}, token=OTHER)
        assert (status, list(body)) == (404, ["itemNotFound"])


@pytest.mark.parametrize("counts", [{"max_count": 2}, {"min_count": "3"}])
def test_several_servers_need_the_ticket_flavor(cloud: Cloud, counts: Any) -> None:
    status, body = cloud.boot({"moorage": "shop/db"}, **counts)
    assert status == 400
    assert "ticket flavor" in body["badRequest"]["message"]
    assert cloud.boot({"group": NOVAS_OWN}, **counts)[0] == 202, "Nova's own group may have many"


def test_a_server_that_nova_refuses_gives_its_place_back(cloud: Cloud) -> None:
    cloud.nova.status = "403 Forbidden"
    assert cloud.boot({"moorage": "shop/db[0]"})[0] == 403
    claims = cloud.call("GET", f"/decisions/{cloud.decision}/claims")["claims"]
    assert [one["status"] for one in claims] == ["failed"]
    cloud.nova.breaks = True
    with pytest.raises(RuntimeError):
        cloud.boot({"moorage": "shop/db[1]"})
    claims = cloud.call("GET", f"/decisions/{cloud.decision}/claims")["claims"]
    assert [one["status"] for one in claims] == ["failed"] * 2
    assert set(cloud.members().values()) == {"held"}


@pytest.mark.parametrize("restarting", ["refuses connections", "answers 503"])
def test_a_hint_waits_for_moorage_while_it_restarts(cloud: Cloud, restarting: str) -> None:
    """And what insists on no place of its own waits for nothing."""
    host = "127.0.0.1"
    with socket.create_server((host, 0)) as free:
        number = free.getsockname()[1]
    options = {"endpoint": f"http://{host}:{number}/v1"}
    back = threading.Event()

    def application(environ: Any, start_response: Any) -> Any:
        if not back.is_set():
            back.set()
            start_response("503 Service Unavailable", [("Retry-After", "1")])
            return [b"{}"]
        return cloud.moorage.app(environ, start_response)

    def serve() -> None:
        if restarting == "refuses connections":
            time.sleep(0.3)  # it is asked before
            back.set()
        with make_server(host, number, application, handler_class=Quiet) as server:
            server.timeout = 10
            while cloud.nova.seen == []:
                server.handle_request()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert cloud.boot({"moorage": "shop/db"}, options=options)[0] == 202
    assert list(cloud.members().values()).count("building") == 1


@pytest.mark.parametrize("mode", ["refuse", "ordinary"])
def test_without_moorage(cloud: Cloud, mode: str) -> None:
    options = {"endpoint": "http://127.0.0.1:9/v1", "failure_mode": mode, "timeout": "2"}
    status, body = cloud.boot({"moorage": "shop/db"}, options=options)
    if mode == "refuse":
        assert (status, list(body)) == (503, ["serviceUnavailable"])
        assert cloud.nova.seen == []
    else:
        assert status == 202
        assert cloud.nova.seen == [{"server": SERVER, "os:scheduler_hints": {}}]
        assert cloud.nova.global_ids == [None]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"endpoint": "moorage"},
        {"endpoint": "http://m", "failure_mode": "x"},
        {"endpoint": "http://m", "timeout": "soon"},
        {"endpoint": "http://m", "tiemout": "1"},
    ],
)
def test_options_are_checked_when_nova_api_starts(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"filter:moorage|could not convert"):
        filter_factory({}, **options)


@pytest.mark.parametrize("mode", ["refuse", "ordinary"])
def test_novas_own_groups_do_not_depend_on_moorage(cloud: Cloud, mode: str) -> None:
    options = {"endpoint": "http://127.0.0.1:9/v1", "failure_mode": mode, "timeout": "2"}
    assert cloud.boot({"group": NOVAS_OWN}, options=options)[0] == 202
    assert cloud.boot({"group": NOVAS_OWN}, token="nobody")[0] == 202
    assert [one["os:scheduler_hints"] for one in cloud.nova.seen] == [{"group": NOVAS_OWN}] * 2


def test_metadata_insist_on_nothing(cloud: Cloud) -> None:
    """They are on every server of an ensemble, also when it is rebuilt long after."""
    metadata = {"moorage:ensemble": cloud.ensemble, "moorage:member": "db[0]"}
    cloud.call("POST", f"/decisions/{cloud.decision}/confirm")
    assert cloud.boot(metadata=metadata) == (202, {})
    assert cloud.boot(metadata={**metadata, "moorage:member": "x"}) == (202, {})
    assert cloud.nova.global_ids == [None, None]


def test_a_presented_claim_goes_before_metadata(cloud: Cloud) -> None:
    metadata = {"moorage:ensemble": cloud.ensemble, "moorage:member": "db[0]"}
    assert cloud.boot(metadata=metadata, presents="req-1") == (202, {})
    assert set(cloud.members().values()) == {"held"}


@pytest.mark.parametrize("answer", [b"[]", b"{}", b"null", b"{", b'{"ensembles": [{}]}', b""])
def test_what_is_no_answer_of_moorages_counts_as_none(cloud: Cloud, answer: bytes) -> None:
    def other(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "application/json")])
        return [answer]

    with make_server("127.0.0.1", 0, other, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        options = {"endpoint": f"http://127.0.0.1:{server.server_port}"}
        status, body = cloud.boot({"moorage": "shop"}, options=options)
        server.shutdown()
        thread.join()
    assert (status, list(body)) == (503, ["serviceUnavailable"])


@pytest.mark.parametrize("hint", ["\ud800", "a" * 100_000, "shop\n", [["shop"]], 7, True])
def test_odd_hints_are_refused(cloud: Cloud, hint: Any) -> None:
    assert cloud.boot({"moorage": hint})[0] in {400, 404}
    assert cloud.nova.seen == []


def test_a_body_of_unknown_length_is_left_to_nova(cloud: Cloud) -> None:
    text = json.dumps({"server": SERVER}).encode()
    application = filter_factory({}, endpoint=cloud.endpoint)(
        lambda environ, start: [environ["wsgi.input"].read()]
    )
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/v2.1/servers",
        "wsgi.input": io.BytesIO(text),
        "wsgi.input_terminated": True,
    }
    assert b"".join(application(environ, lambda *_: None)) == text


def test_an_imported_group_is_novas_too(cloud: Cloud) -> None:
    """Without a held place Nova's own group counts; with one the server takes it."""
    assert FILTERED == IMPORTED, "the filter imports nothing of Moorage"
    key, value = IMPORTED
    body = {"ensemble": {"name": "group", "metadata": {key: value}, "policies": ["anti-affinity"]}}
    group = cloud.call("POST", "/ensembles", body)["ensemble"]["id"]
    assert cloud.boot({"group": group}) == (202, {})
    assert cloud.boot({"group": group}, min_count=2, max_count=2) == (202, {})
    assert [one["os:scheduler_hints"] for one in cloud.nova.seen] == [{"group": group}] * 2
    assert cloud.nova.global_ids == [None, None]
    role = {"name": "db", "flavor": "m1.xlarge"}
    added = {"member": {"role": role, "decide": {"hold": "PT10M"}}}
    cloud.call("POST", f"/ensembles/{group}/members", added)
    assert cloud.boot({"group": group}) == (202, {})
    hints = cloud.nova.seen[2]["os:scheduler_hints"]
    assert hints.keys() == {"moorage", "moorage_claim"}
    assert cloud.nova.global_ids[2] == f"req-{hints['moorage_claim']}"


def test_a_claim_that_a_client_names_is_not_believed(cloud: Cloud) -> None:
    assert cloud.boot({"moorage": "shop/db", "moorage_claim": NOVAS_OWN}) == (202, {})
    hints = cloud.nova.seen[0]["os:scheduler_hints"]
    assert cloud.nova.global_ids == [f"req-{hints['moorage_claim']}"]


def test_a_group_without_members_says_what_to_do(cloud: Cloud) -> None:
    body = {"ensemble": {"name": "empty", "policies": ["affinity"]}}
    group = cloud.call("POST", "/ensembles", body)["ensemble"]["id"]
    status, answer = cloud.boot({"group": group})
    assert status == 409
    assert "moorage member add" in answer["conflictingRequest"]["message"]


def test_a_body_in_chunks_is_read_too(cloud: Cloud) -> None:
    text = json.dumps({"server": SERVER, "os:scheduler_hints": {"moorage": "shop/db"}}).encode()
    chunked = {"CONTENT_LENGTH": "", "wsgi.input_terminated": True}
    assert cloud.send(text, environ=chunked)[0] == 202
    assert list(cloud.members().values()).count("building") == 1


def test_an_answer_that_nobody_reads_gives_the_place_back(cloud: Cloud) -> None:
    cloud.nova.status = "403 Forbidden"
    text = json.dumps({"server": SERVER, "os:scheduler_hints": {"moorage": "shop/db"}}).encode()
    statuses: list[str] = []
    answer = cloud.serve(text, TOKEN, None, None, {}, statuses)
    assert statuses == ["403 Forbidden"]
    assert "building" in cloud.members().values()
    answer.close()
    assert set(cloud.members().values()) == {"held"}


def test_every_claim_is_named_for_the_schedulers_weigher(cloud: Cloud) -> None:
    """Those that metadata name, and those that a client presents by its header."""
    named = {"moorage:ensemble": cloud.ensemble, "moorage:member": "db[0]"}
    assert cloud.boot(None, metadata=named) == (202, {})
    claim = str(cloud.nova.global_ids[0]).removeprefix("req-")
    assert cloud.nova.seen[0]["os:scheduler_hints"] == {"moorage_claim": claim}
    assert cloud.boot({"query": "[]"}, metadata=named, presents=f"req-{NOVAS_OWN}") == (202, {})
    hints = {"query": "[]", "moorage_claim": NOVAS_OWN}
    assert cloud.nova.seen[1]["os:scheduler_hints"] == hints
    assert cloud.boot({"query": "[]"}, presents=f"req-{NOVAS_OWN}") == (202, {})
    assert cloud.nova.seen[2]["os:scheduler_hints"] == {"query": "[]"}
