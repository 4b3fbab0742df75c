"""Offers of hosts for reservation by operators: made, described otherwise, and withdrawn.

Each change is one changeset with the fences of open leases that follow from it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import (
    Changeset,
    CreateProvider,
    CreateResourceClass,
    DeleteProvider,
    DropReservable,
    PutInventories,
    PutReservable,
)
from moorage.domain.errors import DuplicateName, InUse, InvalidDescription, NotFound
from moorage.domain.providers import Inventory
from moorage.domain.reservables import WHOLE_HOST, Reservable, ReservableKind
from moorage.usecases.blazar.requirement_fences import fence_changes
from moorage.usecases.blazar.reservables import (
    FACTS,
    MAX_KEYS,
    UNIT,
    check_keys,
    check_values,
    described_host,
    is_booked,
    is_used,
    offered_host,
    offered_hosts,
)
from moorage.usecases.shared.access import require_operator
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.changes import PutEnsemble
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.blazar.reservables import OfferedHost
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store


def offer_host(
    env: UseCaseEnvironment, caller: Caller, name: str, properties: Mapping[str, str]
) -> OfferedHost:
    """Offer a host of the fleet, by the name of its root provider.

    What the service tells of hosts itself is ignored among the properties, as Blazar does.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: the fleet has no such host.
        DuplicateName: the host is offered already.
        InUse: servers run on it.
        InvalidDescription: a key or value is too long, or there are too many.
    """
    require_operator(caller)
    properties = {key: value for key, value in properties.items() if key not in FACTS}
    check_keys(properties)
    check_values(properties)

    def attempt() -> OfferedHost:
        snapshot = env.store.snapshot()
        root = _root(snapshot, name)
        _check_new(env.store, name)
        if is_used(snapshot, root):
            raise InUse("host", name)
        return _enrolled(env, snapshot, root, properties, None)

    return retry(env, attempt)


def enrol_host(
    env: UseCaseEnvironment, caller: Caller, name: str, properties: Mapping[str, str], id_: str
) -> OfferedHost:
    """Offer a host that another service offers, also with servers on it, under its id if free.

    Raises:
        Forbidden, NotFound, DuplicateName, InvalidDescription: as for any host.
    """
    require_operator(caller)
    check_keys(properties)

    def attempt() -> OfferedHost:
        snapshot = env.store.snapshot()
        root = _root(snapshot, name)
        _check_new(env.store, name)
        return _enrolled(env, snapshot, root, properties, id_)

    return retry(env, attempt)


def _check_new(store: Store, name: str) -> None:
    if any(one.name == name for one in store.reservables(ReservableKind.HOST)):
        raise DuplicateName("host", name)


def _enrolled(
    env: UseCaseEnvironment,
    snapshot: Snapshot,
    root: int,
    properties: Mapping[str, str],
    id_: str | None,
) -> OfferedHost:
    """Store the host with its unit; an existing unit provider of Blazar's is used."""
    store, now, name = env.store, env.store.now(), snapshot.names[root]
    theirs = [row for row in snapshot.tree(root).tolist() if snapshot.names[row] == UNIT + name]
    unit = snapshot.uuids[theirs[0]] if theirs else env.ids.uuid()
    made = Reservable(
        ReservableKind.HOST,
        _number(store, id_),
        name,
        unit,
        MappingProxyType(dict(properties)),
        now,
        now,
    )
    fresh = CreateProvider(unit, f"{UNIT}{name}", snapshot.uuids[root])
    after = described_host(snapshot, made, root, usable=True)
    store.commit(
        Changeset(
            (
                CreateResourceClass(WHOLE_HOST, exist_ok=True),
                *(() if theirs else (fresh,)),
                PutInventories(unit, (Inventory(WHOLE_HOST, 1, max_unit=1),), None),
                PutReservable(made, new=True),
                *_fences(env, snapshot, None, after),
            ),
            relies_on=_relied(snapshot, root),
        )
    )
    return offered_host(store, store.snapshot(), made.id)


def _number(store: Store, requested: str | None) -> str:
    """A new host id: a number, so that clients can tell it from a name."""
    taken = {int(one.id) for one in store.reservables(ReservableKind.HOST)}
    if requested is not None and _NUMBER.fullmatch(requested) and int(requested) not in taken:
        return str(int(requested))
    return str(1 + max(taken, default=0))


_NUMBER: Final = re.compile(r"[1-9]\d{0,8}", re.ASCII)


def describe_host(
    env: UseCaseEnvironment, caller: Caller, id_: str, properties: Mapping[str, str | None]
) -> OfferedHost:
    """Change the properties of a host; None removes a key.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: no such host.
        InvalidDescription: nothing changes, a key or value is too long, there are too many, or a
            key is one that the service tells itself.
        PropertyRequired: a lease has a place on it, and requires a property as it is.
    """
    require_operator(caller)
    return retry(env, lambda: _redescribed(env, id_, properties))


def _redescribed(
    env: UseCaseEnvironment, id_: str, properties: Mapping[str, str | None]
) -> OfferedHost:
    snapshot = env.store.snapshot()
    before = offered_host(env.store, snapshot, id_)
    found = before.reservable
    if not properties:
        raise InvalidDescription("nothing to change")
    check_keys(properties)
    added = {key: value for key, value in properties.items() if value is not None}
    for key in sorted(added.keys() & FACTS):
        raise InvalidDescription(f"{key} cannot be set: the service tells it of every host")
    check_values(added)
    kept = {**found.properties, **properties}
    if len(kept) > max(MAX_KEYS, len(found.properties)):
        raise InvalidDescription(f"at most {MAX_KEYS} keys, not {len(kept)}")
    changed = replace(
        found,
        properties=MappingProxyType({k: v for k, v in kept.items() if v is not None}),
        updated_at=env.store.now(),
    )
    after = replace(before, reservable=changed)
    env.store.commit(
        Changeset(
            (PutReservable(changed, new=False), *_fences(env, snapshot, before, after)),
            relies_on=_relied(snapshot, snapshot.row_of[before.root]),
        )
    )
    return offered_host(env.store, env.store.snapshot(), id_)


def withdraw_host(env: UseCaseEnvironment, caller: Caller, id_: str) -> None:
    """Withdraw a host from reservation.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: no such host.
        InUse: the host has bookings.
    """
    require_operator(caller)

    def attempt() -> None:
        snapshot = env.store.snapshot()
        found = offered_host(env.store, snapshot, id_)
        if is_booked(snapshot, snapshot.row_of[found.root]):
            raise InUse("host", id_)
        assert found.reservable.provider is not None, "offered hosts have a unit"
        env.store.commit(
            Changeset(
                (
                    DeleteProvider(found.reservable.provider),
                    DropReservable(ReservableKind.HOST, id_),
                    *_fences(env, snapshot, found, None),
                ),
                relies_on=_relied(snapshot, snapshot.row_of[found.root]),
            )
        )

    retry(env, attempt)


def _fences(
    env: UseCaseEnvironment,
    snapshot: Snapshot,
    before: OfferedHost | None,
    after: OfferedHost | None,
) -> tuple[PutEnsemble, ...]:
    """The fences of open leases that change with one host."""
    (one,) = {host.root for host in (before, after) if host is not None}
    others = [host for host in offered_hosts(env.store, snapshot) if host.root != one]
    return tuple(fence_changes(env.store, snapshot, before, after, others))


def _relied(snapshot: Snapshot, root: int) -> dict[str, int]:
    """The revisions of all providers in the host's tree."""
    rows = snapshot.tree(root).tolist()
    return {snapshot.uuids[row]: int(snapshot.revisions[row]) for row in rows}


def _root(snapshot: Snapshot, name: str) -> int:
    for row in snapshot.hosts.tolist():
        if snapshot.names[row] == name:
            return int(row)
    raise NotFound("host", name)
