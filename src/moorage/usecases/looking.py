"""Looking for an answer: the ways to look, those that ask less of others first.

A decision is looked for as the ensemble asks. Where that gives nothing, a lease is looked for as if
preemptible users were not there, who then end early for it; a preemptible ensemble is looked for
where it can stay a while, until somebody's lease needs the place; and last, leases that have not
started are moved, first out of the way of members that stay where they are, if there are any.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Busy, InvalidDescription, ProviderConflict
from moorage.domain.period import DAY, FOREVER, HOUR, SECOND, Period
from moorage.engine.build import state
from moorage.engine.overlay import exchanged, worsens
from moorage.engine.terrain import survey
from moorage.usecases.closed import closed_hosts
from moorage.usecases.joint import find, request_for, standing_answer, still_holds
from moorage.usecases.kept import stranger_of
from moorage.usecases.leases.replan import replanned
from moorage.usecases.leases.solitude import by_end, closed_at_first, ending_alone, solitudes
from moorage.usecases.leases.sparing import sparing
from moorage.usecases.leases.yielding import (
    NoLease,
    aside,
    displaceable,
    displaced,
    ending,
    last_end,
    victims,
    wanted,
)
from moorage.usecases.standing import MemberStatus, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.domain.errors import CapacityExceeded, ConstraintViolated
    from moorage.domain.period import Duration, Instant
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.joint import Ask, Found
    from moorage.usecases.leases.asking import Displaced
    from moorage.usecases.leases.outrank import Preempted
    from moorage.usecases.leases.replan import Moved
    from moorage.usecases.leases.yielding import Candidate
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Ending, Promise, Proposal
    from moorage.usecases.standing import Standing

BUSY_HOST: Final = "contention"
"""Reason id of hosts that others are busy with; such hosts are only avoided, never refused."""

_RUNS: Final = (28 * DAY, 7 * DAY, DAY, 4 * HOUR)
"""How long a preemptible ensemble is looked for where it cannot stay throughout; then any time."""


_SPARING: Final = SECOND
"""How long hosts are looked for where nobody has to go, or few: the best are not proved."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to look for an answer."""

    anew: Callable[[Standing], frozenset[MemberName]]
    """See `Proposal.anew`."""
    displacing: bool = False
    """Whether preemptible users end early for it."""
    run: Duration | None = None
    """Time enough for a preemptible ensemble; None: all that it asks for."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What one round sees."""

    snapshot: Snapshot
    stand: Standing
    keepers: tuple[Ensemble, ...]
    """See `closed_hosts`."""


@dataclass(frozen=True, eq=False)
class Look:
    """What one way came to."""

    built: Built
    found: Found | None
    period: Period
    """When the places are kept, by the decision."""
    staying: Mapping[MemberName, tuple[Booking, ...]]
    """Members that stay put and are booked anew: their bookings afterwards."""
    endings: Mapping[MemberName, Ending] = field(default_factory=lambda: MappingProxyType({}))
    """Members placed now that cannot stay throughout."""
    displaced: tuple[Displaced, ...] = ()
    evicted: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Who is displaced, and the providers that each is booked on."""
    moved: tuple[Moved, ...] = ()
    """Leases that have not started and get other places for it."""
    preempted: tuple[Preempted, ...] = ()
    """Leases that give up their places for it; see `leases.outrank`."""
    clash: bool = False
    """Whether those who stay put cannot stay as long as is asked: nothing was looked for."""


class Looking:
    """Looks for answers to one proposal, round by round, and keeps what overtaken ones taught."""

    def __init__(self, parts: Parts, proposal: Proposal, ask: Ask, time_limit: Duration) -> None:
        self._parts = parts
        self._proposal = proposal
        self._ask = ask
        self._time_limit = time_limit
        self._busy: frozenset[str] = frozenset()
        self._ways = tuple(
            (way, _Search(parts, ask, time_limit, proposal.known))
            for way in _ways(proposal, ask, parts.limits.notice)
        )

    def look(self, sight: Sight, *, plainly: bool = False) -> Look:
        """The first answer that any way gives; or, without `found`, what was asked in vain.

        That is the first way whose problem has no answer, others being where they are; where
        nobody could be placed anew instead, those who cannot stay as long as is asked. With
        `plainly` nobody ends early or moves for it.
        """
        first: Look | None = None
        refused: Look | None = None
        whole: list[Look] = []
        for way, search in self._ways:
            if plainly and way.displacing:
                continue
            look = self._by(way, search, sight)
            if look.found is not None:
                return look
            first = first or look
            if not (way.displacing or way.run):
                whole.append(look)
                refused = refused or (None if look.clash else look)
        assert first is not None, "there is always a way to look"
        for look in [] if plainly else whole:
            moving = self._moving(look, sight)
            if moving.found is not None:
                return moving
        return refused or first

    def learn(
        self,
        overtaken: ProviderConflict | CapacityExceeded | ConstraintViolated,
        snapshot: Snapshot,
    ) -> None:
        """Note the host that somebody else was quicker on."""
        provider = (
            overtaken.subject if isinstance(overtaken, ProviderConflict) else overtaken.provider
        )
        row = snapshot.row_of.get(provider)
        if row is not None:
            self._busy |= {snapshot.uuids[int(snapshot.root[row])]}

    def _by(self, way: Way, search: _Search, sight: Sight) -> Look:
        period = _period(self._proposal.promise, self._ask, sight.snapshot.taken_at)
        request = _request(self._proposal, self._ask, sight.stand, way, period)
        if not way.displacing:
            return self._among(way, search, sight, period, request, {})
        snapshot, notice = sight.snapshot, self._parts.limits.notice
        candidates = displaceable(snapshot, request.period, notice, request.own_consumers)
        best = self._among(way, search, sight, period, request, candidates)
        # Where those of some priorities make room, they do together with more: found by halves.
        levels = sorted({one.priority for one in candidates.values()})
        while len(levels) > 1 and best.found is not None:
            half = len(levels) // 2
            few = {name: one for name, one in candidates.items() if one.priority < levels[half]}
            try:
                look = self._among(way, search, sight, period, request, few)
            except Busy:
                break
            best = best if look.found is None else look
            levels = levels[half:] if look.found is None else levels[:half]
        return best

    def _among(
        self,
        way: Way,
        search: _Search,
        sight: Sight,
        period: Period,
        request: EnsembleRequest,
        candidates: Mapping[str, Candidate],
    ) -> Look:
        """One way to look, with these as those who end early for it."""
        proposal = self._proposal
        staying = _staying(proposal, request, sight.stand, period)
        instead = _instead(staying, sight.stand)
        snapshot = sight.snapshot
        before = aside(snapshot, candidates.keys()) if candidates else snapshot
        view = exchanged(before, instead)
        closed = self._closed(sight, request.period, way.run)
        built = _built(request, view, way.run, {**proposal.barred, **closed})
        look = Look(built, None, period, staying)
        if instead and worsens(before, instead):
            return replace(look, clash=True)
        if way.displacing and not candidates:
            return look
        there = exchanged(snapshot, instead)
        spared = _spared(there, candidates)
        found = search.answer(built, self._busy, spared)
        if found is None:
            return look
        if way.run is not None:
            return self._until(look, found, view, sight.keepers)
        if not candidates:
            return replace(look, found=found)
        return self._displacing(look, found, there, candidates)

    def _closed(
        self, sight: Sight, stay: Period, run: Duration | None
    ) -> Mapping[str, frozenset[str]]:
        """Hosts on which nothing is placed; with `run` those that are for so long."""
        ensemble, snapshot = self._proposal.ensemble, sight.snapshot
        if run is None:
            return closed_hosts(sight.keepers, snapshot, ensemble, stay)
        store = self._parts.store
        return closed_at_first(store, sight.keepers, snapshot, ensemble, stay, _brief(stay, run))

    def _moving(self, look: Look, sight: Sight) -> Look:
        """The answer that other leases make room for by moving, if they can."""
        found = replanned(
            self._parts.store,
            self._parts.solver,
            sight.snapshot,
            look.built,
            sight.keepers,
            _instead(look.staying, sight.stand),
            time_limit=self._time_limit,
            seed=self._ask.seed,
        )
        return look if found is None else replace(look, found=found.found, moved=found.moved)

    def _until(self, look: Look, found: Found, view: Snapshot, keepers: Iterable[Ensemble]) -> Look:
        """The same answer with an end for each member whose place is promised to a lease."""
        request, notice = found.built.request, self._parts.limits.notice
        others = [one for one in keepers if one.id != self._proposal.ensemble.id]
        stranger = stranger_of(self._proposal.ensemble)
        alone = tuple(solitudes(self._lease_of, view, stranger, others, look.period))
        bare = _vacated(view, request.released)
        places = {name: found.place(name) for name in request.members if name not in request.fixed}
        taken = wanted(places.values())
        endings = {}
        try:
            for name, place in places.items():
                mine = {provider: taken[provider] for provider in place.allocations}
                ends = (
                    ending(self._lease_of, bare, mine, look.period, notice),
                    ending_alone(alone, [view.row_of[place.host]], view.taken_at, notice),
                )
                if any(ends):
                    endings[name] = min(filter(None, ends), key=by_end)
        except NoLease:
            return look
        return replace(look, found=found, endings=MappingProxyType(endings))

    def _lease_of(self, decision: str) -> str | None:
        return self._parts.store.decision(decision).lease_id

    def _displacing(
        self, look: Look, found: Found, view: Snapshot, candidates: Mapping[str, Candidate]
    ) -> Look:
        """The same answer once only those are gone who must go for it."""
        request = found.built.request
        stays = look.staying.keys() & request.fixed.keys()
        leaving = request.released | {look.staying[name][0].consumer for name in stays}
        places = [
            found.place(name) if name not in request.fixed else place_of(view, look.staying[name])
            for name in request.members
            if name not in request.fixed or name in stays
        ]
        out = victims(_vacated(view, leaving), places, candidates, request.period)
        if out is None:
            return look
        judged = self._without(found, view, out)
        if judged is None:
            # Some policy minds who is there: then everybody goes who can, where it asked.
            rows = {view.row_of[host] for host in found.asked}
            out |= {
                one.consumer
                for one in candidates.values()
                if rows & {int(view.root[view.row_of[uuid]]) for uuid in one.providers}
            }
            judged = self._without(found, view, out)
        end = last_end(view.taken_at, request.period.start, self._parts.limits.notice)
        if judged is None or end is None:
            return look
        return replace(
            look,
            built=judged.built,
            found=judged,
            displaced=displaced(candidates, out, end),
            evicted={one: candidates[one].providers for one in sorted(out)},
        )

    def _without(self, found: Found, view: Snapshot, out: frozenset[str]) -> Found | None:
        """The answer judged with these consumers gone, and all others there."""
        built = found.built
        bare = aside(view, out)
        return still_holds(
            found, state(built.request, survey(bare, built.request), closed=built.closed)
        )


@dataclass(eq=False)
class _Search:
    """Looks for answers one way, and keeps the last one."""

    parts: Parts
    ask: Ask
    time_limit: Duration
    known: Mapping[MemberName, str]
    """See `Proposal.known`."""
    found: Found | None = None
    broken: int = 0
    """How many answers no longer held."""

    def answer(
        self, built: Built, busy: frozenset[str], there: Sequence[Snapshot] = ()
    ) -> Found | None:
        """The last answer if it still holds, or else a new one; None if there is none.

        Args:
            built: the problem.
            busy: hosts (UUIDs) on which others were quicker.
            there: the fleet with those whom the problem sets aside; see `sparing`.
        """
        if self.found is not None:
            self.found = still_holds(self.found, built)
            self.broken += self.found is None
        elif self.known:
            self.found, self.known = standing_answer(self.known, built), MappingProxyType({})
        if self.found is None and self.broken > 1 and busy:
            closed = {**built.closed, BUSY_HOST: busy}
            self.found = self._find(state(built.request, built.terrain, closed=closed), there)
        if self.found is None:
            self.found = self._find(built, there)
        return self.found

    def _find(self, built: Built, there: Sequence[Snapshot]) -> Found | None:
        solver, seed = self.parts.solver, self.ask.seed
        if there:
            limit = min(self.time_limit, _SPARING)
            try:
                return find(solver, sparing(built, there), time_limit=limit, seed=seed)
            except Busy:
                pass  # whom to spare was too much to ask: then whoever has to go
        return find(solver, built, time_limit=self.time_limit, seed=seed)


def _ways(proposal: Proposal, ask: Ask, notice: Duration) -> Iterator[Way]:
    ways = [Way(proposal.anew)]
    if proposal.or_anew is not None:
        ways.append(Way(proposal.or_anew))
    yield from ways
    if proposal.promise is not None:
        if may_displace(proposal.promise, notice):
            yield from (replace(way, displacing=True) for way in ways)
    elif ask.preemptible:
        yield from (replace(ways[0], run=run) for run in (*_RUNS, notice) if run >= notice)


def may_displace(promise: Promise, notice: Duration) -> bool:
    """Whether preemptible users may end for it: for an offer, who need not go while it is one."""
    return not promise.offered or promise.period.start - 2 * notice >= promise.expires_at


def _period(promise: Promise | None, ask: Ask, now: Instant) -> Period:
    """When the places are kept."""
    if promise is not None:
        return promise.period
    until = FOREVER if ask.until is None else ask.until
    if until <= now:
        raise InvalidDescription("the end of the stay lies in the past", path="until")
    return Period(now, until)


def _request(
    proposal: Proposal, ask: Ask, stand: Standing, way: Way, period: Period
) -> EnsembleRequest:
    ahead = Period(max(period.start, stand.at), period.end)
    request = request_for(proposal.ensemble, stand, way.anew(stand), ahead, ask.objective)
    return replace(
        request,
        roles=proposal.roles or request.roles,
        own_consumers=request.own_consumers | proposal.freed,
        released=request.released | proposal.freed,
        restated=proposal.restated,
    )


def _built(
    request: EnsembleRequest,
    view: Snapshot,
    run: Duration | None,
    closed: Mapping[str, frozenset[str]],
) -> Built:
    """The problem; with `run`, room counts for so long only, and company all the time."""
    terrain = survey(view, request)
    if run is not None and (brief_period := _brief(request.period, run)) != request.period:
        brief = survey(view, replace(request, period=brief_period))
        terrain = replace(brief, occupants_of=terrain.occupants_of)
    return state(request, terrain, closed=closed)


def _brief(stay: Period, run: Duration) -> Period:
    """The beginning of a stay."""
    return Period(stay.start, min(stay.start + run, stay.end))


def _staying(
    proposal: Proposal, request: EnsembleRequest, stand: Standing, period: Period
) -> Mapping[MemberName, tuple[Booking, ...]]:
    """Members that stay put and are written anew: those held; in a lease, all who end with it."""
    found: dict[MemberName, tuple[Booking, ...]] = {}
    for name in request.fixed:
        bookings, status = stand.bookings[name], stand.of(name)
        if status is MemberStatus.HELD:
            found[name] = tuple(_kept(one, period, stand.at) for one in bookings)
        elif proposal.promise is not None and bookings[0].period.end != FOREVER:
            found[name] = tuple(
                replace(one, period=Period(one.period.start, period.end)) for one in bookings
            )
    return MappingProxyType(found)


def _instead(
    staying: Mapping[MemberName, tuple[Booking, ...]], stand: Standing
) -> dict[str, tuple[Booking, ...]]:
    """What members that stay put are booked for afterwards, by consumer; only what differs."""
    return {
        some[0].consumer: some for name, some in staying.items() if some != stand.bookings[name]
    }


def _kept(booking: Booking, period: Period, now: Instant) -> Booking:
    """A hold for another period; one that ends for a lease ends there still."""
    begun = booking.period.start <= now and period.start <= now
    start = booking.period.start if begun else period.start
    if booking.yields_to is None:
        return replace(booking, period=Period(start, period.end))
    end = min(booking.period.end, period.end)
    return replace(booking, period=Period(start, end), declared_end=period.end)


def _spared(there: Snapshot, candidates: Mapping[str, Candidate]) -> tuple[Snapshot, ...]:
    """The fleet with all who could go, and with only those of the highest priority."""
    if not candidates:
        return ()
    highest = max(one.priority for one in candidates.values())
    lower = [name for name, one in candidates.items() if one.priority < highest]
    return (there, aside(there, lower)) if lower else (there,)


def _vacated(snapshot: Snapshot, consumers: Iterable[str]) -> Snapshot:
    return exchanged(snapshot, dict.fromkeys(consumers, ()))
