"""What members are, in descriptions: a role without the number of its members, or an alternative.

Which fields there may be follows from the kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain import plain_values
from moorage.domain.describe_groups import GROUP_FIELDS, read_groups
from moorage.domain.describe_nested import GROUP_KIND
from moorage.domain.ensembles import MemberKind, Role
from moorage.domain.errors import InvalidDescription
from moorage.domain.resources import amounts, is_custom_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.nova_servers import ServerOptions
    from moorage.domain.request_groups import Group
    from moorage.domain.resources import Amounts

MAX_IMAGE_PROPERTIES: Final = 256
IMAGE_FIELDS: Final = frozenset({"image_properties", "boot_from_volume"})
"""Fields of a role about the image of its servers, and where their root disk is."""
CHOICE_FIELDS: Final = (
    frozenset({"kind", "flavor", "resources", "required", "forbidden", "member_of"})
    | {"on_server", "servers_of"}
    | IMAGE_FIELDS
    | GROUP_FIELDS
)
"""What says where members may be placed; where there are alternatives, each of them has these."""
_OF_SLICES: Final = frozenset({"on_server", "servers_of"})
_OF_SERVERS: Final = CHOICE_FIELDS - _OF_SLICES
_OF_OTHERS: Final = frozenset({"kind", "resources", "required", "forbidden"})
FIELDS_OF: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        MemberKind.SERVER: _OF_SERVERS,
        MemberKind.BAREMETAL: _OF_SERVERS - GROUP_FIELDS,
        MemberKind.SLICE: _OF_OTHERS | _OF_SLICES,
        MemberKind.VOLUME: _OF_OTHERS | {"member_of"},
        MemberKind.PORT: _OF_OTHERS | {"member_of"},
    }
)
"""Kind of members -> those of `CHOICE_FIELDS` that they have."""
PLACING: Final = IMAGE_FIELDS | {"flavor", "resources", "required", "forbidden", "member_of"}
"""Fields of a role that is there which say where its members may be placed, and may change."""
NOT_PLACING: Final = frozenset({"server", "min_available"})
"""Those that may change and do not matter for places: nothing is decided."""
CHANGEABLE: Final = PLACING | NOT_PLACING | {"count"}
"""All fields of a role that may change, besides its name, which says which role it is."""


@dataclass(frozen=True, slots=True)
class RoleDescription:
    """A role as described: a flavor's name or explicit resources, and `count` members."""

    name: str
    count: int = 1
    kind: str = MemberKind.SERVER
    flavor: str | None = None
    resources: Amounts | None = None
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    tags: frozenset[str] = frozenset()
    groups: tuple[Group, ...] = ()
    same_subtree: tuple[frozenset[str], ...] = ()
    isolate: bool = False
    server: ServerOptions | None = None
    image_properties: Mapping[str, str] | None = None
    """Properties of the servers' image; None: nothing is said of it."""
    from_volume: bool = False
    """Whether the root disk is a volume."""
    on_server: str | None = None
    """Of slices: the server on which they must be, by its id or that of its provider."""
    servers_of: frozenset[str] = frozenset()
    """Of slices: whose servers besides their own project's they may be on."""
    alternatives: tuple[RoleDescription, ...] = ()
    """What a member may be instead, in order; each says what places it, and nothing else."""
    path: str = field(default="", compare=False)
    """Its place in a description, for errors."""
    project: str | None = None
    """The project whose servers its members are; None: the ensemble's."""
    min_available: int = 0
    """See `Role.min_available`."""

    @property
    def role(self) -> Role:
        """The role, as far as the description alone says what its members are."""
        said = dict(zip(AS_DESCRIBED, attrgetter(*AS_DESCRIBED)(self), strict=True))
        alternatives = tuple(one.role for one in self.alternatives)
        return Role(resources=self.resources or amounts({}), alternatives=alternatives, **said)


AS_DESCRIBED: Final = tuple(
    one.name
    for one in fields(Role)
    if one.name in {field.name for field in fields(RoleDescription)}
    and one.name not in {"resources", "flavor", "alternatives"}
)
"""Fields that a role has as its description has them; others follow from its flavor, too."""


def read_choice(name: str, source: object, path: str, common: Mapping[str, Any]) -> RoleDescription:
    """What members are, with what the role says for all its alternatives: count, tags, servers."""
    fields = plain_values.mapping(source, path)
    plain_values.only(fields, CHOICE_FIELDS, path)
    kind = plain_values.text(fields.get("kind", MemberKind.SERVER), f"{path}.kind")
    if kind == GROUP_KIND:
        raise InvalidDescription(
            f"{name}: a group of members cannot be one of several alternatives",
            path=f"{path}.kind",
        )
    if kind not in FIELDS_OF:
        raise InvalidDescription(
            f"members of kind {kind} are not known; there are: {', '.join(FIELDS_OF)}",
            path=f"{path}.kind",
        )
    if others := sorted(fields.keys() - FIELDS_OF[kind]):
        raise InvalidDescription(
            f"role {name} is of kind {kind}, which has no {others[0]}", path=f"{path}.{others[0]}"
        )
    flavor = fields.get("flavor")
    resources, on_server = fields.get("resources"), fields.get("on_server")
    grouped = read_groups(fields, path)
    if flavor is None and resources is None and not any(one.resources for one in grouped.groups):
        size, where = "resources", "resources"
        if "flavor" in FIELDS_OF[kind]:
            size, where = "a flavor or resources", "flavor"
        raise InvalidDescription(f"role {name} needs {size}", path=f"{path}.{where}")
    if flavor is not None and resources is not None:
        raise InvalidDescription(
            f"role {name} has a flavor and resources; one of them is its size",
            path=f"{path}.resources",
        )
    if flavor is None and (given := sorted(one for one in IMAGE_FIELDS if fields.get(one))):
        raise InvalidDescription(
            f"role {name} has no flavor, so its image changes nothing", path=f"{path}.{given[0]}"
        )
    taken = None if resources is None else plain_values.positive(resources, f"{path}.resources")
    if taken and kind in {MemberKind.BAREMETAL, MemberKind.SLICE}:
        _check_size(name, kind, taken, f"{path}.resources")
    return RoleDescription(
        **common,
        name=name,
        kind=kind,
        flavor=None if flavor is None else plain_values.name(flavor, f"{path}.flavor"),
        resources=taken,
        required=plain_values.any_of(fields.get("required", ()), f"{path}.required"),
        forbidden=plain_values.names(fields.get("forbidden", ()), f"{path}.forbidden"),
        member_of=plain_values.any_of(fields.get("member_of", ()), f"{path}.member_of"),
        groups=grouped.groups,
        same_subtree=grouped.same_subtree,
        isolate=grouped.isolate,
        image_properties=read_image_properties(
            fields.get("image_properties"), f"{path}.image_properties"
        ),
        from_volume=read_from_volume(fields.get("boot_from_volume"), f"{path}.boot_from_volume"),
        on_server=None if on_server is None else plain_values.name(on_server, f"{path}.on_server"),
        servers_of=plain_values.names(fields.get("servers_of", ()), f"{path}.servers_of"),
    )


def _check_size(name: str, kind: str, taken: Amounts, path: str) -> None:
    """Check that members of a kind can have such resources.

    Raises:
        InvalidDescription: they are other than whole nodes or slices have.
    """
    if kind == MemberKind.BAREMETAL:
        check_whole_node(name, taken, path)
    others = [one for one in taken if not is_custom_name(one)]
    if kind == MemberKind.SLICE and others:
        raise InvalidDescription(
            f"role {name} is of kind {kind}: slices are sized by what servers offer, which are"
            f" custom resource classes (CUSTOM_...), not {min(others)}",
            path=path,
        )


def check_whole_node(name: str, taken: Amounts, path: str) -> None:
    """Check that a member takes a whole node: one unit of a custom class, and nothing else.

    `name` is the role's.

    Raises:
        InvalidDescription: it takes something else.
    """
    if len(taken) != 1 or not all(is_custom_name(one) and n == 1 for one, n in taken.items()):
        said = " ".join(f"{one}={amount}" for one, amount in sorted(taken.items()))
        raise InvalidDescription(
            f"role {name} is of kind {MemberKind.BAREMETAL}: a member takes a whole node, which is"
            f" one unit of its resource class, CUSTOM_..., and nothing else, not {said}",
            path=path,
        )


def read_image_properties(source: object, path: str) -> Mapping[str, str] | None:
    """Read an image's properties, as `openstack image show` prints them; None: none are given.

    Numbers and truth values are taken as text.

    Raises:
        InvalidDescription: another form, or more than `MAX_IMAGE_PROPERTIES` of them.
    """
    if source is None:
        return None
    given = plain_values.mapping(source, path)
    if len(given) > MAX_IMAGE_PROPERTIES:
        raise InvalidDescription(f"more than {MAX_IMAGE_PROPERTIES} image properties", path=path)
    found = {
        plain_values.name(key, path): str(one) if isinstance(one, int) else one
        for key, one in given.items()
    }
    return MappingProxyType(
        {key: plain_values.text(found[key], f"{path}.{key}") for key in sorted(found)}
    )


def read_from_volume(source: object, path: str) -> bool:
    """Read whether the root disk is a volume; not, if nothing is said.

    Raises:
        InvalidDescription: it is no truth value.
    """
    if source is not None and not isinstance(source, bool):
        raise InvalidDescription("boot_from_volume is true or false", path=path)
    return bool(source)
