"""Ports, volumes and groups of a server request against those that were decided.

A list that the request does not give is not compared: its devices stay as they were decided.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.describe_groups import LISTS, read_groups
from moorage.domain.placement import Place
from moorage.domain.resources import amounts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.ensembles import Group, Role
    from moorage.domain.resources import Amounts

Groups = tuple["Group", ...]


def read_lists(server: Mapping[str, object]) -> Mapping[str, Groups]:
    """Field -> its groups, for every list that the request gives.

    Raises:
        InvalidDescription: one that cannot be understood.
    """
    given = {field: server[field] for field in LISTS if field in server}
    groups = read_groups(given, "server").groups
    return MappingProxyType(
        {field: tuple(one for one in groups if one.kind is LISTS[field]) for field in given}
    )


def as_requested(role: Role, lists: Mapping[str, Groups]) -> Groups:
    """The role's groups, those of the given lists replaced by what is requested."""
    kept = (one for one in role.groups if f"{one.kind}s" not in lists)
    return (*kept, *(one for groups in lists.values() for one in groups))


def differences(
    role: Role, lists: Mapping[str, Groups]
) -> Iterator[tuple[str, str, object, object]]:
    """(path, effect, described, requested) of everything that differs."""
    for field, groups in lists.items():
        described = {one.name: one for one in role.groups if one.kind is LISTS[field]}
        requested = {one.name: one for one in groups}
        for name in sorted({*described, *requested}):
            path = f"{field}.{name}"
            before, after = described.get(name), requested.get(name)
            if after is None:
                yield path, "narrower", name, None
            elif before is None:
                yield path, "exceeds", None, name
            else:
                yield from _group(path, before, after)


def _group(path: str, before: Group, after: Group) -> Iterator[tuple[str, str, object, object]]:
    for name in sorted({*before.resources, *after.resources}):
        had, asks = before.resources.get(name, 0), after.resources.get(name, 0)
        if had != asks:
            yield f"{path}.{name}", "exceeds" if asks > had else "narrower", had, asks
    for field in ("required", "member_of"):
        known: frozenset[frozenset[str]] = frozenset(getattr(before, field))
        asked: frozenset[frozenset[str]] = frozenset(getattr(after, field))
        for one in sorted(map(sorted, asked - known)):
            wider = any(other <= set(one) for other in known)
            yield f"{path}.{field}", "narrower" if wider else "exceeds", None, list(one)
        for one in sorted(map(sorted, known - asked)):
            yield f"{path}.{field}", "narrower", list(one), None
    for trait in sorted(after.forbidden - before.forbidden):
        yield f"{path}.forbidden", "exceeds", None, trait
    for trait in sorted(before.forbidden - after.forbidden):
        yield f"{path}.forbidden", "narrower", trait, None
    if after.beside != before.beside:
        effect = "exceeds" if after.beside else "narrower"
        yield f"{path}.same_subtree", effect, before.beside, after.beside


def narrowed(place: Place, role: Role, resources: Amounts, groups: Groups) -> Place:
    """The place with no more than a request asks for, from the same providers.

    Args:
        place: where the member stands; it has at least what is asked for.
        role: what the place was made for.
        resources: what is requested of the member's own.
        groups: what is requested beside.
    """
    of = _own_givers(place, role)
    taken: dict[str, dict[str, int]] = {}
    wanted = [(of.get(name, place.host), name, amount) for name, amount in resources.items()]
    for group in groups:
        giver = place.groups.get(group.name, place.host)
        wanted += [(giver, name, amount) for name, amount in group.resources.items()]
    for giver, name, amount in wanted:
        mine = taken.setdefault(giver, {})
        mine[name] = mine.get(name, 0) + amount
    kept = {one.name for one in groups}
    return Place(
        host=place.host,
        allocations=MappingProxyType({uuid: amounts(taken[uuid]) for uuid in sorted(taken)}),
        groups=MappingProxyType(
            {name: uuid for name, uuid in place.groups.items() if name in kept}
        ),
    )


def _own_givers(place: Place, role: Role) -> dict[str, str]:
    """Resource class -> who gives the member's own: what its groups do not take."""
    left = {
        (uuid, name): amount
        for uuid, taken in place.allocations.items()
        for name, amount in taken.items()
    }
    for group in role.groups:
        giver = place.groups.get(group.name)
        if giver is not None:
            for name, amount in group.resources.items():
                left[giver, name] = left.get((giver, name), 0) - amount
    return {name: uuid for (uuid, name), amount in left.items() if amount > 0}
