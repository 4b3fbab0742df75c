"""A cloud that lives through a month: its service, its users, and whoever ends servers.

Servers are created as Nova creates them, by candidates and a write, and their flavors say their
terms by classes; leases are asked of the use case behind `POST /v1/leases`. Time goes from tick to
tick, and at each the service's workers do what is due. Nothing depends on how fast this machine
is, but for searches that the solver gives up when their time is over.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import islice
from threading import Event
from typing import TYPE_CHECKING, Final, TypeAlias
from uuid import UUID

import numpy as np
from benchmarks.month.found import Found
from benchmarks.month.plan import HOST_VCPU, TICK, LeaseAsked, ServerAsked
from benchmarks.month.ways import POOL

from moorage.domain.changes import ReplaceAllocations
from moorage.domain.consumers import Consumer
from moorage.domain.describe import read_ensemble
from moorage.domain.effects import EffectKind, Lane
from moorage.domain.errors import CapacityExceeded, Infeasible
from moorage.domain.leases import Terms, reservation_class
from moorage.domain.period import DAY, HOUR, MINUTE, SECOND, Period
from moorage.domain.requests import RequestGroup
from moorage.domain.virtual_classes import HOURS, PREEMPTIBLE
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.candidates.query import CandidateQuery
from moorage.engine.state.bounded_view import with_period
from moorage.testing.service import TENANT, Service
from moorage.usecases.claims.outcome import expire
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.effect_dispatch import Message, OutwardActions, carry_out, postpone
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.lease_sweeper import LeaseSweeper
from moorage.usecases.leases.requests import LeaseRequest
from moorage.usecases.ledger.allocations import allocate, release
from moorage.usecases.ledger.candidate_rules import search_for, with_rules
from moorage.usecases.shared.allocation_write import Lifetimes, WriteSettings
from moorage.usecases.shared.candidate_search import CandidateRequest
from moorage.usecases.shared.limits import Limits
from moorage.workers import effects
from moorage.workers.expiry import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from benchmarks.month.plan import Month
    from benchmarks.month.ways import Way

    from moorage.domain.effects import Effect
    from moorage.domain.period import Instant
    from moorage.domain.resources import Amounts
    from moorage.engine.candidates.enumerate import Candidate
    from moorage.engine.state.snapshot import Snapshot

WARM_UP: Final = 4 * DAY
"""Not looked at: until then there are fewer leases than later, as none began before the month."""
RETRY: Final = HOUR
PATIENCE: Final = DAY
"""Whoever gets no server asks again every hour, and gives up after a day."""
RUNS: Final = (28 * DAY, 7 * DAY, DAY, 4 * HOUR)
"""A preemptible server is put where it can stay so long, as `moorage ensemble create` does it."""
CANDIDATES: Final = 3
RACK: Final = 25
_ROUNDS: Final = 50
_LOOKS: Final = 30 * MINUTE
"""How often the service looks for better places of leases that begin soon; deployed it is oftener.
"""
_READING: Final = 0.001
"""Seconds that the stopwatch moves on whenever somebody looks at it."""


@dataclass(slots=True)
class Server:
    """One that runs."""

    vcpu: int
    leased: bool
    asked: ServerAsked | None = None
    since: Instant = 0


@dataclass
class Refused:
    """What found no host as the ledger is: neither does what is to stay as long or longer.

    Everybody who waits asks again and again, most of them for what has just been refused.
    """

    seen: tuple[int, Instant] = (-1, 0)
    hours: dict[tuple[tuple[str, int], ...], int] = field(default_factory=dict)
    """What was asked for -> for how many hours, the least that was refused."""

    def knows(self, snapshot: Snapshot, wants: Amounts) -> bool:
        """Whether this is known to find no host."""
        if self.seen != (snapshot.revision, snapshot.taken_at):
            return False
        least = self.hours.get(self._of(wants))
        return least is not None and wants.get(HOURS, 0) >= least

    def note(self, snapshot: Snapshot, wants: Amounts) -> None:
        """It has found none."""
        if self.seen != (snapshot.revision, snapshot.taken_at):
            self.seen, self.hours = (snapshot.revision, snapshot.taken_at), {}
        least = self.hours.get(self._of(wants), wants.get(HOURS, 0))
        self.hours[self._of(wants)] = min(least, wants.get(HOURS, 0))

    def _of(self, wants: Amounts) -> tuple[tuple[str, int], ...]:
        return tuple(one for one in wants.items() if one[0] != HOURS)


Happening: TypeAlias = "tuple[Instant, int, Callable[..., None], tuple[object, ...]]"
"""When, in which order, which of a world's methods, and with what."""


@dataclass
class Work:
    """The use cases of effects, for the workers."""

    world: World

    def carry_out(self, effect: Effect) -> object:
        """See `CarryOut`."""
        return carry_out(self.world.env, self.world.outside, effect)

    def postpone(self, effect: Effect, problem: str) -> None:
        """See `CarryOut`."""
        self.world.found.counts[f"effects put off: {effect.kind}"] += 1
        postpone(self.world.env, self.world.outside, effect, problem)


@dataclass
class World:
    """One cloud in one way."""

    month: Month
    way: Way
    database: str
    fleet: str
    """The fleet as a file; nothing where the database has it."""
    found: Found = field(default_factory=Found)

    def __post_init__(self) -> None:
        limits = Limits(explanation_budget=1, time_limit=2 * SECOND)
        self.service = Service(self.fleet, limits=limits, database=self.database)
        self.readings = 0
        # What rests for a while in vain rests by the month's time, and is looked for again.
        self.env = replace(self.service.env, stopwatch=self._stopwatch)
        self.begin = self.now = self.service.clock.now()
        self.outside = OutwardActions(tell=self._hear, end=self._end, hook=self._hear)
        self.work = Work(self)
        self.lookout = LeaseSweeper(self.env)
        self.lifetimes = Lifetimes(notice=limits.notice)
        self.servers: dict[str, Server] = {}
        self.waiting: dict[int, ServerAsked] = {}
        """Who got no server and will ask again, by number."""
        self.since: dict[int, Instant] = {}
        """Since when those ask whose servers were ended, by number."""
        self.levels = {True: 0, False: 0}
        """VCPU in use: by leased servers, by others."""
        self.numbers = 0
        self.queue: list[Happening] = []
        self._queries: dict[tuple[tuple[str, int], ...], CandidateQuery] = {}
        self._refused = Refused()

    # --- what happens ---------------------------------------------------------------------------

    def start(self) -> None:
        """Get to know what will be asked for."""
        for lease in self.month.leases:
            self._at(self.begin + lease.at, World._grant, lease)
        for server in self.month.servers:
            self._at(self.begin + server.at, World._boot, server)

    @property
    def day(self) -> int:
        """How many days are over."""
        return (self.now - self.begin) // DAY

    def live(self) -> Iterator[int]:
        """From where it stands to the month's end; yields with every day that is over."""
        while self.now < self.begin + self.month.days * DAY:
            self.service.clock.set(self.now)
            self._rest()
            while self.queue and self.queue[0][0] <= self.now:
                _, _, what, of = heappop(self.queue)
                what(self, *of)
            if self.now - self.begin >= WARM_UP:
                self._measure(self.now)
            self.now += TICK
            if (self.now - self.begin) % DAY == 0:
                yield self.day

    def _at(self, instant: Instant, what: Callable[..., None], *of: object) -> None:
        heappush(self.queue, (instant, self._number(), what, of))

    def _grant(self, asked: LeaseAsked) -> None:
        period = Period(self.begin + asked.start, self.begin + asked.end)
        terms = Terms(period, before_start=self.way.before_start)
        role: dict[str, object] = {
            "name": "s",
            "count": asked.members,
            "resources": {"VCPU": asked.vcpu},
        }
        if self.way.pool:
            role["required"] = [POOL]
        policies = [{"name": "apart", "type": "anti-affinity", "members": ["s"]}]
        described = read_ensemble(
            {"name": self._name(), "members": [role], "policies": policies if asked.apart else []}
        )
        ask = LeaseRequest("lease", terms, description=described)
        weight = asked.members * asked.vcpu * (asked.end - asked.start) / HOUR
        self.found.counts["lease hours asked for"] += round(weight)
        name = self._name()
        try:
            lease = create_lease(self.env, TENANT, ask, RequestIdentity(name, digest=name)).lease
        except Infeasible:
            self.found.counts["leases refused"] += 1
            return
        self.found.counts["leases granted"] += 1
        self.found.counts["lease hours granted"] += round(weight)
        (reservation,) = lease.reservations
        self._at(period.start, World._draw, reservation_class(reservation.id), asked)

    def _draw(self, place: str, asked: LeaseAsked) -> None:
        """The owner of a lease creates its servers the instant it starts, all of them."""
        wants = {"VCPU": asked.vcpu, place: 1}
        drawn = sum(self._create(wants, leased=True) is not None for _ in range(asked.members))
        self.found.counts["leases started"] += 1
        self.found.counts["leases late"] += drawn < asked.members

    def _boot(self, asked: ServerAsked) -> None:
        wants = {"VCPU": asked.vcpu}
        if asked.preemptible and self.way.preempts:
            wants[PREEMPTIBLE] = 1
        else:
            wants[HOURS] = asked.hours
        name, now = self._create(wants, leased=False), self.service.clock.now()
        self.waiting.pop(asked.number, None)
        kind = "preemptible" if asked.preemptible else "bounded"
        if name is not None:
            self.found.counts[f"{kind} servers created"] += 1
            self.servers[name].asked = asked
            self._at(now + asked.life, World._finish, name)
        elif now + RETRY <= self.since.get(asked.number, self.begin + asked.at) + PATIENCE:
            self.waiting[asked.number] = asked
            self._at(now + RETRY, World._boot, asked)
        else:
            self.found.counts[f"{kind} servers refused"] += 1

    def _finish(self, name: str) -> None:
        """The owner is done with a server, unless it was ended before."""
        if name in self.servers:
            self._delete(name)

    # --- as Nova does it ------------------------------------------------------------------------

    def _create(self, wants: Amounts, *, leased: bool) -> str | None:
        """A new server's name, or None where no host is found."""
        query = self._query(tuple(wants.items()), leased=leased)
        snapshot = self.service.store.snapshot()
        if self._refused.knows(snapshot, wants):
            return None
        for allocations in self._offered(snapshot, query):
            name = self._name()
            owner = Consumer(name, TENANT.project_id, "ann", "INSTANCE")
            write = ReplaceAllocations(owner, allocations, None)
            try:
                allocate(
                    self.service.store,
                    [write],
                    ids=self.env.ids,
                    settings=WriteSettings(self.lifetimes),
                )
            except CapacityExceeded:  # preemptible, and a lease is too near to yield to it
                continue
            self.servers[name] = Server(wants["VCPU"], leased, since=self.service.clock.now())
            self.levels[leased] += wants["VCPU"]
            return name
        self._refused.note(snapshot, wants)
        return None

    def _query(self, wants: tuple[tuple[str, int], ...], *, leased: bool) -> CandidateQuery:
        """The question of a flavor: the same value each time, as a service keeps it too."""
        forbidden = frozenset({POOL}) if self.way.pool and not leased else frozenset[str]()
        made = CandidateQuery((RequestGroup("", dict(wants)),), root_forbidden=forbidden)
        return self._queries.setdefault(wants, made)

    def _offered(self, snapshot: Snapshot, query: CandidateQuery) -> list[Mapping[str, Amounts]]:
        asked = CandidateRequest(self.service.store, WriteSettings(self.lifetimes), query)
        search = search_for(with_rules(asked), snapshot)
        if search.kept is not None:
            return _first(search.snapshot, search.kept)
        seen, query = search.fleet, search.query
        if any(PREEMPTIBLE in group.resources for group in query.groups):
            for run in RUNS:
                period = Period(snapshot.taken_at, snapshot.taken_at + run)
                for_long = with_period(seen, ["VCPU"], period)
                if found := _first(for_long, candidates(for_long, query)):
                    return found
        return _first(seen, candidates(seen, query))

    def _delete(self, name: str) -> Server:
        release(self.service.store, name)
        gone = self.servers.pop(name)
        self.levels[gone.leased] -= gone.vcpu
        return gone

    # --- outside --------------------------------------------------------------------------------

    def _hear(self, message: Message) -> str:
        if message.body["kind"] == EffectKind.WARN:
            self.found.counts["warnings"] += 1
        return "heard"

    def _end(self, message: Message) -> str:
        """Whoever ends servers."""
        if message.subject not in self.servers:
            return "gone"
        gone = self._delete(message.subject)
        if gone.asked is not None:
            self._end_early(gone, gone.asked)
        return "ended"

    def _end_early(self, gone: Server, asked: ServerAsked) -> None:
        """What a server has done is lost; its owner asks for it again, to do it from the start."""
        now = self.service.clock.now()
        self.found.counts["servers ended for a lease"] += 1
        if now - self.begin >= WARM_UP:
            self.found.lost += gone.vcpu * (now - gone.since) / HOUR
        self.since[asked.number] = now
        self._at(now + TICK, World._boot, asked)

    # --- the service's workers ------------------------------------------------------------------

    def _rest(self) -> None:
        """Let every worker have its turn until none has anything to do."""
        store = self.service.store
        while (self.now - self.begin) % _LOOKS == 0 and self.lookout.run_round():
            pass
        for _ in range(_ROUNDS):
            before = store.snapshot().revision
            sweep(store, lambda due: expire(self.env, due))
            for lane in Lane:
                while effects.once(store, self.work, lane, stop=Event()).due:
                    pass
            if store.snapshot().revision == before:
                return
        raise RuntimeError("the workers do not come to rest")

    # --- looking --------------------------------------------------------------------------------

    def _measure(self, now: Instant) -> None:
        capacity = self.month.hosts * HOST_VCPU
        leased, loose = self.levels[True], self.levels[False]
        self.found.pass_by(TICK, capacity, leased, loose)
        if (now - self.begin) % HOUR == 0:
            aside = self._set_aside()
            self.found.set_aside += aside
            self.found.hours.append((leased / capacity, loose / capacity, aside / capacity))

    def _set_aside(self) -> int:
        """VCPU that are idle although somebody waits for them: what is kept for leases.

        Whoever waits is put where there is room just now, the largest first, whatever the room
        is promised to.
        """
        columns = self.service.store.snapshot().classes["VCPU"]
        free = columns.capacity - columns.used
        kept = 0
        wanted = Counter(one.vcpu for one in self.waiting.values())
        for size, number in sorted(wanted.items(), reverse=True):
            fit = free // size
            before = np.cumsum(fit) - fit
            given = np.clip(number - before, 0, fit)
            free = free - given * size
            kept += int(given.sum()) * size
        return kept

    def _name(self) -> str:
        return str(UUID(int=self._number(), version=4))

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    def _stopwatch(self) -> float:
        self.readings += 1
        return self.service.clock.now() / SECOND + self.readings * _READING

    def line(self) -> str:
        """How it stands, in a line."""
        capacity = self.month.hosts * HOST_VCPU
        used = sum(self.levels.values()) / capacity
        counts = self.found.counts
        return (
            f"{used:.0%} used, {counts['leases granted']:,} leases granted,"
            f" {counts['leases late']} late,"
            f" {counts['servers ended for a lease']:,} servers ended for one"
        )


def _first(seen: Snapshot, some: Iterable[Candidate]) -> list[Mapping[str, Amounts]]:
    return [
        {seen.uuids[row]: of for row, of in one.allocations} for one in islice(some, CANDIDATES)
    ]


def fleet(month: Month, way: Way) -> str:
    """The fleet as a file."""
    racks = max(1, month.hosts // RACK)
    pool = round(way.pool * month.hosts)
    parts = [("p", pool, f"traits: [{POOL}]"), ("h", month.hosts - pool, "traits: []")]
    hosts = "".join(
        f"""
  - name: "{letter}{{n}}"
    count: {number}
    inventories: {{VCPU: {HOST_VCPU}}}
    {traits}
    place: {{location: {{name: "r{{n}}", count: {racks}}}}}"""
        for letter, number, traits in parts
        if number
    )
    return f"""
fleet: month
topology:
  location:
    levels: [rack]
    domains: [{{name: "r{{n}}", count: {racks}, level: rack}}]
hosts:{hosts}
"""
