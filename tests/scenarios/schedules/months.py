"""A small cloud whose clock goes from one event to the next, through the service's own workers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from random import Random
from threading import Event
from typing import TYPE_CHECKING
from uuid import UUID

from tests.scenarios.schedules.watched import Watched, everything

from moorage.domain.changes import Changeset, CreateProvider, PutInventories
from moorage.domain.effects import Lane
from moorage.domain.leases import LeaseState
from moorage.domain.period import LATEST
from moorage.domain.providers import Inventory
from moorage.testing.service import Service
from moorage.usecases.claims.outcome import expire
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.effect_dispatch import Message, OutwardActions, OutwardFailure, carry_out
from moorage.usecases.leases.lease_sweeper import LeaseSweeper
from moorage.usecases.ledger.allocations import release
from moorage.usecases.shared.allocation_write import Lifetimes
from moorage.workers import effects
from moorage.workers.expiry import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.scenarios.schedules.plan import Host

    from moorage.domain.effects import Effect
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant
    from moorage.domain.resources import Amounts
    from moorage.usecases.environment import UseCaseEnvironment

ROUNDS = 50
"""After so many the workers should long have come to rest."""


@dataclass
class Work:
    """The use cases of effects. What fails inside fails the test."""

    env: UseCaseEnvironment
    outside: OutwardActions

    def carry_out(self, effect: Effect) -> object:
        """See `CarryOut`."""
        return carry_out(self.env, self.outside, effect)

    def postpone(self, effect: Effect, problem: str) -> None:
        """See `CarryOut`; called while the failure is handled."""
        raise AssertionError(f"{effect.kind} of {effect.subject} failed: {problem}")


@dataclass
class Months:
    """Hosts, who runs on them as was acknowledged, and who ends servers when they are to end."""

    seed: int
    hosts: tuple[Host, ...]
    lifetime: Duration | None = None
    service: Service = field(default_factory=Service)
    servers: dict[str, Mapping[str, Amounts]] = field(default_factory=dict)
    """Server -> its allocations. All that the ledger should have, and nothing else."""
    heard: list[tuple[Instant, Message]] = field(default_factory=list)
    disabled: set[str] = field(default_factory=set)
    away_until: Instant = 0
    """Nobody ends servers before."""
    disturbed: bool = False
    """Whether capacity was lost, or who ends servers was away, or time went back."""
    latest: Instant = 0
    told: Counter[str] = field(default_factory=Counter)
    """Steps by what came of them."""

    def __post_init__(self) -> None:
        self.dice = Random(self.seed)
        self.numbers = count(1)
        self.store = Watched(self.service.store)
        # A ledger in all that is asked of it; `Watched` hands everything on.
        limits = replace(self.service.env.limits, grace=self.service.env.limits.notice)
        self.env = replace(self.service.env, store=self.store, limits=limits)
        self.lifetimes = Lifetimes(self.lifetime, notice=self.env.limits.notice)
        self.names = [self.name() for _ in self.hosts]
        for number, (uuid, host) in enumerate(zip(self.names, self.hosts, strict=True)):
            self.store.commit(Changeset((CreateProvider(uuid, f"h{number}"),)))
            self.stock(number, host.vcpu)
        self._lookout = LeaseSweeper(self.env)
        outside = OutwardActions(tell=self._hear, end=self._end, hook=self._hear)
        self._work = Work(self.env, outside)

    def stock(self, number: int, vcpu: int) -> None:
        """Give a host so many VCPU."""
        uuid, host = self.names[number], self.hosts[number]
        self.store.room[uuid, "VCPU"] = int(vcpu * host.ratio)
        self.store.room[uuid, "MEMORY_MB"] = host.memory
        stock = (
            Inventory("VCPU", vcpu, allocation_ratio=host.ratio),
            Inventory("MEMORY_MB", host.memory + 1, reserved=1),
        )
        self.store.commit(Changeset((PutInventories(uuid, stock, None),)))

    @property
    def now(self) -> Instant:
        """The present instant."""
        return self.service.clock.now()

    def name(self) -> str:
        """A new UUID, the same in each run."""
        return str(UUID(int=next(self.numbers), version=4))

    def naming(self) -> RequestIdentity:
        """For a new thing."""
        name = self.name()
        return RequestIdentity(name, digest=name)

    def leases(self, *states: LeaseState) -> list[Lease]:
        """All leases in these states, or that are not closed."""
        wanted = states or tuple(one for one in LeaseState if one is not LeaseState.CLOSED)
        found = self.store.leases(project_id=None)
        return [one for one in found if one.state in wanted]

    # --- outside ------------------------------------------------------------------------------

    def _hear(self, message: Message) -> str:
        self.heard.append((self.now, message))
        return "heard"

    def _end(self, message: Message) -> str:
        """Whoever ends servers: at once, unless it is away."""
        if self.now < self.away_until:
            raise OutwardFailure("nobody is there")
        self.heard.append((self.now, message))
        self.delete(message.subject)
        return "ended"

    def delete(self, server: str) -> None:
        """A server goes, as Nova tells Placement."""
        release(self.store, server)
        del self.servers[server]

    # --- time ---------------------------------------------------------------------------------

    def go(self, duration: Duration, check: Callable[[Months], None]) -> None:
        """Let time go by, event by event; check at each when the workers have come to rest."""
        target = self.now + duration
        while self.now < target:
            self.service.clock.set(min([target, *self._events()]))
            self.latest = max(self.latest, self.now)
            self.rest()
            check(self)

    def _events(self) -> Iterator[Instant]:
        """Every instant ahead at which something is to happen."""
        now = self.now
        bookings = everything(self.store)
        for one in bookings:
            edges = (one.period.start, one.period.end, one.lapses_at)
            yield from (edge for edge in edges if edge > now)
        for lease in self.leases():
            terms = lease.terms
            first = (terms.occupied.start, terms.period.start, terms.expires_at)
            last = (terms.period.end, terms.occupied.end)
            yield from (edge for edge in (*first, *last) if edge > now)
        yield from (one.not_before for one in self.pending() if one.not_before > now)

    def pending(self) -> Sequence[Effect]:
        """Every effect that is not done yet: what will be due in the end of time."""
        now = self.now
        self.service.clock.set(LATEST)
        try:
            return self.service.store.due_effects(1000)
        finally:
            self.service.clock.set(now)

    def rest(self) -> None:
        """Let every worker have its turns, in any order, until none has anything to do."""
        turns: list[Callable[[], None]] = [
            self._sweep,
            self._look,
            *(partial(self._carry_out, lane) for lane in Lane),
        ]
        for _ in range(ROUNDS):
            before = self.store.commits
            self.dice.shuffle(turns)
            for turn in turns:
                turn()
            if self.store.commits == before:
                return
        raise AssertionError("the workers do not come to rest")

    def _sweep(self) -> None:
        def one(due: object) -> bool:
            return expire(self.env, due)  # type: ignore[arg-type]  # what `due` gives

        swept = sweep(self.store, one)
        assert not swept.failed

    def _look(self) -> None:
        while self._lookout.run_round():
            pass

    def _carry_out(self, lane: Lane) -> None:
        found = effects.once(self.store, self._work, lane, stop=Event())
        assert not found.failed
