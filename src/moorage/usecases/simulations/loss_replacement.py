"""Whether the members that are lost with some hosts can be placed again now, all together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.period import Period
from moorage.engine.state.change_overlay import with_moved
from moorage.engine.state.host_states import host_states
from moorage.engine.state.hypothetical_hosts import with_hosts_down
from moorage.usecases.decide.closed_hosts import providers_kept
from moorage.usecases.decide.member_places import consumer_of
from moorage.usecases.simulations.fast_replacement import FastReplacement
from moorage.usecases.simulations.replacement import Verdict, place_again

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.bookings import Booking
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment

    Bools: TypeAlias = NDArray[np.bool_]
    Lost: TypeAlias = tuple[Ensemble, frozenset[MemberName]]
    """An ensemble with the members that it loses."""


class LossReplacements:
    """Places lost members again, each loss by itself, on one snapshot and as long as time is."""

    def __init__(
        self, env: UseCaseEnvironment, snapshot: Snapshot, remaining: Callable[[], float]
    ) -> None:
        self._env = env
        self._snapshot = snapshot
        self._remaining = remaining
        exclusive = env.store.exclusive_ensembles(snapshot).ensembles
        kept = providers_kept(exclusive, snapshot, Period(snapshot.taken_at))
        self._fast = FastReplacement(snapshot, host_states(snapshot).in_service & ~kept)

    def verdicts(self, lost: Sequence[Lost], hosts: Bools) -> list[Verdict]:
        """For each of these ensembles whether its members lost with [P] hosts can be placed again.

        What one is given the next one finds taken; those that are quickly placed come first.
        """
        found = [Verdict.UNDECIDED] * len(lost)
        if self._remaining() <= 0:
            return found
        fast, snapshot = self._fast.loss(hosts), self._snapshot
        moved: dict[str, tuple[Booking, ...]] = {}
        searched: list[int] = []
        for number, (ensemble, members) in enumerate(lost):
            if self._remaining() <= 0:
                break
            placed = fast.place(ensemble, members)
            if placed is None:
                searched.append(number)
            else:
                found[number] = Verdict.PLACED
                moved |= moved_bookings(snapshot, ensemble, placed)
        if not searched or self._remaining() <= 0:
            return found
        store = self._env.store.hypothetical()
        rows = np.flatnonzero(hosts).tolist()
        store.suppose(lambda present: with_moved(with_hosts_down(present, rows), moved))
        env = self._env.over(store)
        for number in searched:
            ensemble, members = lost[number]
            seconds = self._remaining()
            if seconds <= 0:
                break
            found[number] = place_again(
                env, store, ensemble, members, seconds, explained=False
            ).verdict
        return found


def moved_bookings(
    snapshot: Snapshot, ensemble: Ensemble, placed: Mapping[MemberName, int]
) -> dict[str, tuple[Booking, ...]]:
    """The bookings of members that are placed again on hosts (rows), by their consumers."""
    of = {member.name: consumer_of(member) for member in ensemble.members}
    booked = snapshot.live_bookings(of[name] for name in placed)
    return {
        of[name]: (
            replace(
                booked[of[name]][0],
                provider=snapshot.uuids[row],
                amounts=ensemble.role(name.role).resources,
            ),
        )
        for name, row in placed.items()
    }
