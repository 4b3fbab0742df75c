"""Records of server providers; consumers that stand on what they offer themselves are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, or_, select, true

from moorage.domain.bookings import BookingState
from moorage.domain.errors import OfferCycle
from moorage.domain.quotas import too_many_names
from moorage.store.commit.apply.kinds import Kind, write
from moorage.store.database.statements import chunks
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.changes import BoundOfferedNames, PutServerProvider
    from moorage.store.commit.batch import Batch

_b, _p = tables.bookings.c, tables.providers.c
_NOW: Final[Any] = bindparam("now")
_STANDS_ON = (
    select(_p.offered_by)
    .distinct()
    .join(tables.bookings, _b.provider == _p.uuid)
    .where(
        _p.offered_by.is_not(None),
        _b.consumer.in_(bindparam("consumers", expanding=True)),
        _b.lapses_at > _NOW,
        or_(_b.state == BookingState.ALLOCATED.value, _b.end_at > _NOW),
    )
)
"""Who offers what these consumers have bookings on."""


_OFFERED_CLASSES: Final = (
    select(tables.inventories.c.resource_class)
    .distinct()
    .join(
        tables.resource_classes,
        tables.resource_classes.c.name == tables.inventories.c.resource_class,
    )
    .where(tables.resource_classes.c.offered == true())
)
_OFFERED_TRAITS: Final = (
    select(tables.provider_traits.c.trait)
    .distinct()
    .join(tables.traits, tables.traits.c.name == tables.provider_traits.c.trait)
    .where(tables.traits.c.offered == true())
)


_KIND: Final = Kind.of("server provider", tables.server_providers.c.generation)


def put_server_provider(batch: Batch, change: PutServerProvider) -> None:
    """See `PutServerProvider`.

    Raises:
        DuplicateName, NotFound, ConcurrentUpdate.
    """
    one = change.server_provider
    if change.generation is not None:
        one = replace(one, generation=change.generation + 1)
    values = {
        "server_id": one.server_id,
        "generation": one.generation,
        "body": stored_bodies.SERVER_PROVIDER.encode(one),
    }
    write(batch, _KIND, one.id, values, change.generation)
    batch.touch(one.id)  # snapshots know who may use it


def bound_offered_names(batch: Batch, change: BoundOfferedNames) -> None:
    """See `BoundOfferedNames`.

    Raises:
        LimitExceeded: the server providers have more names.
    """
    bodies = batch.connection.scalars(select(tables.server_providers.c.body))
    every = map(stored_bodies.SERVER_PROVIDER.decode, bodies)
    classes: set[str] = set()
    traits: set[str] = set()
    for some in chunks(one.id for one in every if one.project_id == change.project_id):
        of_class = _OFFERED_CLASSES.where(tables.inventories.c.provider.in_(some))
        of_trait = _OFFERED_TRAITS.where(tables.provider_traits.c.provider.in_(some))
        classes.update(batch.connection.scalars(of_class))
        traits.update(batch.connection.scalars(of_trait))
    used = len(classes) + len(traits)
    if used > change.limit:
        raise too_many_names(
            limit=change.limit, used=used - change.requested, requested=change.requested
        )


def refuse_cycles(batch: Batch, offered: Mapping[str, str]) -> None:
    """Judge bookings that came to server providers, by the end state.

    `offered` has those providers and the consumers that offer them. Two commits at one time on two
    servers, each on what the other offers, may both pass on a database with several writers: both
    servers are then nowhere, until one of them leaves.

    Raises:
        OfferCycle: one of the new bookings is of a consumer on which its provider stands.
    """
    for provider, server in sorted(offered.items()):
        newcomers = {one.consumer for one in batch.arrived.get(provider, ())}
        below = _stands_on(batch, server) if newcomers else set()
        for consumer in sorted(newcomers & below):
            raise OfferCycle(consumer, provider)


def _stands_on(batch: Batch, server: str) -> set[str]:
    """The server, those on whose providers it has bookings, and so on."""
    found: set[str] = set()
    waiting = {server}
    while waiting:
        found |= waiting
        waiting = {
            one
            for some in chunks(sorted(waiting))
            for one in batch.connection.scalars(_STANDS_ON, {"consumers": some, "now": batch.now})
        } - found
    return found
