"""A service with two projects that own one of everything, and a door that notes every answer."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from moorage.app import create_app
from moorage.settings import configure, read
from moorage.testing.service import OPERATOR, Service

HOSTS: Final = ("zqhost-7f31", "zqhost-a2c9", "zqhost-04be", "zqhost-d15e")
PLACES: Final = ("zqrack-81d2", "zqrack-c604", "zqroom-5b5b", "zqrow-e9a1")
"""Racks, the room and the row that they stand in."""
PRIVATE: Final = "zqprivate-3c1d"
"""The value of a property of hosts that is for operators."""
CUSTOM: Final = ("CUSTOM_ZQTRAIT_92B0", "CUSTOM_ZQCLASS_1F7C")
"""A trait and a resource class of hosts, in no flavor."""
NEAR: Final = ("CUSTOM_ZQTRAIT_92B", "CUSTOM_ZQCLASS_1F7")
"""What looks like them."""
BUSY: Final = {"start": "2026-12-09T08:13:21Z", "end": "2026-12-09T17:41:09Z"}
"""When a lease of another project takes what its host has; no request names these instants."""
UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FLEET: Final = (
    f"""
fleet: two-projects
topology:
  location:
    levels: [zone, room, row, rack]
    domains:
      - {{name: az1, level: zone}}
      - {{name: {PLACES[2]}, level: room, parent: az1}}
      - {{name: {PLACES[3]}, level: row, parent: {PLACES[2]}}}
      - {{name: {PLACES[0]}, level: rack, parent: {PLACES[3]}}}
      - {{name: {PLACES[1]}, level: rack, parent: {PLACES[3]}}}
hosts:
"""
    + "".join(
        f"  - {{name: {name}, inventories: {{VCPU: 16, MEMORY_MB: 65536, DISK_GB: 1000,"
        f" {CUSTOM[1]}: 4}}, traits: [{CUSTOM[0]}],"
        f" place: {{location: {PLACES[number // 2]}}}}}\n"
        for number, name in enumerate(HOSTS)
    )
    + """flavors:
  - {name: small, resources: {VCPU: 2}}
"""
)
MONDAY: Final = {"start": "2026-12-07T08:00:00Z", "end": "2026-12-07T12:37:11Z"}
LATEST: Final = {"OpenStack-API-Version": "placement 1.39, reservation 1.1, ensemble latest"}
ANY: Final = {"If-Match": "*"}


@dataclass(frozen=True)
class Person:
    """Somebody of a project, known by what `noauth2` believes."""

    project: str
    role: str = "member"

    @property
    def headers(self) -> dict[str, str]:
        """Who asks."""
        return {"X-Auth-Token": f"user-of-{self.project}:{self.project}", "X-Roles": self.role}


@dataclass
class Answer:
    """What somebody was told, and what they had said themselves."""

    who: Person
    asked: str
    told: str
    status: int
    json: Any


@dataclass
class Doors:
    """Every dialect of one service."""

    service: Service
    answers: list[Answer] = field(default_factory=list)

    def __post_init__(self) -> None:
        settings = configure(read({"database": "sqlite://"}, {}, files=()))
        app = create_app(settings, store=self.service.store, clock=self.service.clock)
        transport = httpx.WSGITransport(app)
        self._http = httpx.Client(transport=transport, base_url="http://moorage.invalid")

    def close(self) -> None:
        """End."""
        self._http.close()
        self.service.close()

    def ask(
        self, who: Person, method: str, path: str, body: object = None, **headers: str
    ) -> Answer:
        """One request, and what came of it."""
        sent = {**LATEST, **who.headers, **headers}
        content = None if body is None else json.dumps(body)
        if content is not None:
            sent["Content-Type"] = "application/json"
        got = self._http.request(method, path, content=content, headers=sent)
        headers_told = "\n".join(f"{name}: {value}" for name, value in got.headers.items())
        try:
            plain = got.json()
        except ValueError:
            plain = None
        asked = f"{method} {path} {content or ''}"
        answer = Answer(who, asked, f"{headers_told}\n\n{got.text}", got.status_code, plain)
        self.answers.append(answer)
        return answer

    def made(self, who: Person, path: str, body: object, status: int = 201) -> Any:
        """What a POST has made."""
        answer = self.ask(who, "POST", path, body)
        assert answer.status == status, (answer.asked, answer.told)
        return answer.json


@dataclass
class Owned:
    """One of everything, by what it is; `marks` is all that only its project may read."""

    who: Person
    ids: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    marks: set[str] = field(default_factory=set)

    def name(self, what: str) -> str:
        """A name that nobody guesses."""
        made = f"zq{what}-of-{self.who.project}"
        self.names.add(made)
        return made


def role(name: str, count: int, vcpu: int) -> dict[str, Any]:
    """A role of an ensemble."""
    return {"name": name, "count": count, "resources": {"VCPU": vcpu}}


def amount(count: int, vcpu: int) -> dict[str, Any]:
    """So many servers."""
    return {"amount": {"count": count, "resources": {"VCPU": vcpu}}}


def blazar(name: str, vcpus: int, count: int = 1, **more: Any) -> dict[str, Any]:
    """A lease as Blazar's clients ask for it."""
    part = {
        "resource_type": "virtual:instance",
        "amount": count,
        "vcpus": vcpus,
        "memory_mb": 0,
        "disk_gb": 0,
        "affinity": "None",
        "resource_properties": "",
        **more,
    }
    dates = {"start_date": "2026-12-07 08:00", "end_date": "2026-12-07 12:37"}
    return {"name": name, **dates, "reservations": [part]}


def own_everything(doors: Doors, who: Person) -> Owned:
    """Make one of everything, as a member of the project."""
    own = Owned(who)
    first = len(doors.answers)
    ids = own.ids
    made = doors.made(
        who,
        "/v1/ensembles",
        {
            "ensemble": {
                "name": own.name("ensemble"),
                "metadata": {"note": own.name("note")},
                "members": [role(own.name("role"), 2, 1)],
                "policies": [
                    {"name": own.name("policy"), "type": "anti-affinity", "members": ["*"]}
                ],
                "decide": {"hold": "PT4H"},
            }
        },
    )
    ids["ensemble"], ids["decision"] = made["ensemble"]["id"], made["decision"]["id"]
    ids["member"], ids["policy"] = f"{own.name('role')}[0]", own.name("policy")
    claim = {"member": ids["member"], "server": {"resources": {"VCPU": 1}}}
    ids["claim"] = doors.made(who, f"/v1/decisions/{ids['decision']}/claims", {"claim": claim})[
        "claim"
    ]["id"]
    offered = {**role("web", 1, 1), "project": own.name("partner")}
    shared = {"ensemble": {"name": own.name("shared"), "members": [offered]}}
    (part,) = doors.made(who, "/v1/ensembles", shared)["ensemble"]["members"]
    ids["share"] = part["share"]["id"]
    lease = {"name": own.name("lease"), **MONDAY, **amount(1, 2)}
    ids["lease"] = doors.made(who, "/v1/leases", {"lease": lease})["lease"]["id"]
    weekly = {"name": own.name("series"), "every": "daily", "times": 2, "duration": "PT3H7M"}
    weekly |= {"start": "2026-12-14T08:00", **amount(1, 2)}
    ids["series"] = doors.made(who, "/v1/series", {"series": weekly})["series"]["id"]
    wanted = {"name": own.name("offer"), "duration": "PT2H", **amount(1, 2)}
    ids["offer"] = doors.made(who, "/v1/offers", {"offer_request": wanted})["offers"][0]["id"]
    waits = {"name": own.name("waiting"), **MONDAY, **amount(4, 16), "wait": {}}
    ids["entry"] = doors.made(who, "/v1/leases", {"lease": waits}, 202)["entry"]["id"]
    source = {"members": [role("web", 1, 1)]}
    template = {"template": {"name": own.name("template"), "source": {"name": "t", **source}}}
    ids["template"] = doors.made(who, "/v1/templates", template)["template"]["id"]
    url = f"http://127.0.0.1:9/{own.name('hook')}"
    subscription = {"name": own.name("subscription"), "url": url, "events": ["*"]}
    ids["subscription"] = doors.made(who, "/v1/subscriptions", {"subscription": subscription})[
        "subscription"
    ]["id"]
    asked = {"explanation": {"members": [role(own.name("asked"), 9, 16)]}}
    ids["explanation"] = doors.made(who, "/v1/explanations", asked, 200)["explanation"]["id"]
    made = doors.made(who, "/reservation/v1/leases", blazar(own.name("blazar"), 2))
    ids["reserved"] = made["lease"]["id"]
    # Two servers: one as Nova makes them, one in the place of a claim.
    ids["server"] = doors.service.ids.uuid()
    provider = doors.service.store.snapshot().uuids[0]
    put = {
        "allocations": {provider: {"resources": {"VCPU": 1}}},
        "project_id": who.project,
        "user_id": own.name("user"),
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    answer = doors.ask(ADMIN, "PUT", f"/placement/allocations/{ids['server']}", put)
    assert answer.status == 204, answer.told
    slices = {"server_provider": {"resources": {"CUSTOM_ZQSLICE": 3}}}
    answer = doors.ask(who, "PUT", f"/v1/server-providers/{ids['server']}", slices)
    assert answer.status == 200, answer.told
    told = "".join(one.told for one in doors.answers[first:])
    own.marks = {who.project, *own.names, *UUID.findall(told), ids["server"]}
    return own


ADMIN: Final = Person("zqoperations", "admin")


def busy(doors: Doors, who: Person) -> set[str]:
    """Have a project take most of every host for a while: the instants that only it may read."""
    lease = {"name": f"zqbusy-of-{who.project}", **BUSY, **amount(4, 12)}
    made = doors.made(who, "/v1/leases", {"lease": lease})
    instants = {one[:19] for one in BUSY.values()} | {
        one[:16].replace("T", " ") for one in BUSY.values()
    }
    return {lease["name"], *UUID.findall(json.dumps(made)), *instants}


def hosts_of(service: Service) -> frozenset[str]:
    """All that names a host or a place of hosts, but for the zone."""
    snapshot = service.store.snapshot()
    rows = range(len(snapshot.uuids))
    theirs = {snapshot.uuids[row] for row in rows if "zqhost" in snapshot.names[row]}
    return frozenset({*HOSTS, *PLACES, PRIVATE, *CUSTOM, *theirs})


def opened() -> Iterator[Doors]:
    """A service with the fleet, of which some hosts are offered for reservation."""
    doors = Doors(Service(FLEET))
    for name in HOSTS[:2]:
        offered = {"name": name, "gpu": "a100", "owner": PRIVATE}
        doors.made(ADMIN, "/reservation/v1/os-hosts", offered)
    private = {"private": True}
    path = "/reservation/v1/os-hosts/properties/owner"
    assert doors.ask(ADMIN, "PATCH", path, private).status == 200
    address = {"floating_network_id": OPERATOR.project_id, "floating_ip_address": "172.24.4.7"}
    doors.made(ADMIN, "/reservation/v1/floatingips", address)
    yield doors
    doors.close()
