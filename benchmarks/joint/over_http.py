"""Decisions over HTTP, their holds committed: one client after another, and sixteen at once.

The fleet of `fleet.make_fleet` is written into a ledger, and `moorage serve` is started on it as
an operator would. Each client is a project of its own.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from benchmarks.joint.cells import quantiles
from benchmarks.joint.draft import NotPlantable
from benchmarks.joint.families import SETS, make
from benchmarks.joint.fleet import make_fleet, servers_of, topology_of
from benchmarks.placement.client import Client
from benchmarks.placement.databases import database
from benchmarks.placement.servers import ours

from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    CreateTrait,
    PutInventories,
    PutTopology,
    PutTraits,
    ReplaceAllocations,
)
from moorage.domain.consumers import Consumer
from moorage.domain.providers import Inventory
from moorage.store import open_store
from moorage.testing.problems import OTHER_PROJECT, PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.joint.draft import Instance
    from benchmarks.joint.fleet import Fleet
    from benchmarks.placement.servers import Server

    from moorage.domain.changes import Change
    from moorage.domain.ensembles import PolicyStatement
    from moorage.domain.requests import EnsembleRequest

CLIENTS: Final = 16
PER_CLIENT: Final = 12
ROUNDS: Final = 5
"""Times that sixteen clients are measured, on the same fleet; the median round is reported."""
SINGLE: Final = 15
"""Decisions that one client asks for, of each family."""
FAMILIES: Final = ("high-availability", "nested", "mixed", "tight")
"""Families that can be placed again and again: each takes what many hosts have."""
_HOSTS_OF_A_COMMIT: Final = 200
_LIMITS: Final = (
    *("--held-members", "1000000", "--quota-ensembles", "100000"),
    *("--ensemble-members", "2000", "--threads", "24"),
)


@dataclass(frozen=True)
class Service:
    """How `moorage serve` is started."""

    engine: str
    """Its database."""
    planners: str
    """Planner processes, or `auto`."""


def measure(
    service: Service, hosts: int, load: float, which: str, *, members: int = 100
) -> dict[str, Any]:
    """One row: the start, the decisions of one client, and those of sixteen."""
    fleet = make_fleet(hosts, load=load, seed=SETS[which] + hosts)
    with (
        tempfile.TemporaryDirectory() as name,
        database(service.engine, Path(name), "ledger") as kept,
    ):
        folder = Path(name)
        bookings = fill(kept.url, fleet)
        started = time.monotonic()
        with ours(kept, folder, *_LIMITS, "--planners", service.planners) as server:
            row: dict[str, Any] = {
                "hosts": hosts,
                "members": members,
                "engine": service.engine,
                "planners": service.planners,
                "load": round(100 * load),
                "set": which,
                "bookings": bookings,
            }
            row["ready"] = round(time.monotonic() - started, 1)
            row |= _one_client(server, fleet, which, members)
            row["sixteen"] = _median_round(
                [_many_clients(server, fleet, which, number) for number in range(ROUNDS)]
            )
            row["memory"] = server.memory()
    return row


# --- the fleet in a ledger ----------------------------------------------------------------------


def uuid_of(row: int) -> str:
    """UUID of the host in a row."""
    return f"00000000-0000-4000-8000-{row:012d}"


def fill(url: str, fleet: Fleet) -> int:
    """Write the fleet with its servers; returns how many bookings there are."""
    store, count = open_store(url), 0
    store.commit(Changeset(tuple(CreateTrait(name) for name in fleet.traits if "CUSTOM" in name)))
    hosts = range(len(fleet.names))
    for first in hosts[::_HOSTS_OF_A_COMMIT]:
        rows = hosts[first : first + _HOSTS_OF_A_COMMIT]
        changes = tuple(change for row in rows for change in _host(fleet, row))
        count += sum(isinstance(one, ReplaceAllocations) for one in changes)
        store.commit(Changeset(changes))
    store.commit(Changeset((PutTopology(topology_of(fleet)),)))
    store.close()
    return count


def _host(fleet: Fleet, row: int) -> Iterator[Change]:
    uuid = uuid_of(row)
    yield CreateProvider(uuid, fleet.names[row], None)
    stock = zip(fleet.classes, fleet.capacity[row].tolist(), strict=True)
    inventories = tuple(Inventory(name, total) for name, total in stock)
    yield PutInventories(uuid, inventories, None, replace_all=True)
    if traits := frozenset(trait for trait, mask in fleet.traits.items() if mask[row]):
        yield PutTraits(uuid, traits, None)
    owner = OTHER_PROJECT if fleet.strangers[row] else PROJECT
    for number, amounts in enumerate(servers_of(fleet.classes, fleet.used[row])):
        consumer = Consumer(f"10000000-0000-4000-{number:04d}-{row:012d}", owner, owner, "INSTANCE")
        yield ReplaceAllocations(
            consumer, {uuid: {name: amount for name, amount in amounts.items() if amount}}, None
        )


# --- requests -----------------------------------------------------------------------------------


def body_of(request: EnsembleRequest, name: str) -> bytes:
    """What a tenant sends for a request."""
    roles = [
        {
            "name": role.name,
            "count": sum(member.role == role.name for member in request.members),
            "resources": dict(role.resources),
            "required": ["|".join(sorted(traits)) for traits in role.required],
        }
        for role in request.roles
    ]
    policies = [_policy(one) for one in request.policies]
    decide = {"hold": "PT1H"}
    ensemble = {"name": name, "members": roles, "policies": policies, "decide": decide}
    return json.dumps({"ensemble": ensemble}).encode()


def _policy(one: PolicyStatement) -> dict[str, Any]:
    members = [str(selector) for selector in one.members]
    return {
        "name": one.name,
        "type": one.type,
        "zip" if one.zip else "members": members,
        "strength": "required" if one.weight is None else {"preferred": one.weight},
        **one.parameters,
    }


def _instances(fleet: Fleet, which: str, members: int, first: int) -> Iterator[Instance]:
    """One of each family in turn, without end."""
    number = SETS[which] + 1_000_000 + first
    while True:
        for family in FAMILIES:
            try:
                yield make(family, fleet, members, number)
            except NotPlantable:
                continue
        number += 1


class _Project(Client):
    """One connection of a user of a project."""

    def __init__(self, server: Server, project: str) -> None:
        super().__init__(server.port, "/v1", project=project)

    def decide(self, body: bytes) -> tuple[int, float]:
        """Status of the answer, and the seconds until its last byte."""
        started = time.perf_counter()
        answer = self.send("POST", "/ensembles", body)
        return answer.status, time.perf_counter() - started

    def give_back(self) -> None:
        """Delete every ensemble of the project, so that its places are free again."""
        self._identity["If-Match"] = "*"  # whatever generation it has
        while found := self.get("/ensembles").json["ensembles"]:
            for one in found:
                status = self.send("DELETE", f"/ensembles/{one['id']}").status
                if status != HTTPStatus.NO_CONTENT:
                    raise RuntimeError(f"an ensemble is not deleted: {status}")


def _one_client(server: Server, fleet: Fleet, which: str, members: int) -> dict[str, Any]:
    """Its first decision loads what is loaded once, and is not among the times."""
    project = _Project(server, PROJECT)
    seconds: list[float] = []
    refused: dict[str, int] = {}
    instances = _instances(fleet, which, members, 0)
    for number in range(SINGLE * len(FAMILIES) + 1):
        status, taken = project.decide(body_of(next(instances).request, f"one-{number}"))
        if not number:
            continue
        seconds.append(taken)
        if status != HTTPStatus.CREATED:
            refused[str(status)] = refused.get(str(status), 0) + 1
    project.close()
    return {"one client": quantiles(seconds), "refused": refused}


def _median_round(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The round with the median rate, and the rates of all."""
    rounds = sorted(rounds, key=lambda one: float(one["decisions a second"]))
    rates = [one["decisions a second"] for one in rounds]
    statuses = Counter[str]()
    for one in rounds:
        statuses.update(one["statuses"])
    return {**rounds[len(rounds) // 2], "rounds": rates, "statuses": dict(statuses)}


def _many_clients(server: Server, fleet: Fleet, which: str, number: int) -> dict[str, Any]:
    """Decisions of twenty members a second, as sixteen projects ask for them at once."""
    asked = [
        [body_of(next(instances).request, f"many-{number}-{n}") for n in range(PER_CLIENT)]
        for instances in (
            _instances(fleet, which, 20, 1000 * (one + 1) + 100 * number) for one in range(CLIENTS)
        )
    ]

    def work(one: int) -> list[tuple[int, float]]:
        project = project_of(one)
        try:
            return [project.decide(body) for body in asked[one]]
        finally:
            project.close()

    def project_of(one: int) -> _Project:
        return _Project(server, f"{one:08d}-0000-4000-8000-000000000000")

    before, started = server.cpu(), time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as crew:
        found = [answer for answers in crew.map(work, range(CLIENTS)) for answer in answers]
    wall, used = time.perf_counter() - started, server.cpu() - before
    for one in range(CLIENTS):
        project = project_of(one)
        project.give_back()
        project.close()
    statuses = [status for status, _ in found]
    return {
        "decisions a second": round(len(found) / wall, 1),
        "cpu of a decision": round(used / len(found), 4),
        "seconds": quantiles([taken for _, taken in found]),
        "statuses": {str(one): statuses.count(one) for one in np.unique(statuses).tolist()},
    }
