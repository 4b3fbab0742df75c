"""The `load` section of a fleet file: load placed by hand, or drawn from a seed."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.fleet import MAX_HOSTS, DrawnLoad, Names, PlacedLoad
from moorage.domain.resources import MAX_AMOUNT, amounts
from moorage.heat import expect

if TYPE_CHECKING:
    from moorage.heat.marked import Marked

MAX_SEED: Final = 2**63 - 1
MAX_WEIGHT: Final = 1_000_000


def read_load(node: Marked) -> PlacedLoad | DrawnLoad:
    """Read one entry: with `on` it is placed by hand, with `seed` it is drawn.

    Raises:
        InvalidDescription: neither or both, or a field that cannot be read.
    """
    fields = expect.mapping(node)
    if ("on" in fields) == ("seed" in fields):
        raise node.invalid("a load needs either on (placed by hand) or seed (drawn)")
    return _placed(node) if "on" in fields else _drawn(node)


def _placed(node: Marked) -> PlacedLoad:
    fields = expect.mapping(node, required=("name", "on", "resources"), optional=("project",))
    hosts = fields["on"]
    listed = expect.items(hosts, least=1) if isinstance(hosts.value, list) else [hosts]
    sizes = {
        name: expect.integer(one, least=1, most=MAX_AMOUNT)
        for name, one in expect.mapping(fields["resources"]).items()
    }
    try:
        resources = amounts(sizes)
    except InvalidDescription as error:
        raise expect.placed(error, fields["resources"]) from error
    return PlacedLoad(
        name=expect.name(fields["name"]),
        hosts=tuple(map(_hosts, listed)),
        amounts=resources,
        project=expect.name(fields["project"]) if "project" in fields else "neighbour",
        line=node.line,
    )


def _hosts(node: Marked) -> Names:
    if isinstance(node.value, dict):
        fields = expect.mapping(node, required=("name", "count"), optional=("first",))
        names = Names(
            expect.text(fields["name"]),
            expect.integer(fields["count"], least=1, most=MAX_HOSTS),
            expect.integer(fields["first"], least=0, most=MAX_AMOUNT) if "first" in fields else 1,
            node.line,
        )
    else:
        names = Names(expect.name(node), line=node.line)
    try:
        names.expand()
    except InvalidDescription as error:
        raise node.invalid(error.message) from error
    return names


def _drawn(node: Marked) -> DrawnLoad:
    fields = expect.mapping(
        node,
        required=("name", "seed", "fill", "flavors"),
        optional=("uneven", "of", "classes", "projects"),
    )
    uneven = expect.mapping(fields["uneven"]) if "uneven" in fields else {}
    return DrawnLoad(
        name=expect.name(fields["name"]),
        seed=expect.integer(fields["seed"], least=0, most=MAX_SEED),
        mean=expect.number(fields["fill"], least=0, most=1),
        flavors=MappingProxyType(
            {
                name: expect.integer(one, least=1, most=MAX_WEIGHT)
                for name, one in expect.mapping(fields["flavors"]).items()
            }
        ),
        uneven=MappingProxyType(
            {level: expect.number(one, least=0, most=1) for level, one in uneven.items()}
        ),
        resource_class=expect.text(fields["of"]) if "of" in fields else "VCPU",
        classes=frozenset(expect.texts(fields["classes"])) if "classes" in fields else frozenset(),
        projects=expect.integer(fields["projects"], least=1, most=MAX_HOSTS)
        if "projects" in fields
        else 20,
        line=node.line,
    )
