"""Facts about domains: members that must share one, or be near others, and cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.explain import Fact
from moorage.policies.levels import members_text
from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    Near,
    SameDomain,
    Skew,
)
from moorage.policies.shared_domains import JoinedMembers, domains_needed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from moorage.domain.member_names import MemberName
    from moorage.domain.topology import Level
    from moorage.engine.explain.member_hosts import UsableHosts

    Bools: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]

_MOST_NAMES = 4
"""Domains that are named to operators at most."""


def domains_without_room(usable: UsableHosts) -> Iterator[Fact]:
    """What excludes that members share a domain, or are near others, whatever their sizes."""
    for one in usable.required:
        if isinstance(one, SameDomain):
            yield from _nowhere_common(
                usable, one.level, [(m,) for m in usable.of_request(one.members)]
            )
            yield from _too_few_inside(usable, one)
            yield from _uneven_in_one(usable, one)
        if isinstance(one, Near):
            ours, others = usable.of_request(one.members), usable.of_request(one.others)
            for member in ours:
                found = tuple(_nowhere_common(usable, one.level, [(member,), others]))
                yield from found
                if found:
                    break
            yield from _apart_and_near(usable, one)
            yield from _too_few_others(usable, one)


def domains_with_too_little(usable: UsableHosts) -> Iterator[Fact]:
    """What excludes it because the domains have too little of some class."""
    if usable.built.problem.choices:
        return
    for one in usable.required:
        if isinstance(one, SameDomain):
            yield from _too_little_in_one(usable, one)
        if isinstance(one, Near):
            yield from _too_few_beside(usable, one)
        if isinstance(one, Skew):
            yield from _too_few_for_skew(usable, one)


def _nowhere_common(
    usable: UsableHosts, level: Level, sides: Sequence[Sequence[MemberName]]
) -> Iterator[Fact]:
    """No domain has hosts that are left to some member of every side."""
    alike: dict[tuple[str, bytes], list[MemberName]] = {}
    for side in sides:
        left = usable.left(side)
        alike.setdefault((usable.roles(side), left.tobytes()), []).extend(side)
    per = {key: usable.domains(level, usable.left(some)) for key, some in alike.items()}
    common = set.intersection(*(set(numbers.tolist()) for numbers in per.values())) if per else {0}
    if common or len(per) < 2:  # noqa: PLR2004 - what one lacks is told by its hosts
        return
    roles = [role for role, _ in per]
    for key, numbers in per.items():
        who = _named(alike[key]) if roles.count(key[0]) > 1 else members_text(tuple(alike[key]))
        yield _counted(usable, level, f"{level}s usable for {who}", numbers)
    every = members_text(tuple(dict.fromkeys(m for some in alike.values() for m in some)))
    yield Fact(f"{level}s usable for all of {every}", 0, 1)


def _named(members: Sequence[MemberName]) -> str:
    """The members by name, if they are few."""
    more = len(members) - _MOST_NAMES
    names = [str(one) for one in members[:_MOST_NAMES]]
    return " and ".join(names + ([f"{more} more"] if more > 0 else []))


def _counted(usable: UsableHosts, level: Level, text: str, numbers: Ints) -> Fact:
    """The number of domains, with their names for operators if they are few."""
    names = [usable.built.terrain.domain_name(level, number) for number in numbers.tolist()]
    exact = f"{text} ({', '.join(names)})" if 0 < len(names) <= _MOST_NAMES else ""
    return Fact(text, len(names), None, exact)


def _too_few_inside(usable: UsableHosts, joining: SameDomain) -> Iterator[Fact]:
    """Members that share a domain need more domains of another level than any one has."""
    joined, outer = set(usable.of_request(joining.members)), usable.of_hosts(joining.level)
    for one in usable.required:
        if not isinstance(one, AtMost | AtLeastDomains | AtMostTogether | Apart):
            continue
        members = usable.of_request((*one.members, *getattr(one, "others", ())))
        if one.level == joining.level or not joined.issuperset(members):
            continue
        needed = 2 if isinstance(one, Apart) else domains_needed(one, len(members))
        left, inner = usable.left(members), usable.of_hosts(one.level)
        inside = left & (outer >= 0) & (inner >= 0)
        pairs = np.unique(np.stack([outer[inside], inner[inside]]), axis=1)
        most = int(np.bincount(pairs[0]).max(initial=0))
        if most < needed:
            where = f"{one.level}s usable for {usable.who(members)}"
            yield Fact(f"{where} in any one {joining.level}, at most", most, needed)


def _uneven_in_one(usable: UsableHosts, joining: SameDomain) -> Iterator[Fact]:
    """Members that share a domain, and would be uneven there over all that count."""
    joined = set(usable.of_request(joining.members))
    for one in usable.required:
        if not isinstance(one, Skew) or one.level != joining.level or len(one.domains) < 2:  # noqa: PLR2004
            continue
        members = usable.of_request(one.members)
        together = sum(member in joined for member in members)
        rest = (len(members) - together) // (len(one.domains) - 1)
        if together - rest > one.limit:
            who = members_text(tuple(m for m in members if m in joined))
            text = f"{who} cannot be in 1 {one.level} without a skew above {one.limit}"
            yield Fact(text, None, None)


def _apart_and_near(usable: UsableHosts, near: Near) -> Iterator[Fact]:
    """Members that must be near others, and in no domain with any of these."""
    for one in usable.required:
        if isinstance(one, Apart):
            sides = [(one.members, one.others), (one.others, one.members)]
        elif isinstance(one, AtMost) and one.limit == 1:
            sides = [(one.members, one.members)]
        else:
            continue
        for ours, theirs in sides if one.level == near.level else ():
            some = tuple(m for m in near.members if m in ours and m not in near.others)
            if some and set(theirs).issuperset(near.others):
                who, others = (members_text(usable.of_request(m)) for m in (some, near.others))
                level = near.level
                yield Fact(
                    f"{who} cannot be in a {level} with {others} and in one without", None, None
                )


def _domains_of_others(usable: UsableHosts, near: Near) -> int:
    """In how many domains the others can be at most, by their number and what joins them."""
    joining = (
        one for one in usable.required if isinstance(one, SameDomain) and one.level == near.level
    )
    return len(JoinedMembers.by(joining).groups(near.others))


def _too_few_others(usable: UsableHosts, near: Near) -> Iterator[Fact]:
    """Members need more domains than there can be with others near them."""
    if usable.built.problem.choices:
        return
    most = _domains_of_others(usable, near)
    for one in usable.required:
        if not isinstance(one, AtMost | AtLeastDomains | AtMostTogether) or one.level != near.level:
            continue
        needed = domains_needed(one, len(one.members))
        if set(near.members).issuperset(one.members) and most < needed:
            others = members_text(usable.of_request(near.others))
            yield Fact(f"{near.level}s in which {others} can be, at most", most, needed)


def _sums(usable: UsableHosts, level: Level, hosts: Bools) -> Ints:
    """[D, K] what is free on these hosts in each domain."""
    numbers = usable.of_hosts(level)
    free = np.maximum(usable.built.problem.free[: len(numbers)], 0)
    found = np.zeros((int(numbers.max(initial=-1)) + 1, free.shape[1]), dtype=np.int64)
    inside = hosts & (numbers >= 0)
    np.add.at(found, numbers[inside], free[inside])
    return found


def _moving(usable: UsableHosts, members: Sequence[MemberName]) -> list[int]:
    problem = usable.built.problem
    numbers = (problem.position_of[member] for member in members)
    return [number for number in numbers if problem.fixed[number] < 0]


def _too_little_in_one(usable: UsableHosts, one: SameDomain) -> Iterator[Fact]:
    """No domain has room for all members that share one."""
    problem, level = usable.built.problem, one.level
    numbers = usable.of_hosts(level)
    size = int(numbers.max(initial=-1)) + 1
    fits = np.ones(size, dtype=np.bool_)
    for hosts in usable.different(usable.of_request(one.members)):
        mine = np.zeros(size, dtype=np.bool_)
        mine[usable.domains(level, hosts)] = True
        fits &= mine
    moving = _moving(usable, one.members)
    needed = problem.demand[problem.role_of[moving]].sum(axis=0)
    sums = _sums(usable, level, usable.left(problem.members[m] for m in moving))
    enough = sums >= needed
    if (fits & enough.all(axis=1)).any():
        return
    text = f"{level}s with room for {members_text(usable.of_request(one.members))}"
    for k in np.flatnonzero(needed).tolist():
        if k < len(usable.built.terrain.classes) and not (fits & enough[:, k]).any():
            name, who = problem.classes[k], usable.who(one.members)
            most = int(sums[fits, k].max(initial=0))
            free = f"{name} free on hosts usable for {who} in any one {level}, at most"
            yield Fact(free, most, int(needed[k]))
            return
    yield Fact(text, 0, 1)


def _too_few_beside(usable: UsableHosts, near: Near) -> Iterator[Fact]:
    """Fewer members fit beside others than there are, in as many domains as others can be in."""
    problem, level = usable.built.problem, near.level
    ours, others = _moving(usable, near.members), _moving(usable, near.others)
    if len(ours) < len(near.members) or len(others) < len(near.others) or not ours or not others:
        return
    least, beside = (problem.demand[problem.role_of[some]].min(axis=0) for some in (ours, others))
    hosts = usable.left(near.members)
    taken = least > 0
    if not taken.any():
        return
    room = _sums(usable, level, hosts | usable.left(near.others))
    places = ((room - beside)[:, taken] // least[taken]).min(axis=1)
    places = np.minimum(places, _places(usable, level, hosts, least))
    for some in (near.members, near.others):
        here = np.isin(np.arange(len(places)), usable.domains(level, usable.left(some)))
        places = np.where(here & (room >= beside).all(axis=1), places, 0)
    most = _domains_of_others(usable, near)
    have = int(np.sort(np.clip(places, 0, len(ours)))[::-1][:most].sum())
    if have < len(ours):
        who, by = (members_text(usable.of_request(some)) for some in (near.members, near.others))
        where = f"{most} {level}{'s' if most > 1 else ''}"
        yield Fact(f"places for {who} in {where} beside {by}, at most", have, len(ours))


def _places(usable: UsableHosts, level: Level, hosts: Bools, demand: Ints) -> Ints:
    """[D] how many members of this demand fit, host by host, in each domain."""
    numbers = usable.of_hosts(level)
    free = np.maximum(usable.built.problem.free[: len(numbers)], 0)
    taken = demand > 0
    found = np.zeros(int(numbers.max(initial=-1)) + 1, dtype=np.int64)
    inside = hosts & (numbers >= 0)
    each = (free[inside][:, taken] // demand[taken]).min(axis=1)
    np.add.at(found, numbers[inside], each)
    return found


def _too_few_for_skew(usable: UsableHosts, one: Skew) -> Iterator[Fact]:
    """Fewer members fit than there are if no domain holds too many more than the fullest can."""
    problem = usable.built.problem
    moving = _moving(usable, one.members)
    if len(moving) < len(one.members) or not one.domains:
        return
    least = problem.demand[problem.role_of[moving]].min(axis=0)
    if not (least > 0).any():
        return
    places = _places(usable, one.level, usable.left(one.members), least)
    fewest = int(places[list(one.domains)].min())
    have = int(np.minimum(places, fewest + one.limit).sum())
    if have < len(moving):
        who = usable.who(one.members)
        text = f"places for {who} in the {one.level} that counts and has the fewest"
        yield Fact(text, fewest, None)
        more = f"at most {one.limit} more in any other" if one.limit else "no more in any other"
        yield Fact(f"places for {who} with {more}", have, len(moving))
