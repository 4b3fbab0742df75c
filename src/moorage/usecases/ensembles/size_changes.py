"""Requests to extend and to shrink: the counts that they ask for, and their record."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import SizeChange
from moorage.domain.errors import Conflict, InvalidDescription, WrongState
from moorage.domain.leases import LeaseState
from moorage.domain.refusal_commands import to_need_fewer
from moorage.domain.role_paths import is_known, is_within
from moorage.domain.words import counted
from moorage.usecases.shared.access import same_request

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.ensembles import Ensemble, Member, Role
    from moorage.usecases.decide.request import RequestIdentity
    from moorage.usecases.ports import Store

KEPT: Final = 20
"""How many requests that changed its size an ensemble remembers; retries come soon."""


class BelowMinAvailable(Conflict):
    """Fewer members of a role would remain than must be up (`Role.min_available`)."""

    def __init__(self, ensemble: str, role: Role, *, of: int, left: int) -> None:
        least = role.min_available
        super().__init__(
            f"min_available of role {role.name} is {least}, and {left} of its"
            f" {counted(of, 'member')} would be left"
            f"{to_need_fewer(ensemble, role.name, left)}"
        )
        self.role = role.name
        self.min_available = least
        self.left = left


def check_min_available(ensemble: Ensemble, after: Mapping[str, int]) -> None:
    """Check that as many members remain of each role as must be up.

    A role that has fewer already may keep those that it has.

    Args:
        ensemble: the ensemble before.
        after: role -> how many members it would have.

    Raises:
        BelowMinAvailable: fewer would remain.
    """
    for name, left in after.items():
        role, of = ensemble.role(name), ensemble.count(name)
        if left < min(role.min_available, of):
            raise BelowMinAvailable(ensemble.name, role, of=of, left=left)


@dataclass(frozen=True, slots=True)
class RoleCounts:
    """How many members come or leave, by role; or the size that a role shall have then."""

    counts: Mapping[str, int]
    sizes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def more(self, ensemble: Ensemble) -> Mapping[str, int]:
        """Role -> how many members come; 0 if it has its size, or more.

        Raises:
            InvalidDescription: there is no such role.
        """
        return self._counted(ensemble, {r: n - ensemble.count(r) for r, n in self.sizes.items()})

    def fewer(self, ensemble: Ensemble) -> Mapping[str, int]:
        """Role -> how many members leave; 0 if it has its size, or less.

        Raises:
            InvalidDescription: there is no such role, or it has not so many members.
        """
        found = self._counted(ensemble, {r: ensemble.count(r) - n for r, n in self.sizes.items()})
        for role, count in found.items():
            if count > ensemble.count(role):
                raise InvalidDescription(
                    f"role {role} has {ensemble.count(role)} members, so {count} cannot leave",
                    path="count",
                )
        return found

    def _counted(self, ensemble: Ensemble, by_size: Mapping[str, int]) -> Mapping[str, int]:
        known = {role.name for role in ensemble.roles}
        for role in (*self.counts, *by_size):
            if role not in known:
                if is_known(role, known):
                    raise InvalidDescription(
                        f"{role} is a group: name a role of it, such as"
                        f" {min(one for one in known if is_within(one, role))};"
                        " a description with more copies, applied, adds copies",
                        path="role",
                    )
                told = ", ".join(sorted(known)) or "none"
                raise InvalidDescription(f"no role {role}; there are: {told}", path="role")
        return {**self.counts, **{role: max(count, 0) for role, count in by_size.items()}}


def check_no_lease(store: Store, ensemble: Ensemble) -> None:
    """Check that no lease that is not closed has the ensemble's places.

    Raises:
        WrongState: one has.
    """
    for lease in store.leases_of(ensemble.id):
        if lease.state is not LeaseState.CLOSED:
            raise WrongState(f"the ensemble's places belong to lease {lease.id}: change the lease")


def made_before(ensemble: Ensemble, identity: RequestIdentity) -> SizeChange | None:
    """The record of the same request, if it has changed the ensemble before.

    Raises:
        DuplicateName: the id was used by another request.
    """
    for one in ensemble.size_changes:
        if one.id == identity.id:
            same_request("request", identity, stored=one.digest)
            return one
    return None


def with_size_change(
    ensemble: Ensemble,
    identity: RequestIdentity,
    members: Iterable[Member],
    from_headroom: int = 0,
) -> Ensemble:
    """The ensemble with the request recorded, if the client gave its id."""
    if not identity.digest:
        return ensemble
    made = SizeChange(identity.id, identity.digest, tuple(members), from_headroom)
    return replace(ensemble, size_changes=(*ensemble.size_changes, made)[-KEPT:])
