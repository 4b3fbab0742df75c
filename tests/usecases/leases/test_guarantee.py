"""The guarantee over random schedules: nothing is ever promised twice, and no refusal is idle."""

from dataclasses import dataclass, field, replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.usecases.leases.conftest import World, build, described, named

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import Changeset, PutLease
from moorage.domain.errors import CapacityExceeded, Infeasible
from moorage.domain.leases import LeaseState
from moorage.domain.period import FOREVER, HOUR, MINUTE, Period
from moorage.testing.service import TENANT
from moorage.usecases.claims.claim import SecondDescription, claim
from moorage.usecases.claims.hold import release
from moorage.usecases.claims.outcome import activate
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.requests import LeaseResult
from moorage.usecases.ledger.allocations import release as gone

pytestmark = pytest.mark.timeout(3600)  # for the long form, MOORAGE_HYPOTHESIS=nightly
NOTICE = 5 * MINUTE

hour = st.integers(0, 6)
length = st.integers(1, 4)
vcpu = st.integers(1, 4)
steps = st.one_of(
    st.tuples(st.just("lease"), hour, length, vcpu, st.integers(1, 3), st.booleans()),
    st.tuples(st.just("server"), vcpu, st.integers(0, 2), st.none() | length, st.booleans()),
    st.tuples(st.just("ensemble"), vcpu, st.none() | length, st.booleans()),
    st.tuples(st.just("move"), st.integers(0, 5), hour, length),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.integers(1, 2)),
)


@dataclass
class Schedule:
    """One world, in which everybody keeps the ends that they promised."""

    here: World
    room: list[int]
    granted: list[LeaseResult] = field(default_factory=list)
    hours: int = 0

    def bookings(self) -> list[Booking]:
        return [one for _, one in self.here.service.store.bookings()]

    def levels(self, host: str, bookings: list[Booking]) -> dict[int, int]:
        """Instant -> VCPU taken from a host, at every instant where it changes."""
        mine = [one for one in bookings if one.provider == host]
        now = self.here.now
        edges = {now, *(one.period.start for one in mine if one.period.start > now)}
        return {
            at: sum(
                one.amounts["VCPU"]
                for one in mine
                if one.period.start <= at < one.occupies_until(now)
            )
            for at in edges
        }

    def check(self) -> None:
        """No host is ever overfull, now or later."""
        bookings = self.bookings()
        for host, room in zip(self.here.hosts, self.room, strict=True):
            levels = self.levels(host, bookings)
            assert max(levels.values()) <= room, (host, levels)

    def lease(self, start: int, length: int, vcpu: int, members: int, *, apart: bool) -> None:
        policies = [{"name": "p", "type": "anti-affinity", "members": ["*"]}] if apart else []
        body = described(vcpu=vcpu, members=members, policies=policies)
        begin = self.hours + start
        before = self.bookings()
        try:
            made = self.here.lease(begin, begin + length, body=body, lead=0)
        except Infeasible:
            period = Period(self.here.at(begin), self.here.at(begin + length))
            assert not self.placeable(before, period, vcpu, members, apart=apart)
            return
        self.granted.append(made)

    def placeable(
        self, bookings: list[Booking], period: Period, vcpu: int, members: int, *, apart: bool
    ) -> bool:
        """Whether some assignment of members to hosts fits, everybody firm staying."""
        now = self.here.now
        warned = max(period.start - NOTICE, now + NOTICE) <= period.start
        firm = [
            one for one in bookings if not (one.preemptible and warned and one.period.end > now)
        ]
        free = []
        for host, room in zip(self.here.hosts, self.room, strict=True):
            mine = [one for one in firm if one.provider == host]
            edges = {period.start, *(b.period.start for b in mine if period.covers(b.period.start))}
            taken = (
                sum(
                    one.amounts["VCPU"]
                    for one in mine
                    if one.period.start <= at < one.occupies_until(now)
                )
                for at in edges
            )
            free.append((room - max(taken)) // vcpu)
        most = [min(one, 1) if apart else one for one in free]
        return any(
            all(chosen.count(host) <= most[host] for host in range(len(most)))
            for chosen in product(range(len(most)), repeat=members)
        )

    def server(self, vcpu: int, host: int, end: int | None, *, preemptible: bool) -> None:
        until = None if end is None else self.hours + end
        try:
            self.here.server(vcpu, host % len(self.room), until=until, preemptible=preemptible)
        except CapacityExceeded:
            return

    def ensemble(self, vcpu: int, end: int | None, *, preemptible: bool) -> None:
        """One that runs at once, until the end it declares or never."""
        until = None if end is None else self.hours + end
        try:
            made = self.here.ensemble(vcpu, until=until, preemptible=preemptible)
        except Infeasible:
            return
        (member,) = made.ensemble.members
        assert made.decision is not None
        kept = self.here.booking(member.uuid).period.end
        assert preemptible or kept == (FOREVER if until is None else self.here.at(until))
        assert kept - self.here.now >= NOTICE
        if vcpu == 1:
            release(self.here.service.env, TENANT, made.decision.id, None)
        else:
            self.run(made.decision.id, vcpu)

    def run(self, decision: str, vcpu: int, member: int = 0) -> None:
        naming, env = self.here.naming(), self.here.service.env
        name = next(
            one
            for one in sorted(self.here.service.store.decision(decision).places)
            if one.index == member
        )
        claim(env, TENANT, decision, SecondDescription(name, {"resources": {"VCPU": vcpu}}), naming)
        activate(env, TENANT, naming.id, named(next(self.here.numbers)))

    def change(self, which: int, start: int, length: int) -> None:
        pending = [one for one in self.granted if self.state(one) is LeaseState.PENDING]
        if pending:
            lease = pending[which % len(pending)].lease
            begin = self.hours + start
            try:
                self.here.change(lease.id, start=begin, end=begin + length)
            except Infeasible:
                return

    def state(self, made: LeaseResult) -> LeaseState:
        return self.here.service.store.lease(made.lease.id).state

    def cancel(self, which: int) -> None:
        pending = [one for one in self.granted if self.state(one) is LeaseState.PENDING]
        if pending:
            cancel_lease(self.here.service.env, TENANT, pending[which % len(pending)].lease.id)

    def wait(self, hours: int) -> None:
        """Hour by hour: who has promised to leave leaves, and leases that begin are used up."""
        self.begin()
        for _ in range(hours):
            self.hours += 1
            self.here.go_to(self.hours)
            store = self.here.service.store
            for made in self.granted:
                lease = store.lease(made.lease.id)
                if lease.state is LeaseState.ACTIVE and lease.terms.period.end <= self.here.now:
                    over = replace(lease, state=LeaseState.CLOSED)
                    store.commit(Changeset((PutLease(over, lease.generation),)))
            for one in self.bookings():
                if one.state is BookingState.ALLOCATED and one.period.end <= self.here.now:
                    gone(store, one.consumer)
            self.begin()

    def begin(self) -> None:
        """Leases whose start has come, all of whose places are taken at once."""
        for made in self.granted:
            lease = self.here.service.store.lease(made.lease.id)
            if lease.state is LeaseState.PENDING and lease.terms.period.start <= self.here.now:
                self.here.begin(lease.id)
                (size,) = {role.resources["VCPU"] for role in made.ensemble.roles}
                for member in range(len(made.ensemble.members)):
                    self.run(lease.decision_id, size, member)


@settings(max_examples=max(40, settings().max_examples // 2))
@given(st.lists(st.integers(2, 6), min_size=1, max_size=3), st.lists(steps, max_size=9))
def test_no_instant_is_promised_twice_and_no_refusal_is_idle(
    room: list[int], plan: list[tuple[object, ...]]
) -> None:
    here = build(*room)
    schedule = Schedule(here, room)
    try:
        for kind, *values in plan:
            match kind, values:
                case "lease", [int(start), int(hours), int(size), int(members), bool(apart)]:
                    schedule.lease(start, hours, size, members, apart=apart)
                case "server", [int(size), int(host), int() | None as end, bool(preemptible)]:
                    schedule.server(size, host, end, preemptible=preemptible)
                case "ensemble", [int(size), int() | None as end, bool(preemptible)]:
                    schedule.ensemble(size, end, preemptible=preemptible)
                case "move", [int(which), int(start), int(hours)]:
                    schedule.change(which, start, hours)
                case "cancel", [int(which)]:
                    schedule.cancel(which)
                case "wait", [int(hours)]:
                    schedule.wait(hours)
                case _:
                    raise AssertionError(kind)
            schedule.check()
        schedule.wait(12)
        schedule.check()
        assert HOUR * schedule.hours == here.now - here.at(0)
    finally:
        here.service.close()
