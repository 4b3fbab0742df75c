"""A lease of some servers, as it is granted, and what Nova asks about it."""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.scenarios.nova.conftest import Cloud

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, PutLease
from moorage.domain.leases import Lease, LeaseState, Terms, reservation_class
from moorage.domain.period import HOUR, Duration, Period
from moorage.domain.requests import Objective
from moorage.service_environment import RandomIds, with_strategies
from moorage.solver.cpsat import CpSat
from moorage.solver.portfolio import Portfolio
from moorage.testing.service import TENANT
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.queries import Remaining, remaining
from moorage.usecases.leases.requests import LeaseRequest
from moorage.usecases.shared.environment import Environment
from moorage.usecases.shared.limits import Limits

XLARGE = {"DISK_GB": 160, "MEMORY_MB": 16384, "VCPU": 8}


@dataclass
class Leased:
    """A lease in a cloud."""

    cloud: Cloud
    id: str

    @property
    def lease(self) -> Lease:
        return self.cloud.store.lease(self.id)

    @property
    def name(self) -> str:
        """The class of its one reservation."""
        return reservation_class(self.lease.reservations[0].id)

    @property
    def wants(self) -> dict[str, int]:
        """What the private flavor of the reservation asks for."""
        return {**XLARGE, self.name: 1}

    @property
    def left(self) -> Remaining:
        (found,) = remaining(self.cloud.store, self.lease)
        return found

    def put(self, **changes: Any) -> None:
        """Write the lease otherwise."""
        lease = self.lease
        self.cloud.store.commit(Changeset((PutLease(replace(lease, **changes), lease.generation),)))

    def hosts(self) -> dict[str, int]:
        """Host -> places of the reservation that are booked there for the lease."""
        found: dict[str, int] = {}
        for member in self.cloud.store.ensemble(self.lease.ensemble_id).members:
            for _, booking in self.cloud.store.bookings(consumer=member.uuid):
                assert booking.state is BookingState.RESERVED
                found[booking.provider] = found.get(booking.provider, 0) + 1
        return found

    def servers(self) -> list[str | None]:
        """The server of each member."""
        members = self.cloud.store.ensemble(self.lease.ensemble_id).members
        return [one.server_id for one in members]

    def candidates(self, amounts: Mapping[str, int] | None = None, **more: str) -> list[Any]:
        return self.cloud.nova.candidates(None, amounts or self.wants, **more)

    def boot(self, server: str | None = None, **how: Any) -> str:
        """A server in the lease, as Nova creates it."""
        server = server or str(uuid.uuid4())
        candidate = self.candidates()[0]
        answer = self.cloud.nova.claim_resources(server, candidate, **how)
        assert answer.status_code == 204, answer.text
        return server


def grant(
    cloud: Cloud,
    count: int = 3,
    *,
    start: Duration = 0,
    length: Duration = 10 * HOUR,
    state: LeaseState = LeaseState.ACTIVE,
    policies: list[Any] | None = None,
    members: list[Any] | None = None,
    emptiest: bool = False,
    **terms: Any,
) -> Leased:
    """A lease of so many m1.xlarge, on different hosts unless policies say otherwise.

    Or of these members.

    Args:
        cloud: where.
        count: places.
        start: from now.
        length: of its period.
        state: that it is in.
        policies: of the ensemble.
        members: of the ensemble.
        emptiest: whether they are placed on the emptiest hosts.
        terms: see `Terms`.
    """
    apart = [{"type": "anti-affinity", "members": ["db"], "level": "host"}]
    body = {
        "name": f"shop {uuid.uuid4()}",
        "members": members or [{"name": "db", "count": count, "flavor": "m1.xlarge"}],
        "policies": apart if policies is None else policies,
    }
    made = cloud.tenant.call("POST", "/ensembles", {"ensemble": body})
    now = cloud.clock.now()
    period = Period(now + start, now + start + length)
    asked = LeaseRequest(
        "next week",
        Terms(period, **terms),
        ensemble_id=made["ensemble"]["id"],
        objective=Objective.BALANCE if emptiest else Objective.SPREAD,
    )
    solver = Portfolio(CpSat())
    env = with_strategies(
        Environment(cloud.store, solver, RandomIds(), Limits(), time.monotonic, time.sleep)
    )
    granted = create_lease(env, TENANT, asked, RequestIdentity(str(uuid.uuid4())))
    leased = Leased(cloud, granted.lease.id)
    leased.put(state=state)
    return leased


@pytest.fixture
def leased(cloud: Cloud) -> Leased:
    """Three places, and the rest of their hosts full."""
    found = grant(cloud)
    for host in found.hosts():
        cloud.nova.fill(host)
    return found
