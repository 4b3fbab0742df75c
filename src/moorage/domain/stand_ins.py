"""Stand-ins: providers by which another Placement knows the virtual classes of Moorage.

Nova keeps a flavor's extra specs for a server's life, and requests their classes whenever the
server is moved. A Placement that does not know a class answers 400, so each host gets a child with
an inventory of every class that some server's flavor requests. Not a sharing provider in the hosts'
aggregates: Nova names the destination of a move by `in_tree`, which leaves those out, as it does by
`member_of` with an availability zone. Not the host's own inventory: drivers rewrite it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

from moorage.domain.errors import InvalidDescription
from moorage.domain.providers import SHARING_TRAIT, Inventory, ResourceProvider
from moorage.domain.resources import MAX_AMOUNT
from moorage.domain.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from moorage.domain.content import AllocationSet, Content
    from moorage.domain.resources import ResourceClass
    from moorage.domain.servers import Server

_NAMESPACE: Final = UUID("a3f27c1e-5d0b-4a86-9e0f-6b1f3f1d7c42")


@dataclass(frozen=True, slots=True)
class TiedServer:
    """A server whose flavor requests virtual classes."""

    server: Server
    classes: frozenset[ResourceClass]


def tied_servers(servers: Iterable[Server]) -> tuple[TiedServer, ...]:
    """The servers whose flavors request virtual classes.

    Raises:
        InvalidDescription: Nova does not show what a flavor requests.
    """
    found = []
    for one in servers:
        if one.classes is None:
            raise InvalidDescription(
                f"Nova does not show the extra specs of server {one.uuid}'s flavor: ask as an"
                " operator who may see them (servers:show:flavor-extra-specs)"
            )
        if one.classes:
            found.append(TiedServer(one, one.classes))
    return tuple(found)


def stand_in_id(host: str) -> str:
    """The UUID of a host's stand-in."""
    return str(uuid5(_NAMESPACE, host))


def is_stand_in(uuid: str, parent: str | None) -> bool:
    """Whether a provider is its parent's stand-in."""
    return parent is not None and uuid == stand_in_id(parent)


def stand_in_name(host: str) -> str:
    """The name of a host's stand-in."""
    return f"moorage-classes-{host}"


def stock(classes: Iterable[ResourceClass]) -> tuple[Inventory, ...]:
    """Inventories that never end: these classes limit nothing."""
    return tuple(Inventory(name, MAX_AMOUNT) for name in sorted(classes))


def with_stand_ins(content: Content, classes: AbstractSet[ResourceClass]) -> Content:
    """The content with a stand-in under each host."""
    if not classes:
        return content
    made = (
        ResourceProvider(
            stand_in_id(one.uuid), stand_in_name(one.uuid), one.uuid, one.uuid, inventories=stocked
        )
        for stocked in (stock(classes),)
        for one in content.providers.values()
        if one.parent_uuid is None and SHARING_TRAIT not in one.traits
    )
    names = (*content.resource_classes, *sorted(classes - set(content.resource_classes)))
    providers = {**content.providers, **{one.uuid: one for one in made}}
    return replace(content, providers=providers, resource_classes=names)


def without_stand_ins(content: Content) -> Content:
    """The content without stand-ins, their allocations, and the classes of which only they have.

    A remark tells how many there were.
    """
    gone = {
        one.uuid for one in content.providers.values() if is_stand_in(one.uuid, one.parent_uuid)
    }
    if not gone:
        return content
    left = {key: one for key, one in content.providers.items() if key not in gone}
    classes = set(_stocked(content, gone)) - set(_stocked(content, left.keys()))
    told = (
        f"{counted(len(gone), 'provider')} that stand in for virtual classes of Moorage, with what"
        " is allocated there: left out"
    )
    return replace(
        content,
        providers=left,
        consumers={key: one for key, one in _cut(content, gone) if one.allocations},
        resource_classes=tuple(one for one in content.resource_classes if one not in classes),
        class_times={key: at for key, at in content.class_times.items() if key not in classes},
        remarks=(*content.remarks, told),
        stand_ins=len(gone),
    )


def _stocked(content: Content, uuids: AbstractSet[str]) -> Iterator[ResourceClass]:
    for uuid in uuids:
        for item in content.providers[uuid].inventories:
            yield item.resource_class


def _cut(content: Content, gone: AbstractSet[str]) -> Iterator[tuple[str, AllocationSet]]:
    for key, one in content.consumers.items():
        if gone.isdisjoint(one.allocations):
            yield key, one
        else:
            rest = {uuid: of for uuid, of in one.allocations.items() if uuid not in gone}
            yield key, replace(one, allocations=rest)
