"""Judges placements by a plain reading of the reference of the policies.

Nothing here uses how Moorage itself judges: neither the policies' code nor the engine.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from moorage.domain.ensembles import edges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.joint.fleet import Fleet
    from numpy.typing import NDArray

    from moorage.domain.ensembles import PolicyStatement, Role
    from moorage.domain.member_names import MemberName
    from moorage.domain.requests import EnsembleRequest

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Hosts: TypeAlias = Mapping[MemberName, int]
    Judge: TypeAlias = Callable[["Case"], Iterator[str]]


class Case:
    """One policy over one set of members, whose hosts are known."""

    def __init__(
        self,
        fleet: Fleet,
        request: EnsembleRequest,
        statement: PolicyStatement,
        edge: Sequence[MemberName],
        hosts: Hosts,
    ) -> None:
        self.fleet = fleet
        self.request = request
        self.parameters: Mapping[str, Any] = statement.parameters
        self.edge = edge
        self.rows = [hosts[member] for member in edge]
        self.level = str(self.parameters.get("level", "host"))

    @property
    def domains(self) -> list[int]:
        """The domain of each member at the policy's level."""
        return [int(one) for one in domain_of(self.fleet, self.level)[self.rows]]

    @property
    def counts(self) -> Counter[int]:
        """How many members each used domain has."""
        return Counter(self.domains)


def domain_of(fleet: Fleet, level: str) -> Ints:
    """[H] the number of each host's domain; hosts are the lowest level."""
    if level == "host":
        return np.arange(len(fleet.names), dtype=np.int64)
    return fleet.domains[level]


def level_within(fleet: Fleet, distance: int, tree: str = "location") -> str | None:
    """The level whose domains hold what is at most so far apart; None: everything is."""
    upwards = ("host", *reversed(fleet.trees[tree]))
    return upwards[distance] if distance < len(upwards) else None


def _anti_affinity(case: Case) -> Iterator[str]:
    most = case.parameters.get("max_per_domain", 1)
    yield from (f"{count} in one {case.level}" for count in case.counts.values() if count > most)


def _affinity(case: Case) -> Iterator[str]:
    if len(case.counts) > 1:
        yield f"in {len(case.counts)} {case.level}s"


def _proximity(case: Case) -> Iterator[str]:
    level = case.parameters.get("level") or level_within(
        case.fleet, case.parameters["max_distance"], case.parameters.get("tree", "location")
    )
    if level is not None:
        case.level = level
        yield from _affinity(case)


def _separation(case: Case) -> Iterator[str]:
    level = case.parameters.get("level") or level_within(
        case.fleet, case.parameters["min_distance"] - 1, case.parameters.get("tree", "location")
    )
    if level is None:
        yield "nothing is that far apart"
        return
    case.level = level
    yield from (f"{count} in one {level}" for count in case.counts.values() if count > 1)


def _survive(case: Case) -> Iterator[str]:
    lost = sum(count for _, count in case.counts.most_common(case.parameters.get("lose", 1)))
    if len(case.edge) - lost < case.parameters["keep"]:
        yield f"{len(case.edge) - lost} would remain"


def _spread(case: Case) -> Iterator[str]:
    if len(case.counts) < case.parameters.get("min_domains", 0):
        yield f"in {len(case.counts)} {case.level}s only"
    if (most := case.parameters.get("max_skew")) is not None:
        emptiest = min((case.counts[domain] for domain in eligible_domains(case)), default=0)
        skew = max(case.counts.values()) - emptiest
        if skew > most:
            yield f"skew {skew}"


def eligible_domains(case: Case) -> list[int]:
    """Domains with a host that could hold one of the members if it were empty, fences obeyed."""
    suits = np.zeros(len(case.fleet.names), dtype=np.bool_)
    fenced = np.zeros_like(suits)
    statements = [one for one in case.request.policies if one.required]
    for member in {one.role: one for one in case.edge}.values():
        role = case.request.role_of(member)
        mine = suitable(case.fleet, role) & (
            _demand(case.fleet, role)[None, :] <= case.fleet.capacity
        ).all(axis=1)
        suits |= mine
        for one in statements:
            if one.type in {"fence", "ban"} and any(
                member in edge for edge in edges(one, case.request.roles, case.request.members)
            ):
                named = named_hosts(case.fleet, one.parameters, fence=one.type == "fence")
                mine = mine & (named if one.type == "fence" else ~named)
        fenced |= mine
    kept = fenced if fenced.any() and case.parameters.get("fenced_domains") != "count" else suits
    return np.unique(domain_of(case.fleet, case.level)[kept]).tolist()  # type: ignore[no-any-return]


def _exclusive(case: Case) -> Iterator[str]:
    taken = closed_to_exclusive(case.fleet, case.parameters)
    yield from ("beside foreigners" for row in case.rows if taken[row])


def _isolate(case: Case) -> Iterator[str]:
    """`exclusive` in other words; servers and their ports are nobody else's."""
    if (level := case.parameters.get("at", "server")) not in {"vnic", "server"}:
        taken = closed_to_exclusive(case.fleet, {**case.parameters, "level": level})
        yield from ("beside foreigners" for row in case.rows if taken[row])


def closed_to_exclusive(fleet: Fleet, parameters: Mapping[str, Any]) -> Bools:
    """[H] hosts in a domain with somebody who is foreign."""
    foreign = fleet.strangers
    if parameters.get("against", "other_projects") == "others":
        foreign = foreign | fleet.relatives
    domains = domain_of(fleet, parameters.get("level", "host"))
    taken = np.zeros(int(domains.max()) + 1, dtype=np.bool_)
    taken[domains[foreign]] = True
    return taken[domains]


def named_hosts(fleet: Fleet, parameters: Mapping[str, Any], *, fence: bool) -> Bools:
    """[H] the hosts that a fence or a ban means."""
    nowhere = np.zeros(len(fleet.names), dtype=np.bool_)
    names = parameters.get("domains", ())
    named = nowhere.copy()
    rows = [fleet.row_of[name] for name in names if name in fleet.row_of]
    named[rows] = True
    for level, called in fleet.called.items():
        numbers = [number for number, name in enumerate(called) if name in set(names)]
        named |= np.isin(fleet.domains[level], numbers)
    traits = list(parameters.get("traits", ()))
    if not fence:
        for trait in traits:
            named |= fleet.with_trait(trait)
        return named
    return (named if names else ~nowhere) & fleet.with_trait(*traits)


def _fence(case: Case) -> Iterator[str]:
    inside = named_hosts(case.fleet, case.parameters, fence=True)
    yield from ("outside the fence" for row in case.rows if not inside[row])


def _ban(case: Case) -> Iterator[str]:
    banned = named_hosts(case.fleet, case.parameters, fence=False)
    yield from ("on a banned host" for row in case.rows if banned[row])


JUDGES: dict[str, Judge] = {
    "affinity": _affinity,
    "anti-affinity": _anti_affinity,
    "ban": _ban,
    "exclusive": _exclusive,
    "fence": _fence,
    "isolate": _isolate,
    "proximity": _proximity,
    "separation": _separation,
    "spread": _spread,
    "survive": _survive,
}


def faults(fleet: Fleet, request: EnsembleRequest, hosts: Hosts) -> list[str]:
    """What is wrong with a placement: hosts, capacity, traits, required policies."""
    found = [f"{member} has no host" for member in request.members if member not in hosts]
    if found:
        return found
    taken = np.zeros_like(fleet.capacity)
    for member in request.members:
        role, row = request.role_of(member), hosts[member]
        taken[row] += _demand(fleet, role)
        if not suitable(fleet, role)[row]:
            found.append(f"{member} on a host without its traits")
        if fleet.closed[row]:
            found.append(f"{member} on a host that is kept by others")
    over = np.flatnonzero(((taken > 0) & (taken > fleet.free)).any(axis=1))
    found += [f"{fleet.names[row]} is overfull" for row in over.tolist()]
    for statement in request.policies:
        if statement.required:
            for edge in edges(statement, request.roles, request.members):
                judged = JUDGES[statement.type](Case(fleet, request, statement, edge, hosts))
                found += [f"{statement.name}: {text}" for text in judged]
    return found


def suitable(fleet: Fleet, role: Role) -> Bools:
    """[H] the hosts with a role's traits."""
    found = ~fleet.with_trait(*role.forbidden) if role.forbidden else fleet.with_trait()
    for any_of in role.required:
        found &= np.logical_or.reduce([fleet.with_trait(trait) for trait in any_of])
    return found


def _demand(fleet: Fleet, role: Role) -> Ints:
    return np.array([role.resources.get(name, 0) for name in fleet.classes], dtype=np.int64)


def hops(fleet: Fleet, teams: Sequence[str], hosts: Hosts) -> int:
    """The hops of all teams: hosts, racks and zones that each uses beyond its first."""
    total = 0
    for team in teams:
        rows = [row for member, row in hosts.items() if member.role == team]
        total += sum(
            len(np.unique(domain_of(fleet, level)[rows])) - 1 for level in ("host", "rack", "zone")
        )
    return total
