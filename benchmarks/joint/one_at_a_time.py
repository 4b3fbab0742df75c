"""Schedulers that place one member at a time and never move it again.

`native` is Nova's scheduler with its own policies: capacity, traits, and of each server at most one
group of the kinds affinity or anti-affinity of hosts, with a greatest number per host. `ideal` has
a filter for every policy besides: no host on which the member breaks one, given those placed before
it. Which of the remaining hosts is taken is a `Weigher`'s choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from benchmarks.joint.checker import (
    Case,
    closed_to_exclusive,
    domain_of,
    eligible_domains,
    level_within,
    named_hosts,
    suitable,
)
from benchmarks.joint.weighers import Packing, Spreading

from moorage.domain.ensembles import edges

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.joint.fleet import Fleet
    from benchmarks.joint.weighers import Weigher
    from numpy.typing import NDArray

    from moorage.domain.ensembles import PolicyStatement
    from moorage.domain.member_names import MemberName
    from moorage.domain.requests import EnsembleRequest

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Scheduler:
    """A filter for some policies, and a weigher."""

    ideal: bool
    weigher: Callable[[Fleet], Weigher]
    name: str

    def place(self, fleet: Fleet, request: EnsembleRequest) -> dict[MemberName, int] | None:
        """Member -> host row, or None once a member finds no host.

        Fixed members stay where they are; their resources are in use already.
        """
        groups = _groups(fleet, request, ideal=self.ideal)
        of_member: dict[MemberName, list[_Group]] = {}
        for group in groups:
            for member in group.edge:
                of_member.setdefault(member, []).append(group)
        weigher = self.weigher(fleet)
        found: dict[MemberName, int] = {}
        fits_role = {role.name: suitable(fleet, role) & ~fleet.closed for role in request.roles}
        demands = {
            role.name: np.array([role.resources.get(name, 0) for name in fleet.classes])
            for role in request.roles
        }
        for member, host in request.fixed.items():
            found[member] = fleet.row_of[host]
            for group in of_member.get(member, ()):
                group.place(found[member])
        for member in request.members:
            if member in request.fixed:
                continue
            demand = demands[member.role]
            mask = fits_role[member.role] & ((weigher.free >= demand) | (demand == 0)).all(axis=1)
            for group in of_member.get(member, ()):
                group.filter(mask)
            rows = np.flatnonzero(mask)
            if not len(rows):
                return None
            row = int(rows[np.argmin(weigher.costs(demand)[rows])])
            found[member] = row
            weigher.place(row, demand)
            for group in of_member.get(member, ()):
                group.place(row)
        return found


class _Group:
    """One policy over one set of members, some of which are placed."""

    def __init__(
        self,
        fleet: Fleet,
        request: EnsembleRequest,
        statement: PolicyStatement,
        edge: tuple[MemberName, ...],
    ) -> None:
        self.edge = edge
        self.left = len(edge)
        self.kind, self._parameters = statement.type, statement.parameters
        parameters: Mapping[str, Any] = statement.parameters
        level = parameters.get("level")
        if level is None and self.kind in {"proximity", "separation"}:
            # As far apart as that is no constraint, or one that no two members can meet.
            near = parameters.get("max_distance", parameters.get("min_distance", 0) - 1)
            level = level_within(fleet, near, parameters.get("tree", "location"))
        self._domains = domain_of(fleet, level or "host")
        self._counts = np.zeros(int(self._domains.max()) + 1, dtype=np.int64)
        self._fixed: Bools | None = None
        self._eligible: list[int] = []
        match self.kind:
            case "fence":
                self._fixed = named_hosts(fleet, parameters, fence=True)
            case "ban":
                self._fixed = ~named_hosts(fleet, parameters, fence=False)
            case "exclusive":
                self._fixed = ~closed_to_exclusive(fleet, parameters)
            case "spread":
                anywhere = dict.fromkeys(edge, 0)
                case = Case(fleet, request, statement, edge, anywhere)
                self._eligible = eligible_domains(case)

    def place(self, row: int) -> None:
        """Count a member on a host."""
        self._counts[self._domains[row]] += 1
        self.left -= 1

    def filter(self, mask: Bools) -> None:
        """Take away the hosts on which one more member breaks the policy."""
        if self._fixed is not None:
            mask &= self._fixed
            return
        counts, parameters = self._counts, self._parameters
        number: Any
        match self.kind:
            case "anti-affinity":
                number = parameters.get("max_per_domain", 1)
                self._close(mask, counts >= number)
            case "separation":
                self._close(mask, counts >= 1)
            case "affinity" | "proximity":
                if counts.any():
                    self._close(mask, counts == 0)
            case "survive":
                self._survive(mask, parameters)
            case "spread":
                self._spread(mask, parameters)

    def _close(self, mask: Bools, domains: Bools) -> None:
        mask &= ~domains[self._domains]

    def _survive(self, mask: Bools, parameters: Mapping[str, Any]) -> None:
        """The fullest domains may together hold what need not remain."""
        lose, most = parameters.get("lose", 1), len(self.edge) - parameters["keep"]
        full = np.sort(self._counts)[::-1]
        others = int(full[: lose - 1].sum())
        last = int(full[lose - 1]) if lose <= len(full) else 0
        # One more in a domain that is, or becomes, one of the fullest.
        grows = self._counts >= last
        if others + last + 1 > most:
            self._close(mask, grows)

    def _spread(self, mask: Bools, parameters: Mapping[str, Any]) -> None:
        """Enough domains must stay possible; one more may not be too far ahead of the emptiest."""
        used = self._counts > 0
        missing = parameters.get("min_domains", 0) - int(used.sum())
        if missing >= self.left:
            self._close(mask, used)
        if (most := parameters.get("max_skew")) is not None:
            least = int(self._counts[self._eligible].min()) if self._eligible else 0
            self._close(mask, self._counts + 1 - least > most)


def _groups(fleet: Fleet, request: EnsembleRequest, *, ideal: bool) -> list[_Group]:
    """The policies that a scheduler has filters for."""
    found: list[_Group] = []
    grouped: set[MemberName] = set()
    for statement in request.policies:
        if not statement.required:
            continue
        for edge in edges(statement, request.roles, request.members):
            if not ideal:
                # A server is in one server group at most, and groups know of hosts only.
                on_hosts = statement.parameters.get("level", "host") == "host"
                said = statement.type in {"affinity", "anti-affinity"} and on_hosts
                if not said or grouped & set(edge):
                    continue
                grouped |= set(edge)
            found.append(_Group(fleet, request, statement, edge))
    return found


SCHEDULERS: Final = tuple(
    Scheduler(ideal, weigher, f"{'ideal' if ideal else 'native'} {weigher.name}")
    for ideal in (False, True)
    for weigher in (Spreading, Packing)
)
