"""Where a fleet's hosts stand: its domains, the places it says by name, and its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.errors import InvalidDescription
from moorage.domain.topology import Attachment, Domain
from moorage.domain.topology_rules import TopologyRules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from moorage.domain.fleet import DomainClass, Fleet, HostClass, KnownHosts, SharingClass


def rules_of(fleet: Fleet) -> TopologyRules:
    """What the fleet says of the places of hosts, be they its own or a ledger's.

    Raises:
        InvalidDescription: a place in a tree that the fleet does not have.
    """
    return TopologyRules(
        levels=fleet.levels,
        rules=fleet.rules,
        domains=tuple(_domains(fleet)),
        attachments=tuple(_attachments(fleet)),
        complete=fleet.complete,
    )


def _domains(fleet: Fleet) -> Iterator[Domain]:
    for some in fleet.domains:
        names = some.names.expand()
        parents = _parents(some, len(names))
        for name, parent in zip(names, parents, strict=True):
            yield Domain(name, some.level, some.tree, parent, some.names.line)


def _parents(some: DomainClass, count: int) -> tuple[str | None, ...]:
    return (None,) * count if some.parents is None else some.parents.over(count)


def _attachments(fleet: Fleet) -> Iterator[Attachment]:
    placed: dict[str, Sequence[HostClass | KnownHosts | SharingClass]] = {
        "hosts": [*fleet.hosts, *fleet.known],
        "sharing": fleet.sharing,
    }
    for section, some in ((key, one) for key, every in placed.items() for one in every):
        names = some.names.expand()
        for tree, spread in some.places.items():
            if tree not in fleet.levels:
                raise InvalidDescription(
                    f"{some.names.pattern} is placed in unknown tree {tree}",
                    path=f"{section}.place",
                    line=some.names.line,
                )
            for name, domain in zip(names, spread.over(len(names)), strict=True):
                yield Attachment(name, domain, tree, some.names.line)
