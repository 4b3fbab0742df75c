"""Servers of one request or group: where Nova put them, beside the joint decision."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from uuid import uuid4

import pytest

from moorage.domain.changes import Changeset, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.nova_groups import NovaGroup
from moorage.domain.period import SECOND
from moorage.domain.servers import Server
from moorage.shadow.boot_servers import CreatedServers
from moorage.shadow.nova_follower import NovaFollower
from moorage.shadow.report import Joint, JointCase
from moorage.testing.service import OPERATOR, Service

FLEET = "fleet: f\nhosts:\n  - {name: 'n{n}', count: 3, inventories: {VCPU: 8, MEMORY_MB: 8192}}\n"
LONG_AGO = time.monotonic() - 3600


class Cloud:
    """A Nova with servers and groups, and the shadow of it."""

    def __init__(self) -> None:
        self.service = Service(FLEET)
        self.groups: list[NovaGroup] = []
        self.servers: dict[str, Server] = {}
        self.created = CreatedServers()
        self.cases: list[JointCase] = []
        self.now = 0.0
        self.follower = NovaFollower(
            replace(self.service.env, stopwatch=lambda: self.now),
            OPERATOR,
            lambda: (tuple(self.groups), dict(self.servers)),
            self.created,
            self.cases.append,
            60 * SECOND,
        )

    def boot(self, *hosts: str, request: str = "req-1", at: float = LONG_AGO) -> list[str]:
        """Servers of one request, as Nova has placed them."""
        snapshot = self.service.store.snapshot()
        uuids = {snapshot.names[row]: snapshot.uuids[row] for row in snapshot.roots.tolist()}
        made = []
        for host in hosts:
            server = str(uuid4())
            consumer = Consumer(server, "p", "u", "INSTANCE")
            amounts = {uuids[host]: {"VCPU": 2, "MEMORY_MB": 512}}
            self.service.store.commit(Changeset((ReplaceAllocations(consumer, amounts, None),)))
            self.servers[server] = Server(server, "vm", "ACTIVE", host, project_id="p")
            made.append(server)
        self.created.note(request, made, at)
        return made

    def group(self, policy: str, servers: Sequence[str]) -> NovaGroup:
        made = NovaGroup(str(uuid4()), "apart", "p", "u", policy, members=tuple(servers))
        self.groups.append(made)
        return made

    def turn(self) -> list[JointCase]:
        """A round, a minute later."""
        self.now += 61
        self.cases.clear()
        self.follower.run_round()
        return list(self.cases)


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    made = Cloud()
    yield made
    made.service.close()


def test_servers_of_one_request_are_decided_jointly(cloud: Cloud) -> None:
    cloud.boot("n1", "n1", "n1")
    [case] = cloud.turn()
    assert (case.of, case.servers, case.there) == ("request req-1", 3, {"n1": 3})
    assert case.here == {"n1": 1, "n2": 1, "n3": 1}, "their own room is given back"
    assert (case.broken, case.reason) == ([], "")
    assert cloud.turn() == [], "once"
    assert cloud.service.call("GET", "/ensembles", caller=OPERATOR).json["ensembles"] == []


def test_one_server_is_no_joint_decision(cloud: Cloud) -> None:
    cloud.boot("n1")
    assert cloud.turn() == []


def test_what_has_not_settled_waits(cloud: Cloud) -> None:
    cloud.boot("n1", "n2", at=time.monotonic() + 60)
    assert cloud.turn() == []
    assert list(cloud.created.take(time.monotonic() + 100)) == ["req-1"], "it is kept"


def test_a_group_is_decided_whole_with_its_policy(cloud: Cloud) -> None:
    before = cloud.boot("n1", request="req-1")
    group = cloud.group("anti-affinity", before)
    assert cloud.turn() == []
    after = cloud.boot("n1", "n2", request="req-2")
    cloud.groups[0] = replace(group, members=(*before, *after))
    [case] = cloud.turn()
    assert (case.of, case.there) == ("group apart", {"n1": 2, "n2": 1})
    assert case.here == {"n1": 1, "n2": 1, "n3": 1}
    assert len(case.broken) == 1
    members = cloud.service.store.ensemble(group.id).members
    assert {one.server_id for one in members} == {*before, *after}, "nothing of it is written"
    cloud.groups.clear()
    cloud.turn()
    assert cloud.service.call("GET", f"/ensembles/{group.id}", caller=OPERATOR).status_code == 404


def test_without_a_joint_decision_the_reason_is_told(cloud: Cloud) -> None:
    cloud.group("anti-affinity", cloud.boot("n1", "n2", "n3", "n3"))
    [case] = cloud.turn()
    assert (case.here, bool(case.reason), len(case.broken)) == ({}, True, 1)


def test_servers_that_are_gone_are_left_out(cloud: Cloud) -> None:
    made = cloud.boot("n1", "n1", "n2")
    del cloud.servers[made[0]]
    [case] = cloud.turn()
    assert case.there == {"n1": 1, "n2": 1}


def test_cases_are_counted_by_their_kind() -> None:
    joint = Joint()
    joint.add(JointCase("now", "request a", 2, {"n1": 2}, {"n1": 2}))
    joint.add(JointCase("now", "request b", 2, {"n1": 2}, {"n1": 1, "n2": 1}))
    for _ in range(5):
        joint.add(JointCase("now", "group c", 2, {"n1": 2}, broken=["p"], reason="too few"))
    assert (joint.judged, joint.same, joint.elsewhere.count) == (7, 1, 1)
    assert (joint.broken.count, joint.impossible.count, len(joint.broken.examples)) == (5, 5, 3)
