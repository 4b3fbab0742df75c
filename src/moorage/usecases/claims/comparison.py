"""Compare the server request of a claim with the role that the decision placed.

The request must ask for what the role describes, or for less. Fields that do not matter for
placement are ignored by name (`IGNORED`); an unknown field is refused, because it might matter.

A list of ports, volumes or groups that the request leaves out is not compared: its devices stay
as they were decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.describe_groups import LISTS, read_groups
from moorage.domain.describe_members import IMAGE_FIELDS, read_from_volume, read_image_properties
from moorage.domain.errors import DescriptionMismatch, InvalidDescription
from moorage.domain.nova.flavors import server_of, server_request
from moorage.domain.nova.server_request import each_required
from moorage.domain.placement import Place
from moorage.domain.request_groups import GroupKind
from moorage.domain.resources import amounts
from moorage.usecases.shared.role_resolution import find_flavor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moorage.domain.ensembles import Role
    from moorage.domain.flavors import Flavor
    from moorage.domain.member_names import MemberName
    from moorage.domain.nova.server_request import NovaRules, ServerRequest
    from moorage.domain.request_groups import Group
    from moorage.domain.resources import Amounts
    from moorage.usecases.ports import Store


Groups = tuple["Group", ...]


def read_lists(server: Mapping[str, object]) -> Mapping[str, Groups]:
    """Field of `LISTS` -> its groups, for every such field in the request.

    Raises:
        InvalidDescription: a list is malformed.
    """
    given = {field: server[field] for field in LISTS if field in server}
    groups = read_groups(given, "server").groups
    return MappingProxyType(
        {field: tuple(one for one in groups if one.kind is LISTS[field]) for field in given}
    )


def as_requested(role: Role, lists: Mapping[str, Groups]) -> Groups:
    """The role's groups, with every list that the request gives replaced by the requested one."""
    kept = (one for one in role.groups if f"{one.kind}s" not in lists)
    return (*kept, *(one for groups in lists.values() for one in groups))


def narrowed(place: Place, role: Role, resources: Amounts, groups: Groups) -> Place:
    """The place reduced to the requested amounts, on the same providers.

    The place has at least the requested amounts; `resources` are those outside of any group.
    """
    of = _own_givers(place, role)
    taken: dict[str, dict[str, int]] = {}
    requested = [(of.get(name, place.host), name, amount) for name, amount in resources.items()]
    for group in groups:
        giver = place.groups.get(group.name, place.host)
        requested += [(giver, name, amount) for name, amount in group.resources.items()]
    for giver, name, amount in requested:
        mine = taken.setdefault(giver, {})
        mine[name] = mine.get(name, 0) + amount
    kept = {one.name for one in groups}
    return Place(
        host=place.host,
        allocations=MappingProxyType({uuid: amounts(taken[uuid]) for uuid in sorted(taken)}),
        groups=MappingProxyType(
            {name: uuid for name, uuid in place.groups.items() if name in kept}
        ),
        choice=place.choice,
    )


def _own_givers(place: Place, role: Role) -> dict[str, str]:
    """Resource class -> provider of the amounts that belong to no group of the role."""
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


IGNORED: Final = frozenset(
    {
        *("name", "description", "hostname", "metadata", "tags", "key_name", "user_data"),
        *("image", "imageRef", "networks", "security_groups", "config_drive", "personality"),
        *("adminPass", "accessIPv4", "accessIPv6", "OS-DCF:diskConfig"),
    }
)
"""Fields of a server request that do not matter for placement here."""

SIZE: Final = frozenset({"flavor", "flavorRef", "resources"})
MATTERS: Final = SIZE | {"required", "forbidden", "availability_zone", *IMAGE_FIELDS, *LISTS}
_NOVA_FIELDS: Final = MappingProxyType(
    dict.fromkeys(("flavor", "flavorRef"), "flavor")
    | dict.fromkeys(("image", "imageRef", *IMAGE_FIELDS), "image")
)
"""Fields of a server request that only members have that Nova makes -> what they say."""
FLAVOR_GROUPS: Final = "flavors"
"""The list of the flavor's groups beside those of `LISTS`."""
_KINDS: Final = {**LISTS, FLAVOR_GROUPS: GroupKind.FLAVOR}


@dataclass(frozen=True, slots=True)
class RequestedServer:
    """The parts of a server request that matter for placement."""

    resources: Amounts
    required: frozenset[frozenset[str]]
    forbidden: frozenset[str]
    prefix: str
    """Path prefix of its amounts in a difference: `flavor` or `resources`."""
    zone: str | None = None
    ignored: tuple[str, ...] = ()
    lists: Mapping[str, Groups] = field(default_factory=lambda: MappingProxyType({}))
    """The groups of `ports`, `volumes` and `groups`, for those that the request gives, and of its
    flavor."""
    root_required: frozenset[str] | None = None
    """Traits of the host itself; None: the request names no flavor."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The verdict (`matches`, `narrower` or `differs`) and the differences behind it."""

    verdict: str
    diff: tuple[Mapping[str, object], ...]


def read_server_request(
    store: Store, server: Mapping[str, object], role: Role, rules: NovaRules
) -> RequestedServer:
    """Parse a server request, with a flavor as Nova's or with explicit resources.

    If it says nothing of its image or its root disk, those of the member's role are meant. The
    request of what is no server may be empty: it is as described.

    Raises:
        InvalidDescription: an unknown or malformed field, or not exactly one size; or the flavor or
            image of what has none.
    """
    for name in server:
        if name not in IGNORED | MATTERS:
            raise InvalidDescription(
                f"server field {name} is unknown and might matter for placement; leave it out",
                path=f"server.{name}",
            )
        if name in _NOVA_FIELDS and not role.of_nova:
            raise InvalidDescription(
                f"role {role.name} is of kind {role.kind}, which has no {_NOVA_FIELDS[name]};"
                " leave it out",
                path=f"server.{name}",
            )
    ignored = tuple(sorted(IGNORED & set(server)))
    if not role.of_nova and not MATTERS & set(server):
        required = frozenset(role.required)
        return RequestedServer(
            role.resources, required, role.forbidden, "resources", ignored=ignored
        )
    sizes = _sizes(server, role)
    groups = frozenset(frozenset({trait}) for trait in _traits(server, "required"))
    forbidden = _traits(server, "forbidden")
    # All amounts may be in groups, as in a role without a size.
    resources, prefix = amounts({}), "resources"
    root: frozenset[str] | None = None
    lists = dict(read_lists(server))
    if sizes == ["resources"]:
        resources = _resources(server["resources"])
    elif sizes:
        size, path = server[sizes[0]], f"server.{sizes[0]}"
        if not isinstance(size, str):
            raise InvalidDescription("a flavor is named by a string", path=path)
        asked = _asked(find_flavor(store, size, path), server, role, rules, path)
        resources, prefix, root = asked.resources, "flavor", asked.root_required
        groups, forbidden = groups.union(asked.required), forbidden | asked.forbidden
        lists[FLAVOR_GROUPS] = asked.groups
    zone = server.get("availability_zone")
    if zone is not None and not isinstance(zone, str):
        raise InvalidDescription(
            "an availability zone is a string", path="server.availability_zone"
        )
    return RequestedServer(
        resources=resources,
        required=groups,
        forbidden=forbidden,
        prefix=prefix,
        zone=zone,
        ignored=ignored,
        lists=MappingProxyType(lists),
        root_required=root,
    )


def _sizes(server: Mapping[str, object], role: Role) -> list[str]:
    """The field with the server's size; none if all of it is in its ports and other groups.

    Raises:
        InvalidDescription: several sizes, or none at all.
    """
    sizes = sorted(SIZE & set(server))
    if len(sizes) > 1:
        raise InvalidDescription(
            f"a server has one size, not {' and '.join(sizes)}", path=f"server.{sizes[1]}"
        )
    if not sizes and not LISTS.keys() & set(server):
        told = f"the flavor of role {role.name} is {role.flavor}"
        if role.flavor is None:
            told = f"role {role.name} has no flavor: any flavor of its size will do, or resources"
        raise InvalidDescription(
            f"the server's flavor is missing (flavorRef, --flavor); {told}",
            path="server.flavorRef",
        )
    return sizes


def _asked(
    flavor: Flavor, server: Mapping[str, object], role: Role, rules: NovaRules, path: str
) -> ServerRequest:
    """What Nova asks for a server with this flavor."""
    before = role.nova_server
    image = None if before is None else before.image_properties
    from_volume = before is not None and before.from_volume
    if "image_properties" in server:
        image = read_image_properties(server["image_properties"], "server.image_properties")
    if "boot_from_volume" in server:
        from_volume = read_from_volume(server["boot_from_volume"], "server.boot_from_volume")
    return server_request(
        flavor,
        server_of(flavor, image, from_volume=from_volume),
        rules,
        others=tuple(one for one in role.groups if one.kind is not GroupKind.FLAVOR),
        path=path,
        image_path="server.image_properties",
    )


def compare(role: Role, requested: RequestedServer, zones: frozenset[str]) -> Comparison:
    """Compare a server request with the member's role; `zones` are those of the member's host."""
    diff = [
        *amount_differences(requested.prefix, role.resources, requested.resources),
        *_requirements("required", role.required, requested.required),
        *_forbidden("forbidden", role.forbidden, requested.forbidden),
        *_root_traits(role, requested),
        *_zone(requested, zones),
        *group_differences(role, requested.lists),
    ]
    effects = {one["effect"] for one in diff}
    verdict = "differs" if effects - {"narrower"} else "narrower" if effects else "matches"
    ignored = [MappingProxyType({"path": n, "effect": "ignored"}) for n in requested.ignored]
    return Comparison(verdict, (*diff, *ignored))


def check_agreement(member: MemberName, comparison: Comparison) -> None:
    """Refuse a server request that differs from the role; matching and narrower ones pass.

    Raises:
        DescriptionMismatch: the request asks for more than the role, or for other things.
    """
    if comparison.verdict == "differs":
        raise DescriptionMismatch(str(member), comparison.diff)


def _resources(size: object) -> Amounts:
    path = "server.resources"
    if not isinstance(size, Mapping) or not size:
        raise InvalidDescription("resources map classes to amounts", path=path)
    for name, amount in size.items():
        if not isinstance(name, str) or not isinstance(amount, int):
            raise InvalidDescription("resources map classes to whole numbers", path=path)
    return amounts(size, path=path)


def _traits(server: Mapping[str, object], field: str) -> frozenset[str]:
    names = server.get(field, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidDescription(f"{field} is a list of traits", path=f"server.{field}")
    return frozenset(names)


def group_differences(role: Role, lists: Mapping[str, Groups]) -> Iterator[Mapping[str, object]]:
    """Every difference between the role's groups and the given lists."""
    for kind, groups in lists.items():
        described = {one.name: one for one in role.groups if one.kind is _KINDS[kind]}
        requested = {one.name: one for one in groups}
        for name in sorted({*described, *requested}):
            path = f"{kind}.{name}"
            before, after = described.get(name), requested.get(name)
            if after is None:
                yield difference(path, "narrower", name, None)
            elif before is None:
                yield difference(path, "exceeds", None, name)
            else:
                yield from _group(path, before, after)


def _group(path: str, before: Group, after: Group) -> Iterator[Mapping[str, object]]:
    yield from amount_differences(path, before.resources, after.resources)
    yield from _requirements(f"{path}.required", before.required, after.required)
    yield from _requirements(f"{path}.member_of", before.member_of, after.member_of)
    yield from _forbidden(f"{path}.forbidden", before.forbidden, after.forbidden)
    if after.beside != before.beside:
        effect = "exceeds" if after.beside else "narrower"
        yield difference(f"{path}.same_subtree", effect, before.beside, after.beside)


def amount_differences(
    path: str, described: Amounts, requested: Amounts
) -> Iterator[Mapping[str, object]]:
    """The resource classes of which other amounts are requested."""
    for name in sorted({*described, *requested}):
        before, after = described.get(name, 0), requested.get(name, 0)
        if before != after:
            effect = "exceeds" if after > before else "narrower"
            yield difference(f"{path}.{name}", effect, before, after)


def _requirements(
    path: str, described: Iterable[frozenset[str]], requested: Iterable[frozenset[str]]
) -> Iterator[Mapping[str, object]]:
    known, named = frozenset(described), frozenset(requested)
    for names in sorted(map(sorted, named - known)):
        # Any one of a larger set is a weaker requirement.
        wider = any(other <= set(names) for other in known)
        yield difference(path, "narrower" if wider else "exceeds", None, names)
    for names in sorted(map(sorted, known - named)):
        yield difference(path, "narrower", names, None)


def _forbidden(
    path: str, described: frozenset[str], requested: frozenset[str]
) -> Iterator[Mapping[str, object]]:
    for trait in sorted(requested - described):
        yield difference(path, "exceeds", None, trait)
    for trait in sorted(described - requested):
        yield difference(path, "narrower", trait, None)


def _root_traits(role: Role, requested: RequestedServer) -> Iterator[Mapping[str, object]]:
    if requested.root_required is not None:
        described = each_required(role.root_required)
        yield from _requirements("root_required", described, each_required(requested.root_required))


def _zone(requested: RequestedServer, zones: frozenset[str]) -> Iterator[Mapping[str, object]]:
    if requested.zone is not None and requested.zone not in zones:
        yield difference("availability_zone", "elsewhere", None, requested.zone)


def difference(
    path: str, effect: str, described: object, requested: object
) -> Mapping[str, object]:
    """One difference between a request and a description."""
    return MappingProxyType(
        {"path": path, "effect": effect, "described": described, "requested": requested}
    )
