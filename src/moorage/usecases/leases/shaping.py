"""Validation of a lease's terms and members, and changes of its member counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from moorage.domain.ensembles import STANDING
from moorage.domain.errors import InUse, InvalidDescription, LimitExceeded
from moorage.domain.leases import LeadTooLong
from moorage.domain.period import DAY, MINUTE, Period, say_duration
from moorage.domain.requests import Objective
from moorage.domain.words import counted
from moorage.engine.joint.build import policy_view_of, row_of_host
from moorage.engine.joint.policy_rules import resolve_policies
from moorage.engine.joint.removal_impact import RemovalCandidates, violations_without
from moorage.engine.joint.terrain import cut_terrain
from moorage.usecases.decide.member_places import MemberStatus
from moorage.usecases.decide.solution import request_for
from moorage.usecases.ensembles.change import without_members
from moorage.usecases.ensembles.create import with_more_members
from moorage.usecases.ensembles.size_changes import check_min_available
from moorage.usecases.shared.limits import check_member_count, too_long

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Terms
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration, Instant
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.shared.limits import Limits

LATE: Final[Duration] = MINUTE
"""A start up to this long ago counts as now, to allow for the request's transmission."""

_CLAIMED = {MemberStatus.BUILDING, MemberStatus.ACTIVE}


def checked_start(terms: Terms, now: Instant) -> Terms:
    """The terms with a start that is not in the past.

    Raises:
        InvalidDescription: the start is in the past.
    """
    period = terms.period
    if period.start >= now:
        return terms
    if period.start < now - LATE or period.end <= now:
        raise InvalidDescription("the start of the lease lies in the past", path="lease.start")
    return terms.moved(Period(now, period.end))


def checked_lead(terms: Terms, now: Instant) -> Terms:
    """The terms with a lead that does not begin in the past; a lease that starts now has none.

    Raises:
        LeadTooLong: the lease starts later, and its lead would begin in the past.
    """
    start = terms.period.start
    if not terms.lead or start - terms.lead >= now:
        return terms
    if start > now and start - terms.lead < now - LATE:
        raise LeadTooLong(start - now)
    return replace(terms, lead=max(start - now, 0))


def check_margins(limits: Limits, *, lead: Duration, cleaning: Duration) -> None:
    """Check the lead and cleaning time of a new lease.

    Quotas do not count them: without limits a lease of one hour could keep its places for a year.

    Raises:
        InvalidDescription: its lead or its cleaning time is too long.
    """
    for word, length, most in (
        ("lead", lead, limits.longest_lead),
        ("cleaning", cleaning, limits.longest_cleaning),
    ):
        if length > most:
            told = f"the {word} of a lease is {say_duration(most)} at most (longest_{word})"
            raise InvalidDescription(told, path=f"lease.{word}")


def checked_end(limits: Limits, terms: Terms, now: Instant) -> Terms:
    """The terms, checked to end in the future and within the limits.

    Raises:
        InvalidDescription: the end is in the past, or the lead begins before instant 0.
        LimitExceeded: the lease, with lead and cleaning time, is too long or ends too far ahead.
    """
    period = terms.period
    if period.end <= now:
        raise InvalidDescription("the end of the lease lies in the past", path="lease.end")
    whole = terms.occupied
    for what, setting, length, most in (
        ("a lease lasts", "longest_lease", whole.end - whole.start, limits.longest_lease),
        ("a lease ends ahead of now", "lease_horizon", whole.end - now, limits.horizon),
    ):
        if length > most:
            raise too_long(what, setting, limit=most, requested=length, unit=DAY)
    if period.start - terms.lead < 0:
        raise InvalidDescription("the lead is too long", path="lease.lead")
    return terms


def check_members(limits: Limits, ensemble: Ensemble) -> None:
    """Check that a lease can be made for the ensemble.

    Raises:
        InvalidDescription: the ensemble has no members.
        LimitExceeded: the ensemble has too many roles.
    """
    if not ensemble.members:
        raise InvalidDescription("a lease needs at least one place", path="lease.members")
    if len(ensemble.roles) > limits.reservations:
        raise LimitExceeded(
            "reservations of a lease", limit=limits.reservations, requested=len(ensemble.roles)
        )


def resized(
    env: UseCaseEnvironment,
    snapshot: Snapshot,
    ensemble: Ensemble,
    member_places: MemberPlaces,
    counts: Mapping[str, int],
    period: Period,
) -> Ensemble:
    """The ensemble with the given numbers of members of some roles.

    Removed members have no place or an unclaimed one. Of members with unclaimed places, those are
    removed without which the policies are violated least.

    Raises:
        InvalidDescription: there is no such role, or a count is negative.
        InUse: members with claimed places would have to be removed.
        BelowMinAvailable: fewer members would remain than must be up.
        LimitExceeded: too many members.
    """
    known = {role.name for role in ensemble.roles}
    for role, count in sorted(counts.items()):
        path = f"counts.{role}"
        if role not in known:
            raise InvalidDescription(f"the lease has no role {role}", path=path)
        if count < 0:
            raise InvalidDescription("a count must not be negative", path=path)
        check_member_count(env.limits, count)
        present = ensemble.count(role)
        if count > present:
            ensemble = with_more_members(env.ids, ensemble, role, count - present)
        elif count < present:
            check_min_available(ensemble, {role: count})
            ensemble = _Shrinking(snapshot, ensemble, member_places, period).by(
                role, present - count
            )
    check_member_count(env.limits, len(ensemble.members))
    return ensemble


class _Shrinking:
    """Removes members one by one, each time the one whose removal violates policies least."""

    def __init__(
        self, snapshot: Snapshot, ensemble: Ensemble, member_places: MemberPlaces, period: Period
    ) -> None:
        self._ensemble = ensemble
        self._member_places = member_places
        nobody: frozenset[MemberName] = frozenset()
        standing = request_for(ensemble, member_places, nobody, period, Objective.SPREAD)
        self._request = replace(standing, phases=STANDING)
        self._terrain = cut_terrain(snapshot, self._request)
        self._policy_view = policy_view_of(self._request, self._terrain)
        self._rules = resolve_policies(self._request, self._terrain.topology)

    def by(self, role: str, surplus: int) -> Ensemble:
        """The ensemble with `surplus` fewer members of the role."""
        free = [
            one.name
            for one in self._ensemble.members
            if one.name.role == role and self._member_places.of(one.name) not in _CLAIMED
        ]
        if surplus > len(free):
            busy = self._ensemble.count(role) - len(free)
            raise InUse("role", role, f"{counted(busy, 'claimed place')} would have to go")
        # Order without policies: first members without a place, then those with the highest index.
        last = sorted(free, key=lambda one: (one in self._member_places.places, -one.index))
        gone = set(last[:surplus])
        placed = [one for one in last if one in self._member_places.places]
        if self._rules and not gone.isdisjoint(placed):
            gone.difference_update(placed)
            gone |= self._least_missed(placed, surplus - len(gone))
        return without_members(self._ensemble, gone)

    def _least_missed(self, free: list[MemberName], surplus: int) -> set[MemberName]:
        """Choose `surplus` members, one after another; of equally good ones the first in `free`."""
        stay = {
            member: row_of_host(self._request, self._terrain, member)
            for member in self._request.members
        }
        gone: set[MemberName] = set()
        for _ in range(surplus):
            standing = RemovalCandidates(self._request.roles, self._policy_view, stay, free)
            required, preferred = self._violations(standing)
            least = int(np.lexsort((preferred, required))[0])
            gone.add(free[least])
            del stay[free[least]]
            free = free[:least] + free[least + 1 :]
        return gone

    def _violations(
        self, standing: RemovalCandidates
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[n] The violations of required and of preferred policies without each candidate."""
        required = np.zeros(len(standing.candidates), dtype=np.int64)
        preferred = np.zeros_like(required)
        for rule in self._rules:
            weight = rule.statement.weight
            amount = violations_without(rule, standing)
            if weight is None:
                required += amount
            else:
                preferred += weight * amount
        return required, preferred
