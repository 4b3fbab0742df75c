"""Grant the largest lease of several sizes that fits: few searches, one deadline, one explanation.

If a size fits, all smaller ones do, so the largest is found by bisection. Sizes differ only in the
members of their roles, and no policy made from a reservation (`lease_request`) needs more members
rather than fewer: `affinity`, `anti-affinity`, `exclusive`, `fence` and `ban` hold for a part of a
placement if they hold for all of it. Room that others make for more members is enough for fewer.
A change of a lease is granted in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from moorage.domain import deadline
from moorage.domain.errors import Busy, Infeasible
from moorage.domain.period import SECOND
from moorage.usecases.decide.request import RefusalDetail, RequestIdentity
from moorage.usecases.leases.create import create_lease

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.leases.requests import LeaseRequest, LeaseResult
    from moorage.usecases.ports import Caller


class GrantsSize(Protocol):
    """Grants a lease, or its change, in one size."""

    def __call__(
        self,
        env: UseCaseEnvironment,
        number: int,
        identity: RequestIdentity,
        refusal: RefusalDetail,
    ) -> LeaseResult:
        """Grant the size with this number, from 0.

        Raises:
            Infeasible: it does not fit; explained in this `refusal`'s detail.
        """


@dataclass(frozen=True, slots=True)
class LeaseSizes:
    """The sizes in which a lease may be granted, the largest first."""

    count: int
    """The number of sizes; at least one."""
    grant: GrantsSize


def new_lease_sizes(
    caller: Caller, count: int, request_at: Callable[[int], LeaseRequest]
) -> LeaseSizes:
    """The sizes of a new lease; `request_at` returns the request for a size, by its number."""

    def grant(
        env: UseCaseEnvironment, number: int, identity: RequestIdentity, refusal: RefusalDetail
    ) -> LeaseResult:
        request = replace(request_at(number), refusal=refusal)
        return create_lease(env, caller, request, identity)

    return LeaseSizes(count, grant)


def grant_largest(
    env: UseCaseEnvironment,
    choice: LeaseSizes,
    id_: Callable[[], str],
    *,
    explained: bool = True,
) -> LeaseResult:
    """Grant the largest size of a lease, or of its change, that fits.

    The whole search has the time limit of one decision. If it ends between a size that does not fit
    and a smaller one that does, the smaller one is granted.

    `id_` returns the id for each lease that is tried. Without `explained` no explanation of a
    refusal is stored; it is that of the smallest size.

    Raises:
        Infeasible: the smallest size does not fit.
        QuotaExceeded and others: see `create_lease` and `change_lease`; raised for the largest
            size.
    """
    with deadline.within(env.stopwatch, env.limits.time_limit / SECOND):
        return _Search(env, choice, id_, explained).granted()


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for the largest size that fits."""

    env: UseCaseEnvironment
    choice: LeaseSizes
    id_: Callable[[], str]
    explained: bool

    @property
    def trying(self) -> UseCaseEnvironment:
        """The environment of one try, which writes no lease."""
        return self.env.in_dry_run(explained=self.explained)

    def granted(self) -> LeaseResult:
        last = self.choice.count - 1
        if not last:
            return self._least()
        found = self._tried(self.env, 0)
        small = 0
        while found is None:
            # Size `small` does not fit; the boundary is searched again if capacity was taken
            # meanwhile.
            if small == last - 1:
                return self._least()
            self._grant(self.trying, last)
            small = self._boundary(small, last)
            with deadline.at_least(deadline.COMMITTING):
                if small == last:
                    return self._least()
                found = self._tried(self.env, small)
        return found

    def _boundary(self, refused: int, fits: int) -> int:
        """The largest size that fits, between `refused`, which does not, and `fits`, which does."""
        while fits - refused > 1:
            middle = (refused + fits) // 2
            try:
                found = self._tried(self.trying, middle)
            except Busy:
                break
            if found is None:
                refused = middle
            else:
                fits = middle
        return fits

    def _tried(self, env: UseCaseEnvironment, number: int) -> LeaseResult | None:
        """A lease of one size, or None if it does not fit; there is no explanation."""
        try:
            return self._grant(env, number, RefusalDetail.NONE)
        except Infeasible:
            return None

    def _least(self) -> LeaseResult:
        """A lease of the smallest size.

        Raises:
            Infeasible: the smallest size does not fit.
        """
        last = self.choice.count - 1
        if not self.explained:
            self._grant(self.trying, last)  # a refusal that is written leaves its explanation
        return self._grant(self.env, last)

    def _grant(
        self, env: UseCaseEnvironment, number: int, refusal: RefusalDetail = RefusalDetail.FULL
    ) -> LeaseResult:
        with deadline.anew():
            return self.choice.grant(env, number, RequestIdentity(self.id_()), refusal)
