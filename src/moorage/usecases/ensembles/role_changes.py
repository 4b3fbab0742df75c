"""What a change makes of a role that is there: how its members are placed, and how many there are.

Members that have no server yet are placed anew by a changed role, on the host that they had where
they can. Those with a server keep it as it is: Nova resizes servers.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.describe import read_role
from moorage.domain.describe_members import AS_DESCRIBED, CHANGEABLE, PLACING, RoleDescription
from moorage.domain.errors import InUse, InvalidDescription, UnknownName
from moorage.domain.nova.server_request import ServerRequest, translate
from moorage.domain.refusal_commands import to_end_headroom, to_offer_count, to_see_claims
from moorage.domain.request_groups import GroupKind
from moorage.domain.resources import total
from moorage.domain.words import counted, did_you_mean, spans
from moorage.usecases.decide.member_places import MemberStatus
from moorage.usecases.shared.role_access import check_unshared
from moorage.usecases.shared.role_resolution import resolve_role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.ensembles import Ensemble, Member, Role
    from moorage.domain.member_names import MemberName
    from moorage.domain.nova.server_request import NovaRules
    from moorage.domain.request_groups import Group
    from moorage.domain.resources import Amounts
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.shared.role_resolution import LedgerNames


def read_change(role: Role, source: Mapping[str, object], count: int, path: str) -> RoleDescription:
    """Read the changed fields of a role; what is not given is as it was. It has `count` members.

    Raises:
        InvalidDescription: a field that cannot change, or a value that cannot be read.
    """
    if extra := sorted(source.keys() - CHANGEABLE - {"name"}):
        can = ", ".join(sorted(CHANGEABLE))
        hint = did_you_mean(extra[0], CHANGEABLE)
        raise InvalidDescription(
            f"of role {role.name} can change: {can}; not {', '.join(extra)}{hint}",
            path=f"{path}.{extra[0]}",
        )
    if role.alternatives and (given := sorted(source.keys() & PLACING)):
        raise InvalidDescription(
            f"role {role.name} has alternatives, which stay as they are: describe another role"
            " beside it",
            path=f"{path}.{given[0]}",
        )
    # The reader wants a size, and a count to compare what must be up with.
    filled = {"count": count, **source}
    if not {"flavor", "resources"} & source.keys():
        size = role.resources or {"VCPU": 1}
        filled |= {"resources": dict(size)} if role.flavor is None else {"flavor": role.flavor}
    return read_role({**filled, "kind": role.kind}, path)


def with_changed_places(
    role: Role,
    described: RoleDescription,
    source: Mapping[str, object],
    known: LedgerNames,
    rules: NovaRules,
    path: str,
) -> Role:
    """The role with the fields of `source` that say where its members may be; `described` is read.

    What the role asks for besides its flavor stays, unless it is given. A trait that its former
    flavor asked for, too, goes with that.

    Raises:
        UnknownName: an unknown flavor, resource class or trait.
        InvalidDescription: an image that contradicts the flavor.
    """
    changed = source.keys() & PLACING
    if not changed:
        return role
    before = _own(role, known, rules, path)
    given = {name: getattr(described, name) for name in ("required", "forbidden", "member_of")}
    image = {"image_properties": "image_properties", "from_volume": "boot_from_volume"}
    given |= {name: getattr(described, name) for name in image}
    kept = [name for name in given if image.get(name, name) not in changed]
    if described.flavor is None:
        kept = [name for name in kept if name not in image]
    given |= {name: getattr(before, name) for name in kept}
    sized = replace(before, flavor=described.flavor, resources=described.resources, **given)
    if described.resources is not None and "resources" not in changed and not role.resources:
        sized = replace(sized, resources=None)  # all is taken by its groups
    resolved = resolve_role(sized, known, rules, path)
    return replace(resolved, server=role.server, share=role.share)


def _own(role: Role, known: LedgerNames, rules: NovaRules, path: str) -> RoleDescription:
    """The role's own description: without what its flavor asks for."""
    asked = _asked(role, known, rules, path)
    server = role.nova_server
    described = RoleDescription(**{name: getattr(role, name) for name in AS_DESCRIBED})
    return replace(
        described,
        flavor=role.flavor,
        required=tuple(one for one in role.required if one not in asked.required),
        forbidden=role.forbidden - asked.forbidden,
        groups=_groups(role),
        isolate=role.isolate and not asked.isolate,
        image_properties=None if server is None else server.image_properties,
        from_volume=server is not None and server.from_volume,
    )


def _asked(role: Role, known: LedgerNames, rules: NovaRules, path: str) -> ServerRequest:
    """What the role's present flavor asks for."""
    if role.nova_server is None:
        return ServerRequest(MappingProxyType({}))
    asked = translate(
        role.nova_server,
        rules,
        others=_groups(role),
        specs_path=f"{path}.flavor",
        image_path=f"{path}.image_properties",
    )
    try:
        flavor = known.flavor(role.flavor or "", f"{path}.flavor")
    except UnknownName:  # deleted since
        return asked
    # One of several traits, which a flavor in Placement's terms may ask for, is in no extra spec.
    return replace(asked, required=(*asked.required, *flavor.required))


def _groups(role: Role) -> tuple[Group, ...]:
    return tuple(one for one in role.groups if one.kind is not GroupKind.FLAVOR)


def placed_otherwise(before: Ensemble, after: Ensemble) -> frozenset[str]:
    """Names of roles whose members are placed by another description than before."""
    known = {role.name: _placing(role) for role in before.roles}
    return frozenset(
        role.name
        for role in after.roles
        if role.name in known and known[role.name] != _placing(role)
    )


def _placing(role: Role) -> Role:
    return replace(role, server=None, min_available=0, share=None, tags=frozenset())


def check_places_may_change(
    ensemble: Ensemble, changed: frozenset[str], places: MemberPlaces
) -> None:
    """Check that the members of these roles may be placed by another description.

    Raises:
        WrongState: the role belongs to another project.
        InUse: a server is being built for a member, or the role has headroom of its former size.
    """
    for role in sorted(changed):
        if any(one.name in places.places for one in _of(ensemble.members, role)):
            check_unshared(ensemble, role, to_offer_count(ensemble.name, role))
        building = _with_status(ensemble, role, places, MemberStatus.BUILDING)
        if building:
            raise InUse(
                "role",
                role,
                f"servers of its present size are being built for {spans(role, building)}: wait"
                f" until they are active{to_see_claims(ensemble.name)}",
            )
        spares = len(list(_of(ensemble.headroom, role)))
        if spares:
            raise InUse(
                "role",
                role,
                f"its headroom of {counted(spares, 'place')} has its present size"
                f"{to_end_headroom(ensemble.name, role)}",
            )


def to_place_anew(
    ensemble: Ensemble, changed: frozenset[str], places: MemberPlaces
) -> Mapping[MemberName, str]:
    """The members of these roles that hold a place and have no server -> their present host."""
    return MappingProxyType(
        {
            one.name: places.places[one.name].host
            for one in ensemble.members
            if one.name.role in changed and places.of(one.name) is MemberStatus.HELD
        }
    )


def keeping_servers(
    ensemble: Ensemble, changed: frozenset[str], places: MemberPlaces
) -> tuple[MemberName, ...]:
    """The members of these roles whose servers have another size than their role."""
    return tuple(
        one.name
        for one in ensemble.members
        if one.name.role in changed
        and places.of(one.name) is MemberStatus.ACTIVE
        and total(places.places[one.name].allocations.values()) != _size(ensemble.role_of(one.name))
    )


def _size(role: Role) -> Amounts:
    """What a server of the role takes of each class."""
    return total([role.resources, *(one.resources for one in role.groups)])


def _with_status(
    ensemble: Ensemble, role: str, places: MemberPlaces, status: MemberStatus
) -> list[int]:
    some = _of(ensemble.members, role)
    return [one.name.index for one in some if places.of(one.name) is status]


def _of(members: Iterable[Member], role: str) -> Iterable[Member]:
    return (one for one in members if one.name.role == role)
