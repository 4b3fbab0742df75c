"""Steps through Placement's use cases, of operators, and of time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from tests.scenarios.schedules.looking import check, room_over
from tests.scenarios.schedules.step import NOTHING, chosen
from tests.scenarios.schedules.watched import DISABLED

from moorage.domain.changes import Changeset, PutTraits, ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.errors import CapacityExceeded
from moorage.domain.leases import LeaseState, reservation_class
from moorage.domain.period import FOREVER, HOUR, Period
from moorage.domain.requests import RequestGroup
from moorage.domain.virtual_classes import HOURS, PREEMPTIBLE
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.candidates.query import CandidateQuery
from moorage.testing.service import TENANT
from moorage.usecases.leases.queries import remaining
from moorage.usecases.ledger.allocations import allocate
from moorage.usecases.ledger.candidate_rules import search_for, with_rules
from moorage.usecases.shared.allocation_write import WriteSettings
from moorage.usecases.shared.candidate_search import CandidateRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.scenarios.schedules.months import Months

    from moorage.domain.period import Duration
    from moorage.domain.resources import Amounts

_MANY: Final = 50


def offered(here: Months, amounts: Amounts) -> list[Mapping[str, Amounts]]:
    """What a scheduler is shown for a flavor: provider -> amounts, candidate by candidate."""
    query = CandidateQuery((RequestGroup("", amounts),), root_forbidden=frozenset({DISABLED}))
    asked = CandidateRequest(here.store, WriteSettings(here.lifetimes), query)
    search = search_for(with_rules(asked), here.store.snapshot())
    seen = search.snapshot
    kept = search.kept
    every = candidates(search.fleet, search.query) if kept is None else kept
    found = islice(every, _MANY)
    return [{seen.uuids[row]: of for row, of in one.allocations} for one in found]


def write(
    here: Months, server: str, allocations: Mapping[str, Amounts], generation: int | None = None
) -> None:
    """What a scheduler then writes."""
    owner = Consumer(server, TENANT.project_id, "ann", "INSTANCE")
    change = ReplaceAllocations(owner, allocations, generation)
    allocate(here.store, [change], ids=here.env.ids, settings=WriteSettings(here.lifetimes))
    here.servers[server] = real(allocations)


def real(allocations: Mapping[str, Amounts]) -> dict[str, Amounts]:
    """Without the classes that nobody has."""
    return {
        provider: {name: one for name, one in of.items() if not name.startswith("CUSTOM_")}
        for provider, of in allocations.items()
    }


@dataclass(frozen=True)
class Boot:
    """A server is created as Nova does."""

    vcpu: int
    memory: int
    hours: int | None
    preemptible: bool
    pick: int

    def do(self, here: Months) -> str:
        """See `Step`."""
        amounts = {"VCPU": self.vcpu, "MEMORY_MB": self.memory}
        wants = dict(amounts)
        if self.hours is not None:
            wants[HOURS] = self.hours
        if self.preemptible:
            wants[PREEMPTIBLE] = 1
        life = here.lifetime if self.hours is None else self.hours * HOUR
        stay = Period(here.now, FOREVER if life is None else here.now + life)
        found = offered(here, wants)
        if not self.preemptible:
            shown = {provider for one in found for provider in one}
            free = room_over(here, amounts, stay)
            assert shown <= free, "what is offered is not free"
            assert shown == free, "what is free is not offered"
        allocations = chosen(found, self.pick)
        if allocations is None:
            return "no host"
        try:
            write(here, here.name(), allocations)
        except CapacityExceeded:
            assert self.preemptible, "what was offered is refused"
            return "does not yield in time"
        return "preemptible" if self.preemptible else "open" if life is None else "bounded"


@dataclass(frozen=True)
class Draw:
    """A server is created in a lease, by its class."""

    which: int
    pick: int

    def do(self, here: Months) -> str:
        """See `Step`."""
        active = [one for one in here.leases(LeaseState.ACTIVE) if one.claimable(here.now)]
        lease = chosen(active, self.which)
        if lease is None:
            return NOTHING
        (left,) = remaining(here.store, lease)
        (reservation,) = lease.reservations
        amounts = dict(here.store.ensemble(lease.ensemble_id).roles[0].resources)
        amounts[reservation_class(reservation.id)] = 1
        found = offered(here, amounts)
        allocations = chosen(found, self.pick)
        if allocations is None:
            assert here.disturbed or not left.remaining, "a promised place is not shown"
            return "none left"
        write(here, here.name(), allocations)
        return "drawn"


@dataclass(frozen=True)
class Delete:
    """A server is deleted by its owner."""

    which: int

    def do(self, here: Months) -> str:
        """See `Step`."""
        server = chosen(sorted(here.servers), self.which)
        if server is None:
            return NOTHING
        here.delete(server)
        return "deleted"


@dataclass(frozen=True)
class Move:
    """A server migrates as Nova does it: what it has goes to the migration, then it gets others."""

    which: int
    pick: int
    back: bool

    def do(self, here: Months) -> str:
        """See `Step`."""
        free = [
            server
            for server in sorted(here.servers)
            if all(one.decision is None for _, one in here.store.bookings(consumer=server))
        ]
        server = chosen(free, self.which)
        if server is None:
            return NOTHING
        had, migration = here.servers[server], here.name()
        ends = {one.period.end for _, one in here.store.bookings(consumer=server)}
        self._hand_over(here, server, migration)
        amounts = dict(next(iter(had.values())))
        found = [one for one in offered(here, amounts) if one.keys() != had.keys()]
        allocations = chosen(found, self.pick)
        moved = False
        if allocations is not None:
            try:
                write(here, server, allocations)
                moved = True
            except CapacityExceeded:
                moved = False
        if moved and not self.back:
            here.delete(migration)
            return "moved"
        if moved:
            here.delete(server)
        self._hand_over(here, migration, server)
        kept = {one.period.end for _, one in here.store.bookings(consumer=server)}
        assert kept == ends, "a migration that came to nothing has changed the end"
        return "reverted" if moved else "nowhere to go"

    def _hand_over(self, here: Months, giver: str, taker: str) -> None:
        """What one has another gets."""
        found = here.store.consumer(giver)
        assert found is not None
        owner, bookings = found
        allocations = {one.provider: one.amounts for one in bookings}
        heir = Consumer(taker, owner.project_id, owner.user_id, owner.type)
        changes = [
            ReplaceAllocations(heir, allocations, None),
            ReplaceAllocations(owner, {}, owner.generation),
        ]
        allocate(here.store, changes, ids=here.env.ids, settings=WriteSettings(here.lifetimes))
        here.servers[taker] = here.servers.pop(giver)


# --- what befalls the cloud -----------------------------------------------------------------------


@dataclass(frozen=True)
class Resize:
    """A host loses VCPU, or gets some."""

    which: int
    vcpu: int

    def do(self, here: Months) -> str:
        """See `Step`."""
        number = self.which % len(here.names)
        here.disturbed = True
        here.stock(number, max(self.vcpu, 1))
        return "done"


@dataclass(frozen=True)
class Disable:
    """A host is disabled; one that is gets enabled."""

    which: int

    def do(self, here: Months) -> str:
        """See `Step`."""
        host = here.names[self.which % len(here.names)]
        here.disturbed = True
        here.disabled ^= {host}
        traits = frozenset({DISABLED}) if host in here.disabled else frozenset[str]()
        here.store.commit(Changeset((PutTraits(host, traits, None),)))
        return "disabled" if traits else "enabled"


@dataclass(frozen=True)
class Away:
    """Whoever ends servers is not there for some time."""

    span: Duration

    def do(self, here: Months) -> str:
        """See `Step`."""
        here.disturbed = True
        here.away_until = here.now + self.span
        return "done"


@dataclass(frozen=True)
class StepBack:
    """The clock is set back."""

    span: Duration

    def do(self, here: Months) -> str:
        """See `Step`."""
        here.disturbed = True
        here.service.clock.set(here.now - self.span)
        return "done"


@dataclass(frozen=True)
class Wait:
    """Time goes by."""

    span: Duration

    def do(self, here: Months) -> str:
        """See `Step`."""
        here.go(self.span, check)
        return "done"
