"""Steps through the native use cases: leases, ensembles, claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.scenarios.schedules.step import NOTHING, chosen, rounded

from moorage.domain.decisions import ClaimState, DecisionState
from moorage.domain.describe import read_ensemble
from moorage.domain.errors import (
    Conflict,
    HoldExpired,
    Infeasible,
    InUse,
    InvalidDescription,
    LimitExceeded,
    WrongState,
)
from moorage.domain.leases import LeadTooLong, LeaseState, Terms
from moorage.domain.period import HOUR, Period
from moorage.testing.service import TENANT
from moorage.usecases.claims.claim import SecondDescription, claim
from moorage.usecases.claims.hold import release
from moorage.usecases.claims.outcome import activate, fail
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.ensembles.delete import delete_ensemble
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.change import change_lease
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.requests import LeaseChange, LeaseRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.scenarios.schedules.months import Months

    from moorage.domain.decisions import Claim as Claiming
    from moorage.domain.decisions import Decision
    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.leases import Yielding
    from moorage.domain.period import Duration

ACTIONS: Final[tuple[Mapping[str, tuple[str, ...]], ...]] = (
    {},
    {},
    {"on_start": ("notify", "notify:PT1H"), "before_end": ("notify",), "on_end": ("hook:save",)},
    {"before_end": ("delete:PT10M",)},
    {"before_end": ("release:PT30M", "notify:PT1M")},
)
CHANGES: Final = ("extend", "shrink", "grow", "fewer", "move", "rename")


def described(
    here: Months, vcpu: int, memory: int, members: int, *, apart: bool = False
) -> EnsembleDescription:
    """Some equal servers."""
    policies = [{"name": "apart", "type": "anti-affinity", "members": ["*"]}] if apart else []
    amounts = {"VCPU": vcpu, "MEMORY_MB": memory}
    role: dict[str, Any] = {"name": "web", "count": members, "resources": amounts}
    return read_ensemble({"name": f"e{here.name()}", "members": [role], "policies": policies})


@dataclass(frozen=True)
class Grant:
    """A lease is asked for."""

    ahead: Duration
    length: Duration
    rounding: Duration
    vcpu: int
    memory: int
    members: int
    apart: bool
    lead: Duration
    cleaning: Duration
    expiry: Duration | None
    actions: Mapping[str, tuple[str, ...]]
    before: frozenset[Yielding]

    def do(self, here: Months) -> str:
        """See `Step`."""
        start = rounded(here.now + self.ahead, self.rounding) if self.ahead else here.now
        end = rounded(start + self.length, self.rounding)
        expiry = None if self.expiry is None else max(self.expiry, 1)
        terms = Terms(
            Period(start, end),
            self.lead,
            self.cleaning,
            expiry if expiry is not None and expiry < end - start else None,
            before_start=self.before,
        )
        description = described(here, self.vcpu, self.memory, self.members, apart=self.apart)
        asked = LeaseRequest("l", terms, description=description, actions=self.actions)
        try:
            create_lease(here.env, TENANT, asked, here.naming())
        except Infeasible:
            return "refused"
        except LeadTooLong:
            return "too long a lead"
        return "granted"


@dataclass(frozen=True)
class Change:
    """A lease is to be another."""

    which: int
    what: str
    span: Duration
    rounding: Duration

    def do(self, here: Months) -> str:
        """See `Step`."""
        lease = chosen(here.leases(), self.which)
        if lease is None:
            return NOTHING
        period = lease.terms.period
        (role,) = here.store.ensemble(lease.ensemble_id).roles
        members = here.store.ensemble(lease.ensemble_id).count(role.name)
        start = rounded(here.now + self.span, self.rounding)
        shorter = max(rounded(period.start + 1, self.rounding), period.end - self.span)
        change = {
            "extend": LeaseChange(end=period.end + self.span),
            "shrink": LeaseChange(end=min(shorter, period.end)),
            "grow": LeaseChange(counts={role.name: members + 1}),
            "fewer": LeaseChange(counts={role.name: max(members - 1, 1)}),
            "move": LeaseChange(start=start, end=start + period.end - period.start),
            "rename": LeaseChange(name="other"),
        }[self.what]
        before = here.store.lease(lease.id)
        try:
            change_lease(here.env, TENANT, lease.id, change, None, here.naming())
        except (Infeasible, InUse, InvalidDescription, LimitExceeded, WrongState) as error:
            assert here.store.lease(lease.id) == before, "refused, and changed all the same"
            return f"{self.what}: {type(error).__name__}"
        return f"{self.what}: done"


@dataclass(frozen=True)
class Cancel:
    """A lease is given back."""

    which: int

    def do(self, here: Months) -> str:
        """See `Step`."""
        lease = chosen(here.leases(), self.which)
        if lease is None:
            return NOTHING
        try:
            cancel_lease(here.env, TENANT, lease.id)
        except WrongState:
            assert lease.state is LeaseState.ENDING
            return "too late"
        return f"done while {lease.state}"


@dataclass(frozen=True)
class Place:
    """An ensemble runs from now on: open-ended, bounded, preemptible."""

    vcpu: int
    memory: int
    members: int
    ends: Duration | None
    rounding: Duration
    preemptible: bool

    def do(self, here: Months) -> str:
        """See `Step`."""
        until = None if self.ends is None else rounded(here.now + self.ends, self.rounding)
        if until == here.now:
            until = here.now + HOUR
        ask = DecisionOptions(until=until, preemptible=self.preemptible)
        description = described(here, self.vcpu, self.memory, self.members)
        try:
            create_ensemble(here.env, TENANT, description, ask, here.naming())
        except Infeasible:
            return "refused"
        return "placed"


@dataclass(frozen=True)
class Claim:
    """A place of a held decision, or of a lease, is claimed."""

    which: int
    lifetime: Duration

    def do(self, here: Months) -> str:
        """See `Step`."""
        held = [
            one
            for one in here.store.decisions(project_id=None)
            if one.state_at(here.now) is DecisionState.HELD
        ]
        decision = chosen(held, self.which)
        if decision is None:
            return NOTHING
        ensemble = here.store.ensemble(decision.ensemble_id)
        member_places = locate_members(here.store.snapshot(), ensemble)
        free = [
            one.name for one in ensemble.members if member_places.of(one.name) is MemberStatus.HELD
        ]
        if not free:
            return "all taken"
        server = {"resources": dict(ensemble.roles[0].resources)}
        second = SecondDescription(free[0], server, self.lifetime)
        try:
            claim(here.env, TENANT, decision.id, second, here.naming())
        except WrongState:
            lease = None if decision.lease_id is None else here.store.lease(decision.lease_id)
            assert lease is not None, "a held place cannot be claimed"
            if lease.missing:
                return "degraded"
            assert not lease.claimable(here.now), "a lease is active, and its place is not given"
            return "not begun"
        return "claimed"


def _building(here: Months) -> list[tuple[Decision, Claiming]]:
    return [
        (decision, one)
        for decision in here.store.decisions(project_id=None)
        for one in here.store.claims(decision_id=decision.id)
        if one.state is ClaimState.BUILDING
    ]


@dataclass(frozen=True)
class Finish:
    """A server that is being built is there, or has failed."""

    which: int
    good: bool

    def do(self, here: Months) -> str:
        """See `Step`."""
        found = chosen(_building(here), self.which)
        if found is None:
            return NOTHING
        _, one = found
        ensemble = here.store.ensemble(one.ensemble_id)
        member = next(m for m in ensemble.members if m.name == one.member)
        try:
            if not self.good:
                fail(here.env, TENANT, one.id)
                return "failed"
            place = [b for _, b in here.store.bookings(consumer=member.uuid)]
            server = here.name()
            activate(here.env, TENANT, one.id, server)
        except (HoldExpired, WrongState):
            return "too late"
        here.servers[server] = {b.provider: b.amounts for b in place}
        return "built"


@dataclass(frozen=True)
class Release:
    """Places of a decision that nobody claimed are given back."""

    which: int

    def do(self, here: Months) -> str:
        """See `Step`."""
        decision = chosen(here.store.decisions(project_id=None), self.which)
        if decision is None:
            return NOTHING
        try:
            release(here.env, TENANT, decision.id, None)
        except Conflict as error:
            return type(error).__name__
        return "released"


@dataclass(frozen=True)
class Forget:
    """An ensemble is deleted; its servers stay."""

    which: int

    def do(self, here: Months) -> str:
        """See `Step`."""
        ensemble = chosen(here.store.ensembles(project_id=None), self.which)
        if ensemble is None:
            return NOTHING
        try:
            delete_ensemble(here.env, TENANT, ensemble.id, None)
        except InUse:
            return "leased"
        return "deleted"
