"""How many hosts each element of a conflict leaves to members by itself, where all leave none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.explain import Element, Fact
from moorage.engine.explain.elements import (
    AGGREGATES,
    CLOSED,
    DEVICES,
    POLICY,
    RESOURCES,
    TRAITS,
    closed_hosts,
    closed_pools,
    without_elements,
)
from moorage.engine.explain.member_hosts import UsableHosts, described

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.member_names import MemberName

_MEETING: Final = {
    RESOURCES: "with room for one",
    TRAITS: "that meet the traits of",
    AGGREGATES: "in the aggregates of",
    DEVICES: "with the devices of one",
}
"""Kind of an element of a role -> how hosts that meet it are told."""
_MOST_ELEMENTS: Final = 8
"""Elements that are told one by one at most; each takes building the problem once more."""


def narrowing_facts(
    usable: UsableHosts, core: Sequence[Element], members: Sequence[MemberName]
) -> Iterator[Fact]:
    """The number of hosts that each element leaves to the members of a role by itself.

    Of closed hosts their number. A single element of the request is told by what is left.
    """
    built, first = usable.built, members[0]
    concerned = [one for one in core if _concerns(usable, one, first)]
    single = len(concerned) < 2 and not any(one.kind == CLOSED for one in concerned)  # noqa: PLR2004
    # More are no minimal conflict, as those that counting alone has shown.
    if single or len(concerned) > _MOST_ELEMENTS:
        return
    role = built.request.role_of(first)
    giver, kind = usable.giver(members), usable.giving(first)
    for one in concerned:
        if one.kind == CLOSED:
            shut = int((closed_hosts(built, one) & built.of_kind & kind).sum())
            yield Fact(one.said, shut + closed_pools(built, one), None)
            continue
        alone = UsableHosts(without_elements(built, frozenset(core) - {one}), usable.whole)
        whole = f"{giver}s that {one.name} allows for {usable.who(members)}"
        if one.kind == POLICY:
            yield Fact(whole, int((alone.left(members) & kind).sum()), None)
            continue
        masks = alone.of_choices(first)
        for choice, mask in enumerate(masks):
            which = f" (alternative {choice})" if len(masks) > 1 else ""
            count = int((mask & kind).sum())
            yield Fact(f"{giver}s {_MEETING[one.kind]} {role.name}{which}", count, None)


def _concerns(usable: UsableHosts, one: Element, member: MemberName) -> bool:
    if one.kind == CLOSED:
        rows = closed_hosts(usable.built, one) & usable.built.of_kind & usable.giving(member)
        return bool(rows.any() or closed_pools(usable.built, one))
    if one.kind == POLICY:
        posted = (each for each in usable.required if each.policy == one.name)
        return any(member in map(described, each.members) for each in posted)
    return one.name == member.role
