"""A small fleet on a real ledger, and a clock that one sets in hours."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    PutBookings,
    PutInventories,
    PutLease,
    ReplaceAllocations,
    SwapHold,
)
from moorage.domain.consumers import Consumer
from moorage.domain.describe import read_ensemble
from moorage.domain.leases import LeaseState, LeaseStep, Terms, lease_after
from moorage.domain.period import FOREVER, HOUR, Instant, Period
from moorage.domain.providers import Inventory
from moorage.domain.requests import Objective
from moorage.testing.service import NINE, TENANT, Service
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import EnsembleResult, create_ensemble
from moorage.usecases.leases.change import change_lease
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.requests import LeaseChange, LeaseRequest, LeaseResult
from moorage.usecases.ports import Caller
from moorage.usecases.shared.limits import Limits


def named(number: int) -> str:
    return str(UUID(int=number, version=4))


def described(name: str = "e", vcpu: int = 1, members: int = 1, **more: Any) -> dict[str, Any]:
    role = {"name": "web", "count": members, "resources": {"VCPU": vcpu}}
    return {"name": name, "members": [role], **more}


@dataclass
class World:
    """Hosts `h0`, `h1`, ... with so many VCPU each; instants are hours from nine o'clock."""

    service: Service
    hosts: list[str]
    numbers: Iterator[int] = field(default_factory=lambda: count(1000))

    @property
    def now(self) -> Instant:
        return self.service.clock.now()

    def at(self, hours: float) -> Instant:
        return NINE + int(hours * HOUR)

    def go_to(self, hours: float) -> None:
        self.service.clock.set(self.at(hours))

    def naming(self) -> RequestIdentity:
        name = named(next(self.numbers))
        return RequestIdentity(name, digest=name)

    def lease(
        self,
        start: float,
        end: float,
        vcpu: int = 1,
        members: int = 1,
        *,
        caller: Caller = TENANT,
        body: Mapping[str, Any] | None = None,
        ensemble_id: str | None = None,
        dry_run: bool = False,
        emptiest: bool = False,
        **terms: Any,
    ) -> LeaseResult:
        """A lease of that many members over those hours; `emptiest`: on the emptiest hosts."""
        description = None
        if ensemble_id is None:
            description = read_ensemble(body or described(vcpu=vcpu, members=members))
        asked = LeaseRequest(
            name="l",
            terms=Terms(Period(self.at(start), self.at(end)), **terms),
            ensemble_id=ensemble_id,
            description=description,
            objective=Objective.BALANCE if emptiest else Objective.SPREAD,
        )
        env = self.service.env.in_dry_run() if dry_run else self.service.env
        return create_lease(env, caller, asked, self.naming())

    def change(self, lease_id: str, *, caller: Caller = TENANT, **change: Any) -> LeaseResult:
        """Change a lease; start and end in hours."""
        for edge in ("start", "end"):
            if edge in change:
                change[edge] = self.at(change[edge])
        return change_lease(
            self.service.env, caller, lease_id, LeaseChange(**change), None, self.naming()
        )

    def ensemble(
        self,
        vcpu: int = 1,
        members: int = 1,
        *,
        until: float | None = None,
        preemptible: bool = False,
        body: Mapping[str, Any] | None = None,
        caller: Caller = TENANT,
        **more: Any,
    ) -> EnsembleResult:
        """An ensemble that is placed and held."""
        end = None if until is None else self.at(until)
        ask = DecisionOptions(until=end, preemptible=preemptible, **more)
        written = read_ensemble(body or described(vcpu=vcpu, members=members))
        # A project has one ensemble of a name.
        description = replace(written, name=f"{written.name}-{next(self.numbers)}")
        return create_ensemble(self.service.env, caller, description, ask, self.naming())

    def server(
        self,
        vcpu: int,
        host: int = 0,
        *,
        until: float | None = None,
        preemptible: bool = False,
        priority: int = 0,
    ) -> str:
        """A server that runs on a host from now on."""
        uuid = named(next(self.numbers))
        owner = Consumer(uuid, "project-z", "zoe", "INSTANCE")
        if not preemptible:
            end = None if until is None else self.at(until)
            change = ReplaceAllocations(owner, {self.hosts[host]: {"VCPU": vcpu}}, None, until=end)
            self.service.store.commit(Changeset((change,)))
            return uuid
        member = Consumer(named(next(self.numbers)), "project-z", "zoe", "INSTANCE")
        booking = Booking(
            member.uuid,
            self.hosts[host],
            {"VCPU": vcpu},
            Period(self.now, FOREVER if until is None else self.at(until)),
            BookingState.HELD,
            preemptible=True,
            priority=priority,
        )
        put = PutBookings(member, (booking,))
        self.service.store.commit(Changeset((put,)))
        self.service.store.commit(Changeset((SwapHold(member.uuid, owner),)))
        return uuid

    def booking(self, consumer: str) -> Booking:
        """The consumer's only booking."""
        ((_, found),) = self.service.store.bookings(consumer=consumer)
        return found

    def host_of(self, granted: LeaseResult, member: int = 0) -> str:
        """The host of the lease's n-th member."""
        return sorted(granted.decision.places.items())[member][1].host

    def begin(self, lease_id: str) -> None:
        """Let the lease be active, as the worker does at its start."""
        lease = self.service.store.lease(lease_id)
        state = lease.state
        for step in (LeaseStep.PREPARE, LeaseStep.ACTIVATE):
            state = lease_after(state, step)
        assert state is LeaseState.ACTIVE
        self.service.store.commit(
            Changeset((PutLease(replace(lease, state=state), lease.generation),))
        )


@dataclass
class Overtaken:
    """A store; before the next commit on it somebody else does something."""

    store: Any
    meanwhile: Callable[[], object] | None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def commit(self, changeset: Changeset) -> Any:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return self.store.commit(changeset)


def build(*vcpu: int, limits: Limits | None = None) -> World:
    """A world of hosts with so many VCPU each; whoever builds it closes its service."""
    service = Service(limits=limits)
    hosts = [named(number) for number in range(len(vcpu))]
    for number, (uuid, amount) in enumerate(zip(hosts, vcpu, strict=True)):
        changes = (
            CreateProvider(uuid, f"h{number}"),
            PutInventories(uuid, (Inventory("VCPU", amount),), None),
        )
        service.store.commit(Changeset(changes))
    return World(service, hosts)


@pytest.fixture
def world() -> Iterator[Callable[..., World]]:
    """Makes worlds."""
    made: list[World] = []

    def make(*vcpu: int, limits: Limits | None = None) -> World:
        made.append(build(*vcpu, limits=limits))
        return made[-1]

    yield make
    for one in made:
        one.service.close()
