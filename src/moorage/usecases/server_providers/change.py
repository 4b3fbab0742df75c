"""Say what a server offers: create its provider, or change what it has and who may use it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    CreateResourceClass,
    CreateTrait,
    PutInventories,
    PutServerProvider,
    PutTraits,
)
from moorage.domain.errors import (
    InvalidDescription,
    InventoryInUse,
    NotFound,
)
from moorage.domain.providers import SHARING_TRAIT, Inventory
from moorage.domain.resources import is_custom_name
from moorage.domain.server_providers import ServerProvider, provider_name
from moorage.usecases.server_providers.names import OfferedNames, names_of
from moorage.usecases.server_providers.queries import ShownServerProvider, booked, shown_with
from moorage.usecases.shared.access import sees
from moorage.usecases.shared.retry import retry
from moorage.usecases.tickets.places import check_stock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.changes import Change
    from moorage.domain.resources import Amounts, ResourceClass
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """What a server is to offer, as a whole."""

    resources: Amounts
    traits: frozenset[str] = frozenset()
    shared_with: frozenset[str] | None = frozenset()
    """See `ServerProvider.shared_with`."""


def put_server_provider(
    env: UseCaseEnvironment,
    caller: Caller,
    server_id: str,
    offer: ServerOffer,
) -> ShownServerProvider:
    """Let a server offer this, instead of what it has offered before.

    Custom resource classes and traits that do not exist are created; for tenants only as long as
    the servers of the project need few (`Limits.offered_names`). Those that no provider has any
    more are deleted.

    Raises:
        NotFound: no such server for this caller: without allocations it is none.
        InvalidDescription: nothing is offered, or a class that is not custom.
        UnknownName: no such standard trait.
        InventoryInUse: more is booked of a class than would be offered.
        LimitExceeded: the servers of the project offer too many such classes and traits.
        Busy: too many conflicting commits.
    """
    _check(offer)
    check_stock(env.store, _inventories(offer))
    return retry(env, lambda: _put(env, caller, server_id, offer))


def _put(
    env: UseCaseEnvironment, caller: Caller, server_id: str, offer: ServerOffer
) -> ShownServerProvider:
    stored = next(iter(env.store.server_providers(server_id=server_id)), None)
    consumer = env.store.consumer(server_id)
    project = None if stored is None else stored.project_id
    if consumer is not None:
        project = consumer[0].project_id
    if project is None or not sees(caller, project):
        raise NotFound("server", server_id)
    snapshot = env.store.snapshot()
    now = snapshot.taken_at
    if stored is None:
        before = ServerProvider(env.ids.uuid(), server_id, project, created_at=now)
    else:
        before = stored
    names = OfferedNames.of(env.store, snapshot)
    bounds = () if caller.operator else (*names.bound(env, project, before.id, _names(offer)),)
    record = replace(
        before,
        project_id=project,
        shared_with=offer.shared_with,
        by_operator=caller.operator,
        updated_at=now,
    )
    relied: dict[str, int] = {}
    used: Mapping[ResourceClass, int] = {}
    if stored is not None:
        relied = {stored.id: int(snapshot.revisions[snapshot.row(stored.id)])}
        used = booked(snapshot, stored.id)
        short = tuple(name for name in sorted(used) if used[name] > offer.resources.get(name, 0))
        if short:
            raise InventoryInUse(stored.id, short)
    changes = (
        *_changes(record, offer, stored, offered=not caller.operator),
        *names.returned(record.id, _names(offer)),
        *bounds,
    )
    env.store.commit(Changeset(changes, relies_on=relied))
    return shown_with(caller, snapshot, record, offer.resources, used, offer.traits)


def _names(offer: ServerOffer) -> frozenset[tuple[str, str]]:
    return names_of(offer.resources, offer.traits)


def _changes(
    record: ServerProvider, offer: ServerOffer, stored: ServerProvider | None, *, offered: bool
) -> Iterator[Change]:
    for name in offer.resources:
        yield CreateResourceClass(name, exist_ok=True, offered=offered)
    for name in sorted(filter(is_custom_name, offer.traits)):
        yield CreateTrait(name, offered=offered)
    if stored is None:
        name = provider_name(record.server_id)
        yield CreateProvider(record.id, name, offered_by=record.server_id)
    yield PutInventories(record.id, _inventories(offer), None, replace_all=True)
    yield PutTraits(record.id, offer.traits, None)
    yield PutServerProvider(record, None if stored is None else stored.generation)


def _inventories(offer: ServerOffer) -> tuple[Inventory, ...]:
    return tuple(Inventory(name, total) for name, total in offer.resources.items())


def _check(offer: ServerOffer) -> None:
    if not offer.resources:
        raise InvalidDescription(
            "say what it offers; to offer nothing any more, delete it", path=_RESOURCES
        )
    for name in offer.resources:
        if not is_custom_name(name):
            raise InvalidDescription(
                "a server offers custom resource classes only, CUSTOM_ and capitals, digits or _,"
                f" not {name}",
                path=f"{_RESOURCES}.{name}",
            )
    if SHARING_TRAIT in offer.traits:
        raise InvalidDescription(
            f"{SHARING_TRAIT} is for pools that hosts share", path="server_provider.traits"
        )


_RESOURCES = "server_provider.resources"
