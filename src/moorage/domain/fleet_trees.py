"""Providers below hosts, and those that share with them, spelled out from a fleet."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

from moorage.domain.errors import InvalidDescription
from moorage.domain.fleet import MAX_HOSTS
from moorage.domain.providers import MAX_NAME, ResourceProvider

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.fleet import ChildClass, SharingClass

NAMESPACE: Final = UUID("6f5b7d5e-3c1a-5e0f-9a58-0d5c8a1f7e42")
"""Root of every identifier that follows from a name in a fleet file."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)

SHARES: Final = "MISC_SHARES_VIA_AGGREGATE"
"""The trait by which Placement knows a sharing provider."""


def provider_uuid(name: str) -> str:
    """The UUID of the provider of that name in a fleet file."""
    return str(uuid5(NAMESPACE, f"provider/{name}"))


def aggregate_uuid(name: str) -> str:
    """The UUID of the aggregate of that name; a UUID stands for itself."""
    return name if _UUID.fullmatch(name) else str(uuid5(NAMESPACE, f"aggregate/{name}"))


def spelled_out_children(
    classes: Sequence[ChildClass], parent: ResourceProvider
) -> Iterator[ResourceProvider]:
    """Everybody below a provider, parents first.

    Raises:
        InvalidDescription: two children of one name, or a name that is too long or too many.
    """
    seen: set[str] = set()
    count = 0
    for some in classes:
        aggregates = frozenset(map(aggregate_uuid, some.aggregates))
        for own in some.names.expand():
            name = f"{parent.name}/{own}"
            if own in seen or len(name) > MAX_NAME:
                why = "is declared twice" if own in seen else f"is longer than {MAX_NAME}"
                raise InvalidDescription(
                    f"provider {name} {why}", path="hosts.children", line=some.names.line
                )
            seen.add(own)
            child = ResourceProvider(
                uuid=provider_uuid(name),
                name=name,
                parent_uuid=parent.uuid,
                root_uuid=parent.root_uuid,
                inventories=some.inventories,
                traits=some.traits,
                aggregates=aggregates,
            )
            yield child
            count += 1
            if count > MAX_HOSTS:
                raise InvalidDescription(
                    f"more than {MAX_HOSTS} providers below {parent.name}",
                    path="hosts.children",
                    line=some.names.line,
                )
            yield from spelled_out_children(some.children, child)


def spelled_out_sharing(
    classes: Sequence[SharingClass], taken: set[str]
) -> Iterator[ResourceProvider]:
    """The sharing providers; `taken` are names of others.

    Raises:
        InvalidDescription: a name that is declared twice.
    """
    for some in classes:
        aggregates = frozenset(map(aggregate_uuid, some.aggregates))
        for name in some.names.expand():
            if name in taken:
                raise InvalidDescription(
                    f"provider {name} is declared twice", path="sharing", line=some.names.line
                )
            taken.add(name)
            uuid = provider_uuid(name)
            yield ResourceProvider(
                uuid=uuid,
                name=name,
                parent_uuid=None,
                root_uuid=uuid,
                inventories=some.inventories,
                traits=some.traits | {SHARES},
                aggregates=aggregates,
            )
