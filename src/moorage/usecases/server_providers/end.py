"""End a server provider: its slices end in the same commit, and their owners are told."""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.changes import (
    Changeset,
    DeleteAllocations,
    DeleteProvider,
    DropBookings,
    PutClaim,
    PutEvent,
    ReplaceAllocations,
)
from moorage.domain.consumers import ANY_GENERATION
from moorage.domain.derived_events import slice_event
from moorage.domain.errors import InUse
from moorage.domain.events import DerivedEvent
from moorage.domain.refusal_commands import to_end_slices
from moorage.domain.resources import total
from moorage.usecases.ledger.withdrawal import withdrawn
from moorage.usecases.server_providers.names import OfferedNames
from moorage.usecases.server_providers.queries import own_server_provider
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change
    from moorage.domain.consumers import Consumer
    from moorage.domain.decisions import Claim
    from moorage.domain.server_providers import ServerProvider
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store


class OfferEnd(StrEnum):
    """Why a server provider ended."""

    DELETED = "deleted"
    """Its owner deleted it."""
    SERVER_GONE = "server_gone"
    """Its server has had no place for longer than the grace period."""


def delete_server_provider(
    env: UseCaseEnvironment,
    caller: Caller,
    server_id: str,
    *,
    force: bool = False,
) -> None:
    """Delete what a server offers; with `force` also while it is used: then its slices end.

    Raises:
        NotFound: there is no such server provider for this caller.
        InUse: it is used, and the caller did not force it.
        Busy: too many conflicting commits.
    """

    def attempt() -> None:
        record = own_server_provider(env.store, caller, server_id)
        if not force and env.store.bookings(provider=record.id):
            why = f"slices are booked on it{to_end_slices(record.server_id)}"
            raise InUse("server provider of", record.server_id, why, remedies=("force",))
        ended = end_changeset(env.store, record, OfferEnd.DELETED)
        env.store.commit(ended)

    retry(env, attempt)


def end_changeset(store: Store, record: ServerProvider, because: OfferEnd) -> Changeset:
    """The changeset that ends a server provider with all slices on it.

    It conflicts with bookings that come or go meanwhile.
    """
    snapshot = store.snapshot()
    row = snapshot.row(record.id)
    users: dict[str, list[Booking]] = defaultdict(list)
    for one in snapshot.bookings_of(row):
        users[one.consumer].append(one)
    project = {one.consumer: one.project_id for one in snapshot.state(row).occupants}
    known = {one: store.consumer(one) for one in users}
    elsewhere = {
        uuid: rest
        for uuid, found in known.items()
        if found is not None and (rest := _elsewhere(found[1], record.id))
    }
    changes: list[Change] = [
        *withdrawn(store, snapshot, frozenset(users) - elsewhere.keys()),
        DropBookings(frozenset(users)),
    ]
    for uuid, bookings in sorted(users.items()):
        if any(one.state is BookingState.ALLOCATED for one in bookings):
            changes.append(_ended(known[uuid], elsewhere.get(uuid, {}), uuid))
        body = {
            "server_provider": record.id,
            "resources": dict(total(one.amounts for one in bookings)),
            "status": bookings[0].state.value,
            "because": because.value,
        }
        changes.append(PutEvent(DerivedEvent("slice.lost", project[uuid], uuid, 0, body)))
    ended = {"server": record.server_id, "slices": len(users), "because": because.value}
    told = DerivedEvent("server_provider.ended", record.project_id, record.id, 0, ended)
    changes += [PutEvent(slice_event(one, record)) for one in _ended_claims(changes, record.id)]
    changes += [DeleteProvider(record.id), PutEvent(told)]
    changes += OfferedNames.of(store, snapshot).returned(record.id)
    relied = {record.id: int(snapshot.revisions[row])}
    return Changeset(tuple(changes), relies_on=relied, releases_places=True)


def _ended_claims(changes: Sequence[Change], provider: str) -> list[Claim]:
    """The claims of slices on a provider that the changes end."""
    claims = (one.claim for one in changes if isinstance(one, PutClaim))
    return [one for one in claims if one.server_provider == provider]


def _elsewhere(bookings: Sequence[Booking], provider: str) -> dict[str, dict[str, int]]:
    """A consumer's allocations on other providers."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for one in bookings:
        if one.provider != provider:
            found[one.provider] |= one.amounts
    return found


def _ended(
    known: tuple[Consumer, Sequence[Booking]] | None, rest: dict[str, dict[str, int]], uuid: str
) -> Change:
    """The change by which a consumer keeps its allocations on other providers only."""
    if known is None or not rest:
        return DeleteAllocations(uuid)
    return ReplaceAllocations(known[0], rest, ANY_GENERATION)
