"""Violations begin and end with what causes them, once, whoever watches."""

import logging
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec
import pytest
from sqlalchemy import func, update

from moorage.domain.actors import LEASES, Actor
from moorage.domain.changes import (
    Changeset,
    PutBookings,
    PutEnsemble,
    PutHostService,
    PutTopology,
    PutTraits,
    PutViolation,
    ReplaceAllocations,
)
from moorage.domain.consumers import ANY_GENERATION, Consumer
from moorage.domain.errors import Busy
from moorage.domain.host_states import ServiceReport
from moorage.domain.member_names import MemberName
from moorage.domain.period import HOUR, SECOND
from moorage.domain.topology import Topology
from moorage.domain.violations import Violation
from moorage.store.schema import tables
from moorage.testing.service import NINE, OTHER, TENANT, Service
from moorage.usecases.compliance.monitor import ComplianceMonitor
from moorage.usecases.compliance_ports import ViolationFilter
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.paging import Page
from moorage.usecases.ports import Caller

DISABLED = "COMPUTE_STATUS_DISABLED"


class Watched:
    """A service whose ensembles are watched, with a stopwatch that the test sets."""

    def __init__(self, service: Service, settle: int = 0) -> None:
        limits = replace(service.env.limits, compliance_settle=settle)
        self.service = service
        self.seconds = 0.0
        self.missed = 0
        self.env = replace(service.env, limits=limits, stopwatch=lambda: self.seconds)
        self.monitor = self.another()
        self.look()

    def another(self) -> ComplianceMonitor:
        return ComplianceMonitor(self.env, self._count)

    def _count(self, number: int) -> None:
        self.missed += number

    def look(self, monitor: ComplianceMonitor | None = None) -> None:
        one = monitor or self.monitor
        while one.run_round() or not one.idle:
            pass

    def watch_one(self) -> None:
        """A round in which only one ensemble can be judged."""
        self.monitor.at_once, before = 1, self.monitor.at_once
        self.monitor.run_round()
        self.monitor.at_once = before

    def told(self) -> list[tuple[str, object]]:
        """The events of policies and members, in their order: type, and what it is about."""
        self.look()
        found = self.service.call("GET", "/events").json["events"]
        return [
            (one["type"], one["body"].get("policy") or one["body"]["member"])
            for one in found
            if one["type"].startswith(("policy.", "member."))
        ]

    def open(self) -> set[str]:
        """The keys of the stored open violations."""
        records = self.service.store.compliance.page(ViolationFilter(), Page())
        return {one.key for one in records}

    def disable(self, host: str, *, there: bool = True) -> None:
        """Set or clear the trait of disabled compute hosts on a host, by its UUID."""
        store = self.service.store
        provider = store.provider(host)
        traits = provider.traits | {DISABLED} if there else provider.traits - {DISABLED}
        acting = store.by(Actor(user_id="ops", operator=True))
        acting.commit(Changeset((PutTraits(host, traits, provider.generation),)))


@pytest.fixture
def watched(service: Service) -> Watched:
    return Watched(service)


def made(
    service: Service,
    *policies: dict[str, Any],
    count: int = 3,
    name: str = "app",
    caller: Caller = TENANT,
) -> dict[str, Any]:
    body = {
        "name": name,
        "members": [{"name": "db", "count": count, "resources": {"VCPU": 1}}],
        "policies": list(policies),
        "decide": {"hold": "PT10M"},
    }
    answer = service.call("POST", "/ensembles", {"ensemble": body}, caller=caller)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json
    return found


def records(service: Service) -> list[Violation]:
    return list(service.store.compliance.page(ViolationFilter(), Page()))


HA = {"name": "ha", "type": "survive", "members": ["db"], "level": "rack", "keep": 2}
APART = {"name": "apart", "type": "anti-affinity", "members": ["db"], "level": "rack"}


def host_of(service: Service, found: dict[str, Any], member: str) -> str:
    """The UUID of a member's host."""
    ensemble = service.store.ensemble(found["ensemble"]["id"])
    places = locate_members(service.store.snapshot(), ensemble).places
    return places[MemberName.parse(member)].host


def test_a_disabled_host_puts_its_member_at_risk_until_it_is_enabled(watched: Watched) -> None:
    service = watched.service
    found = made(service, HA)
    assert watched.told() == []
    host, snapshot = host_of(service, found, "db[1]"), service.store.snapshot()
    watched.disable(host)
    (booked,) = snapshot.state(snapshot.row_of[host]).bookings
    owner = Consumer(booked.consumer, TENANT.project_id, TENANT.user_id)
    follows = PutBookings(owner, (replace(booked, lapses_at=booked.lapses_at - SECOND),))
    service.store.by(LEASES).commit(Changeset((follows,)))  # is not the cause
    assert watched.told() == [("policy.violated", "ha"), ("member.at_risk", "db[1]")]
    assert watched.open() == {"policy ha", "member db[1]"}
    (cause,) = {one.cause for one in records(service)}
    assert (cause.kind, cause.reason, cause.actor.user_id) == ("host", "disabled", "ops")
    assert cause.hosts == (service.store.provider(host).name,)
    watched.disable(host, there=False)
    assert watched.told()[2:] == [("policy.restored", "ha"), ("member.recovered", "db[1]")]
    assert watched.open() == set()
    ended = service.store.compliance.page(ViolationFilter(open=False), Page())
    assert {one.key for one in ended} == {"policy ha", "member db[1]"}


def test_a_member_that_is_removed_has_not_moved(watched: Watched) -> None:
    service = watched.service
    found = made(service, HA)
    watched.look()
    path = f"/ensembles/{found['ensemble']['id']}"
    assert service.call("DELETE", f"{path}/members/db[2]").status_code == 200
    assert watched.told() == [("member.removed", "db[2]"), ("policy.violated", "ha")]
    (record,) = records(service)
    assert (record.cause.kind, record.cause.actor.user_id) == ("member_removed", "ann")


def test_a_host_out_of_service_ends_no_violation(watched: Watched) -> None:
    service = watched.service
    found = made(service, count=2)
    hosts = [host_of(service, found, f"db[{n}]") for n in (0, 1)]
    watched.look()
    path = f"/ensembles/{found['ensemble']['id']}/policies/same"
    same = {"policy": {"type": "anti-affinity", "members": ["db"], "level": "zone"}}
    assert service.call("PUT", path, same, headers={"If-Match": "*"}).status_code == 200
    assert watched.told() == [("policy.violated", "same")]
    (record,) = records(service)
    assert (record.cause.kind, record.cause.actor.user_id) == ("ensemble", "ann")
    for host in hosts:
        watched.disable(host)
    assert "policy.restored" not in {word for word, _ in watched.told()}


def test_a_topology_change_that_breaks_a_policy_is_told_and_so_is_its_end(
    watched: Watched,
) -> None:
    service = watched.service
    made(service, APART)
    watched.look()
    store = service.store
    before = store.snapshot().topology
    racks = {(tree, host): "r1" for tree, host in before.attachments if tree == "location"}
    flat = Topology(before.levels, before.domains, {**before.attachments, **racks})
    store.by(Actor(user_id="ops")).commit(Changeset((PutTopology(flat),)))
    assert watched.told() == [("policy.violated", "apart")]
    (record,) = store.compliance.page(ViolationFilter(), Page())
    assert (record.cause.kind, record.cause.actor.user_id) == ("topology", "ops")
    store.commit(Changeset((PutTopology(before),)))
    assert watched.told()[1:] == [("policy.restored", "apart")]


def test_a_level_that_disappears_breaks_the_policy_that_needs_it(watched: Watched) -> None:
    service = watched.service
    made(service, APART)
    watched.look()
    store = service.store
    store.commit(Changeset((PutTopology(Topology.build({}, [], [])),)))
    assert watched.told() == [("policy.violated", "apart")]
    (record,) = store.compliance.page(ViolationFilter(), Page())
    assert "cannot be judged" in record.text


def test_a_policy_whose_type_is_gone_is_broken(watched: Watched) -> None:
    """As after a plug-in was removed."""
    service = watched.service
    found = made(service, HA, APART)
    watched.look()
    stored = service.store.ensemble(found["ensemble"]["id"])
    ha, apart = stored.policies
    changed = replace(stored, policies=(replace(ha, type="of-a-plugin"), apart))
    service.store.commit(Changeset((PutEnsemble(changed, stored.generation),)))
    assert watched.told() == [("policy.violated", "ha")]
    (record,) = records(service)
    assert "cannot be judged" in record.text
    watched.disable(host_of(service, found, "db[1]"))
    assert watched.told()[1:] == [("member.at_risk", "db[1]")], "others are judged as before"


def test_a_host_that_flaps_makes_one_event(service: Service) -> None:
    watched = Watched(service, settle=10_000_000)
    found = made(service)
    host = host_of(service, found, "db[0]")
    for _ in range(10):
        watched.disable(host)
        watched.look()
        watched.seconds += 3
        watched.disable(host, there=False)
        watched.look()
        watched.seconds += 3
    assert watched.told() == [("member.at_risk", "db[0]")]
    watched.seconds += 11
    assert watched.told() == [("member.at_risk", "db[0]"), ("member.recovered", "db[0]")]


def test_after_a_restart_a_host_has_to_settle_anew(service: Service) -> None:
    watched = Watched(service, settle=10_000_000)
    found = made(service)
    host = host_of(service, found, "db[0]")
    for there in (True, False):
        watched.disable(host, there=there)
        watched.look()
    watched.seconds += 9
    watched.monitor = watched.another()
    watched.look()
    watched.seconds += 9
    assert watched.told() == [("member.at_risk", "db[0]")]
    watched.seconds += 2
    assert watched.told() == [("member.at_risk", "db[0]"), ("member.recovered", "db[0]")]


def test_a_disabled_host_whose_service_flaps_is_told_once_as_lost(service: Service) -> None:
    watched = Watched(service, settle=10_000_000)
    found = made(service)
    host = host_of(service, found, "db[0]")
    watched.disable(host)
    watched.look()
    down = ServiceReport(enabled=False, up=False, forced_down=False, since=NINE)
    for _ in range(5):
        for report in (down, replace(down, up=True)):
            service.store.commit(Changeset((PutHostService(host, report),)))
            watched.look()
            watched.seconds += 3
    assert watched.told() == [("member.at_risk", "db[0]"), ("member.lost", "db[0]")]
    watched.seconds += 11
    watched.look()
    assert [one.type for one in records(service)] == ["at_risk"]


def test_what_ended_a_violation_is_known_when_it_has_settled(service: Service) -> None:
    watched = Watched(service, settle=10_000_000)
    found = made(service)
    host = host_of(service, found, "db[1]")
    for there in (True, False):
        watched.look()
        watched.disable(host, there=there)
    watched.look()
    watched.seconds += 11
    watched.look()
    (record,) = service.store.compliance.page(ViolationFilter(open=False), Page())
    assert record.ended_by is not None
    assert (record.ended_by.kind, record.ended_by.actor.user_id) == ("host", "ops")


def test_a_neighbour_with_another_owner_is_noticed(watched: Watched) -> None:
    service = watched.service
    quiet = {"name": "quiet", "type": "exclusive", "members": ["db"]}
    found = made(service, {**quiet, "strength": {"preferred": 1}}, count=1)
    host = host_of(service, found, "db[0]")
    mine = Consumer(str(UUID(int=7, version=4)), found["ensemble"]["project_id"], "u")
    there = {host: {"VCPU": 1}}
    service.store.commit(Changeset((ReplaceAllocations(mine, there, None),)))
    assert watched.told() == []
    other = replace(mine, project_id="other")
    service.store.commit(Changeset((ReplaceAllocations(other, there, ANY_GENERATION),)))
    assert watched.told() == [("policy.violated", "quiet")]


def test_a_reference_to_a_deleted_ensemble_is_noticed(watched: Watched) -> None:
    service = watched.service
    one = made(service, name="one", count=1)
    sides = [["db"], [f"ensemble:{one['ensemble']['id']}"]]
    made(
        service,
        {"name": "far", "type": "separation", "level": "rack", "between": sides},
        name="other",
        count=1,
    )
    watched.look()
    for path in (f"/decisions/{one['decision']['id']}", f"/ensembles/{one['ensemble']['id']}"):
        gone = service.call("DELETE", path, headers={"If-Match": "*"})
        assert gone.status_code == (204 if "decisions" in path else 200)
        watched.look()
    assert watched.told() == [("policy.violated", "far")]


def test_topologies_that_follow_each_other_quickly_keep_nobody_waiting(watched: Watched) -> None:
    service = watched.service
    for number in range(3):
        made(service, APART, name=f"e{number}")
    watched.look()
    levels: list[dict[str, tuple[str, ...]]] = [{}, {"power": ("pdu",)}]
    for number in range(5):
        empty = Topology.build(levels[number % 2], [], [])
        service.store.commit(Changeset((PutTopology(empty),)))
        watched.watch_one()
    assert len(watched.open()) == 1
    assert len({one.ensemble_id for one in records(service)}) == 3


def test_a_clock_that_is_set_back_ends_nothing_before_it_began(watched: Watched) -> None:
    service = watched.service
    found = made(service)
    host = host_of(service, found, "db[0]")
    watched.disable(host)
    watched.look()
    service.clock.set(NINE - HOUR)
    watched.disable(host, there=False)
    watched.look()
    (record,) = service.store.compliance.page(ViolationFilter(open=False), Page())
    assert record.since == record.until == NINE


def test_what_happened_while_nobody_watched_is_judged_once(watched: Watched) -> None:
    service = watched.service
    found = made(service, HA)
    watched.look()
    watched.disable(host_of(service, found, "db[1]"))
    first, second = watched.another(), watched.another()
    watched.look(first)
    watched.look(second)
    assert watched.told() == [("policy.violated", "ha"), ("member.at_risk", "db[1]")]


def test_of_two_watchers_at_once_one_writes(watched: Watched) -> None:
    service = watched.service
    found = made(service, HA)
    other = watched.another()
    watched.look(other)
    watched.look()
    watched.disable(host_of(service, found, "db[1]"))
    commit = service.store.commit

    def overtaken(changeset: Changeset) -> Any:
        if any(isinstance(one, PutViolation) for one in changeset.changes):
            watched.env.store.__dict__.pop("commit")
            watched.look(other)
        return commit(changeset)

    watched.env.store.__dict__["commit"] = overtaken
    watched.look()
    assert watched.told() == [("policy.violated", "ha"), ("member.at_risk", "db[1]")]


def test_the_sweep_reports_what_no_change_announced(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    service = watched.service
    found = made(service, HA)
    watched.look()
    watched.disable(host_of(service, found, "db[1]"))
    watched.monitor._seen = service.store.snapshot()
    watched.monitor._states = watched.monitor._states * 0
    watched.look()
    assert watched.open() == {"policy ha", "member db[1]"}, "the state of hosts is compared anew"
    assert watched.missed == 0
    (record, *_) = service.store.compliance.page(ViolationFilter(), Page())
    ended = replace(record, until=NINE)
    service.store.commit(Changeset((PutViolation(ended, record.generation),)))
    watched.look()
    assert watched.missed == 0
    watched.seconds += 3_601
    with caplog.at_level(logging.ERROR):
        watched.look()
    assert watched.missed == 1
    assert "a fault of the service" in caplog.text
    assert watched.open() == {"policy ha", "member db[1]"}


def test_one_that_cannot_be_judged_keeps_no_other_from_it(watched: Watched) -> None:
    service = watched.service
    good, bad = made(service, HA), made(service, HA, name="bad")
    watched.look()
    for found in (good, bad):
        watched.disable(host_of(service, found, "db[1]"))

    def damage(there: str, instead: str) -> None:
        """Rows that were changed by hand."""
        table = tables.ensembles
        body = func.replace(table.c.body, there, instead)
        statement = update(table).where(table.c.name == "bad").values(body=body)
        service.store._backend.write(lambda session: session.execute(statement))

    damage('"members"', '"numbers"')
    with pytest.raises(msgspec.ValidationError):
        watched.look()
    watched.look()
    assert {one.ensemble_id for one in records(service)} == {good["ensemble"]["id"]}
    damage('"numbers"', '"members"')
    watched.seconds += 3_601
    watched.look()
    assert len({one.ensemble_id for one in records(service)}) == 2


def test_many_ensembles_of_a_project_keep_no_other_project_waiting(service: Service) -> None:
    """With a stopwatch on which every judgement takes a second."""
    watched = Watched(service)
    mine = [made(service, name=f"mine-{n}", count=1) for n in range(8)]
    other = made(service, count=1, caller=OTHER)
    watched.look()

    def slow() -> float:
        watched.seconds += 1
        return watched.seconds

    watched.env = replace(watched.env, stopwatch=slow)
    watched.monitor.env = watched.env
    for found in (*mine, other):
        watched.disable(host_of(service, found, "db[0]"))
    for _ in range(2):
        watched.monitor.run_round()
    projects = [one.project_id for one in records(service)]
    assert projects.count(OTHER.project_id) == 1
    assert projects.count(TENANT.project_id) <= 2
    watched.look()
    assert len({one.ensemble_id for one in records(service)}) == 9


def test_what_is_due_outlasts_a_ledger_out_of_reach(watched: Watched) -> None:
    service = watched.service
    found = made(service, HA)
    watched.look()
    watched.disable(host_of(service, found, "db[1]"))
    commit = service.store.commit

    def away(_: Changeset) -> Any:
        raise Busy("the database is away")

    service.store.__dict__["commit"] = away
    for _ in range(3):
        with pytest.raises(Busy):
            watched.look()
    service.store.__dict__["commit"] = commit
    watched.look()
    assert watched.open() == {"policy ha", "member db[1]"}


def test_a_deleted_ensemble_takes_its_violations_with_it(watched: Watched) -> None:
    service = watched.service
    found = made(service, HA)
    watched.disable(host_of(service, found, "db[1]"))
    watched.look()
    assert watched.open()
    path = f"/ensembles/{found['ensemble']['id']}"
    assert service.call("DELETE", path, headers={"If-Match": "*"}).status_code == 204
    watched.look()
    assert watched.open() == set()


def test_a_quiet_ledger_stays_as_it_is(watched: Watched) -> None:
    made(watched.service, HA)
    watched.look()
    before = watched.service.store.snapshot().revision
    watched.look()
    watched.seconds += 3_601
    watched.look()
    assert watched.service.store.snapshot().revision == before
    assert watched.missed == 0
