"""Read server providers: a project's own, and those that others share with it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.errors import NotFound
from moorage.engine.state.server_locations import NOWHERE, host_of_server
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.shared.access import require_operator, sees
from moorage.usecases.shared.lookup import every_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.resources import Amounts, ResourceClass
    from moorage.domain.server_providers import ServerProvider
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Caller, Store


@dataclass(frozen=True, slots=True)
class ShownServerProvider:
    """A server provider as a caller sees it."""

    record: ServerProvider
    totals: Amounts
    """Rounded down where it is another project's."""
    used: Mapping[ResourceClass, int]
    """The most that is booked at any time from now on; nothing where it is another project's."""
    traits: frozenset[str]
    placed: bool
    """Whether its server has a place."""
    host: str | None
    """The name of the host where it is, for operators."""
    own: bool
    """Whether the caller sees whose it is."""


def list_server_providers(
    env: UseCaseEnvironment, caller: Caller, page: Page, *, all_projects: bool = False
) -> Sequence[ShownServerProvider]:
    """Those on which the caller's project may place slices, by creation.

    Raises:
        Forbidden: a tenant asked for those of every project.
        NotFound: the page's marker is none of them.
    """
    if all_projects:
        require_operator(caller)
    every = (
        one
        for one in every_record(env.store.server_providers)
        if all_projects or one.usable_by(caller.project_id)
    )
    snapshot = env.store.snapshot()
    return [
        shown(env, caller, snapshot, one)
        for one in islice(_after(every, page.marker), page.limit)
        if one.id in snapshot.row_of  # else it has ended since
    ]


def show_server_provider(
    env: UseCaseEnvironment, caller: Caller, server_id: str
) -> ShownServerProvider:
    """What a server of the caller offers.

    Raises:
        NotFound: there is no such server provider for this caller.
    """
    record = own_server_provider(env.store, caller, server_id)
    snapshot = env.store.snapshot()
    if record.id not in snapshot.row_of:
        raise NotFound("server provider", server_id)
    return shown(env, caller, snapshot, record)


def own_server_provider(store: Store, caller: Caller, server_id: str) -> ServerProvider:
    """The server's provider, if it is the caller's.

    Raises:
        NotFound: the server offers nothing, or is another project's.
    """
    for one in store.server_providers(server_id=server_id):
        if sees(caller, one.project_id):
            return one
    raise NotFound("server provider", server_id)


def shown(
    env: UseCaseEnvironment, caller: Caller, snapshot: Snapshot, record: ServerProvider
) -> ShownServerProvider:
    """A server provider of the snapshot as a caller sees it."""
    row, own = snapshot.row_of[record.id], sees(caller, record.project_id)
    count = (lambda number: number) if own else env.limits.disclosure.count
    totals = {one.resource_class: count(one.total) for one in snapshot.inventories_of(row)}
    used = booked(snapshot, record.id) if own else {}
    return shown_with(caller, snapshot, record, totals, used, snapshot.traits_of(row))


def shown_with(
    caller: Caller,
    snapshot: Snapshot,
    record: ServerProvider,
    totals: Amounts,
    used: Mapping[ResourceClass, int],
    traits: frozenset[str],
) -> ShownServerProvider:
    """A server provider that offers this, where its server is in the snapshot."""
    host = host_of_server(snapshot, record.server_id)
    return ShownServerProvider(
        record=record,
        totals=dict(sorted(totals.items())),
        used=used,
        traits=traits,
        placed=has_place(snapshot, record.server_id),
        host=snapshot.names[host] if host != NOWHERE and caller.operator else None,
        own=sees(caller, record.project_id),
    )


def has_place(snapshot: Snapshot, server_id: str) -> bool:
    """Whether a server has allocations, on whatever hosts."""
    return any(one.state is BookingState.ALLOCATED for one in bookings_of(snapshot, server_id))


def booked(snapshot: Snapshot, provider: str) -> Mapping[ResourceClass, int]:
    """Resource class -> the most that is booked of a provider at any time from now on."""
    row = snapshot.row_of[provider]
    found: dict[ResourceClass, int] = {}
    for one in snapshot.inventories_of(row):
        columns = snapshot.classes[one.resource_class]
        found[one.resource_class] = int(columns.peak[columns.position[row]])
    return found


def _after(every: Iterator[ServerProvider], marker: str | None) -> Iterator[ServerProvider]:
    if marker is not None and all(one.id != marker for one in every):
        raise NotFound("marker", marker)
    return every
