"""Looking for an answer: the ways to look, those that ask less of others first.

A decision is looked for as the ensemble asks. Where that gives nothing, a lease is looked for as if
preemptible users were not there, who then end early for it; a preemptible ensemble is looked for
where it can stay a while, until somebody's lease needs the place; and last, leases that have not
started are moved, first out of the way of members that stay where they are, if there are any, and
then with preemptible users who end for those that move.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.errors import ProviderConflict
from moorage.engine.build import state
from moorage.engine.overlay import exchanged, vacated, worsens
from moorage.engine.problem import Verdict
from moorage.engine.terrain import survey
from moorage.usecases.closed import closed_hosts
from moorage.usecases.joint import still_holds
from moorage.usecases.kept import stranger_of
from moorage.usecases.leases.gone import all_who_could, of_least_priority
from moorage.usecases.leases.replan import Replanned, replanned
from moorage.usecases.leases.solitude import closed_at_first, ending_alone, solitudes
from moorage.usecases.leases.untouched import seen_by
from moorage.usecases.leases.yielding import (
    NoLease,
    aside,
    by_end,
    displaceable,
    displaced,
    ending,
    last_end,
    victims,
    wanted,
)
from moorage.usecases.search import Search, spared_views
from moorage.usecases.standing import place_of
from moorage.usecases.staying import rebooked, staying_put
from moorage.usecases.ways import (
    asked_period,
    brief,
    built_for,
    may_displace,
    request_by,
    ways,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.domain.errors import CapacityExceeded, ConstraintViolated
    from moorage.domain.period import Duration, Period
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.build import Built
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.joint import Ask, Found
    from moorage.usecases.leases.asking import Displaced
    from moorage.usecases.leases.gone import Giving
    from moorage.usecases.leases.outranked import Preempted
    from moorage.usecases.leases.planned import Moved
    from moorage.usecases.leases.yielding import Candidate
    from moorage.usecases.parts import Parts
    from moorage.usecases.proposal import Ending, Proposal
    from moorage.usecases.standing import Standing
    from moorage.usecases.ways import Way


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
    unsure: bool = False
    """Whether it is not known that nobody can make room for it by moving."""
    clash: bool = False
    """Whether those who stay put cannot stay as long as is asked: nothing was looked for."""

    @property
    def every_displaced(self) -> tuple[Displaced, ...]:
        """Who ends early for it, and for leases that move for it."""
        return (*self.displaced, *(gone for one in self.moved for gone in one.displaced))

    @property
    def ends_by(self) -> Iterator[str]:
        """Providers by whose bookings members have an end for a lease, which may be gone soon."""
        for one in self.endings.values():
            yield from one.on
        for some in self.staying.values():
            yield from (booking.provider for booking in some if booking.yields_to is not None)


class Looking:
    """Looks for answers to one proposal, round by round, and keeps what overtaken ones taught."""

    def __init__(self, parts: Parts, proposal: Proposal, ask: Ask, time_limit: Duration) -> None:
        self._parts = parts
        self._proposal = proposal
        self._ask = ask
        self._time_limit = time_limit
        self._busy: frozenset[str] = frozenset()
        self._ways = tuple(
            (way, Search(parts, ask, time_limit, proposal.known))
            for way in ways(proposal, ask, parts.limits.notice)
        )

    def take(self, time_limit: Duration) -> None:
        """Look for so long at the most, from now on."""
        self._time_limit = time_limit
        for _, search in self._ways:
            search.time_limit = time_limit

    def look(self, sight: Sight, *, plainly: bool = False) -> Look:
        """The first answer that any way gives; or, without `found`, what was asked in vain.

        That is the last way whose problem has no answer, others being where they are: it leaves
        the most open, so what stands against it stands against every other. Where nobody could be
        placed anew instead, those who cannot stay as long as is asked. With `plainly` nobody ends
        early or moves for it.
        """
        sight = seen(self._parts, self._proposal, self._ask, sight)
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
                refused = refused if look.clash else look
        assert first is not None, "there is always a way to look"
        unsure = False
        for move in () if plainly else (self._moving, self._moving_with_ends):
            for look in whole:
                moving = move(look, sight)
                if moving.found is not None:
                    return moving
                unsure = unsure or moving.unsure
        return replace(refused or first, unsure=unsure)

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

    def _by(self, way: Way, search: Search, sight: Sight) -> Look:
        limits, promise, now = self._parts.limits, self._proposal.promise, sight.snapshot.taken_at
        period = asked_period(limits, promise, self._ask, now)
        request = request_by(way, self._proposal, self._ask, sight.stand, period)
        if not way.displacing:
            return self._among(way, search, sight, period, request, {})
        snapshot = sight.snapshot
        candidates = displaceable(snapshot, request.period, limits.notice, request.own_consumers)
        best = self._among(way, search, sight, period, request, candidates)
        return self._sparing(
            candidates,
            best,
            lambda few: self._among(way, search, sight, period, request, few),
        )

    def _sparing(
        self,
        candidates: Mapping[str, Candidate],
        best: Look,
        look: Callable[[Mapping[str, Candidate]], Look],
    ) -> Look:
        """The best answer, or one for which those of lower priorities end."""

        def answer(few: Mapping[str, Candidate]) -> Look | None:
            found = look(few)
            return None if found.found is None else found

        first = None if best.found is None else best
        return of_least_priority(candidates, first, answer) or best

    def _among(
        self,
        way: Way,
        search: Search,
        sight: Sight,
        period: Period,
        request: EnsembleRequest,
        candidates: Mapping[str, Candidate],
    ) -> Look:
        """One way to look, with these as those who end early for it."""
        proposal = self._proposal
        staying = staying_put(proposal, request, sight.stand, period)
        instead = rebooked(staying, sight.stand)
        snapshot = sight.snapshot
        before = aside(snapshot, candidates.keys()) if candidates else snapshot
        view = exchanged(before, instead)
        closed = self._closed(sight, request.period, way.run)
        built = built_for(request, view, way.run, {**proposal.barred, **closed})
        look = Look(built, None, period, staying)
        if instead and worsens(before, instead):
            return replace(look, clash=True)
        if way.displacing and not candidates:
            return look
        there = exchanged(snapshot, instead)
        found = search.answer(built, self._busy, spared_views(there, candidates))
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
        return closed_at_first(store, sight.keepers, snapshot, ensemble, stay, brief(stay, run))

    def _moving_with_ends(self, look: Look, sight: Sight) -> Look:
        """The same where preemptible users end for a lease, or for those that move for it."""
        promise, notice = self._proposal.promise, self._parts.limits.notice
        period = look.built.request.period
        if promise is None or not may_displace(promise, notice):
            return look
        if last_end(sight.snapshot.taken_at, period.start, notice) is None:
            return look
        giving = all_who_could(sight.snapshot, notice, look.built.request.own_consumers)
        if not giving.candidates:
            return look
        best = self._moving(look, sight, giving)
        return self._sparing(
            giving.candidates,
            best,
            lambda few: self._moving(look, sight, replace(giving, candidates=few)),
        )

    def _moving(self, look: Look, sight: Sight, giving: Giving | None = None) -> Look:
        """The answer that other leases make room for by moving, if they can."""
        found = replanned(
            self._parts.store,
            self._parts.solver,
            sight.snapshot,
            look.built,
            sight.keepers,
            rebooked(look.staying, sight.stand),
            time_limit=self._time_limit,
            seed=self._ask.seed,
            giving=giving,
        )
        if isinstance(found, Replanned):
            gone = found.gone
            return replace(
                look,
                built=found.found.built,
                found=found.found,
                moved=found.moved,
                displaced=gone.displaced,
                evicted=gone.evicted,
            )
        return replace(look, unsure=found is not Verdict.INFEASIBLE)

    def _until(self, look: Look, found: Found, view: Snapshot, keepers: Iterable[Ensemble]) -> Look:
        """The same answer with an end for each member whose place is promised to a lease."""
        request, notice = found.built.request, self._parts.limits.notice
        others = [one for one in keepers if one.id != self._proposal.ensemble.id]
        stranger = stranger_of(self._proposal.ensemble)
        alone = tuple(solitudes(self._lease_of, view, stranger, others, look.period))
        bare = vacated(view, request.released)
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
        out = victims(vacated(view, leaving), places, candidates, request.period)
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


def seen(parts: Parts, proposal: Proposal, ask: Ask, sight: Sight) -> Sight:
    """What somebody sees that asks for this; see `leases.untouched`."""
    snapshot = seen_by(parts.store, sight.snapshot, ask, proposal.promise)
    return sight if snapshot is sight.snapshot else replace(sight, snapshot=snapshot)
