"""Grant the largest lease of several sizes that fits: few searches, one deadline, one explanation.

A size that fits says that every smaller one does, so the boundary is found by halving. Sizes differ
in how many members their roles have and in nothing else, and no policy that a reservation makes
(`reservations.asking`) needs more members rather than fewer: `affinity`, `anti-affinity`,
`exclusive`, `fence` and `ban` hold for a part of a placement where they hold for all of it. Others
make room for fewer members wherever they do for more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain import deadline
from moorage.domain.errors import Busy, Infeasible
from moorage.domain.period import SECOND
from moorage.usecases.decide.loop import LAST
from moorage.usecases.decide.request import RequestIdentity
from moorage.usecases.leases.create import create_lease

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.leases.requests import LeaseRequest, LeaseResult
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class LeaseSizes:
    """The sizes in which a lease may be had, the largest first."""

    count: int
    """How many there are, at least one."""
    ask: Callable[[int], LeaseRequest]
    """What is asked for to have one of them, from 0 on."""


def grant_largest(
    env: UseCaseEnvironment,
    caller: Caller,
    choice: LeaseSizes,
    id_: Callable[[], str],
    *,
    dry_run: bool = False,
    explained: bool = True,
) -> LeaseResult:
    """Grant the largest size that fits.

    All of it has the time limit of one decision. Where that passes between a size that does not fit
    and one that does, the latter is granted.

    Args:
        env: the service's.
        caller: who asks.
        choice: the sizes.
        id_: the id of each lease that is tried.
        dry_run: write no lease.
        explained: whether the explanation of a refusal is stored; it is of the smallest size.

    Raises:
        Infeasible: not even the smallest fits.
        QuotaExceeded and others: see `create_lease`; what the largest size meets.
    """
    with deadline.within(env.stopwatch, env.limits.time_limit / SECOND):
        return _Search(env, caller, choice, id_, dry_run, explained).granted()


@dataclass(frozen=True, slots=True)
class _Search:
    """One request for the largest."""

    env: UseCaseEnvironment
    caller: Caller
    choice: LeaseSizes
    id_: Callable[[], str]
    dry_run: bool
    explained: bool

    def granted(self) -> LeaseResult:
        last = self.choice.count - 1
        if not last:
            return self._least(dry_run=self.dry_run)
        found = self._tried(0, dry_run=self.dry_run)
        small = 0
        while found is None:
            # Of sizes from here on the first does not fit; judged anew where others were quicker.
            if small == last - 1:
                return self._least(dry_run=self.dry_run)
            self._least(dry_run=True)
            small = self._boundary(small, last)
            with deadline.at_least(LAST):
                if small == last:
                    return self._least(dry_run=self.dry_run)
                found = self._tried(small, dry_run=self.dry_run)
        return found

    def _boundary(self, refused: int, fits: int) -> int:
        """The largest size that fits, of those between one that does not and one that does."""
        while fits - refused > 1:
            middle = (refused + fits) // 2
            try:
                found = self._tried(middle, dry_run=True)
            except Busy:
                break
            if found is None:
                refused = middle
            else:
                fits = middle
        return fits

    def _tried(self, number: int, *, dry_run: bool) -> LeaseResult | None:
        """A lease of one size; None if it does not fit. No explanation is made."""
        ask = replace(self.choice.ask(number), unexplained=True)
        try:
            with deadline.anew():
                return create_lease(self.env, self.caller, ask, self._naming(), dry_run=dry_run)
        except Infeasible:
            return None

    def _least(self, *, dry_run: bool) -> LeaseResult:
        """A lease of the smallest size.

        Raises:
            Infeasible: it does not fit.
        """
        if not (dry_run or self.explained):
            self._least(dry_run=True)  # a refusal that is written leaves its explanation
        ask = self.choice.ask(self.choice.count - 1)
        with deadline.anew():
            return create_lease(self.env, self.caller, ask, self._naming(), dry_run=dry_run)

    def _naming(self) -> RequestIdentity:
        return RequestIdentity(self.id_(), explained=self.explained)
