"""How the ledger differs from what a Blazar offers and has granted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.domain.content import Difference, Way
from moorage.domain.errors import NotFound
from moorage.domain.leases import LeaseState
from moorage.domain.period import format_instant
from moorage.domain.reservation_content import ADDRESS, HOST, LEASE, PROPERTY
from moorage.usecases import reservables
from moorage.usecases.reservations.asking import RESERVATIONS
from moorage.usecases.reservations.granted import kept_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.domain.leases import Lease
    from moorage.domain.reservation_content import GrantedLease, ReservationContent
    from moorage.usecases.ports import Store

_NUMBERS = ("amount", "min", "max")
_OVER = {LeaseState.ENDING, LeaseState.CLOSED}


def differences(store: Store, content: ReservationContent) -> Iterator[Difference]:
    """Everything of the content that the ledger lacks or has otherwise; details `there / here`."""
    yield from _hosts(store, content)
    for key in sorted(content.private - reservables.private_keys(store)):
        yield Difference(PROPERTY, key, Way.OTHERWISE, "private / not")
    yield from _addresses(store, content)
    for one in content.leases:
        try:
            found = store.lease(kept_id(one.id))
        except NotFound:
            yield Difference(LEASE, one.id, Way.MISSING)
            continue
        yield from _otherwise(LEASE, one.id, _theirs(one), _ours(found))


def _hosts(store: Store, content: ReservationContent) -> Iterator[Difference]:
    here = {
        one.reservable.name: one.reservable.properties
        for one in reservables.offered_hosts(store, store.snapshot())
    }
    for one in content.hosts:
        if one.name not in here:
            yield Difference(HOST, one.name, Way.MISSING)
        else:
            yield from _otherwise(HOST, one.name, one.properties, here[one.name])


def _addresses(store: Store, content: ReservationContent) -> Iterator[Difference]:
    here = {one.name: one for one in reservables.addresses(store)}
    for one in content.addresses:
        found = here.get(one.text)
        if found is None:
            yield Difference(ADDRESS, one.text, Way.MISSING)
            continue
        theirs = {"id": kept_id(one.id), "network": one.network}
        ours = {"id": found.id, "network": found.properties["floating_network_id"]}
        yield from _otherwise(ADDRESS, one.text, theirs, ours)


def _otherwise(
    kind: str, subject: str, theirs: Mapping[str, object], ours: Mapping[str, object]
) -> Iterator[Difference]:
    told = [
        f"{key}: {theirs.get(key, 'none')} / {ours.get(key, 'none')}"
        for key in sorted(theirs.keys() | ours.keys())
        if theirs.get(key) != ours.get(key)
    ]
    if told:
        yield Difference(kind, subject, Way.OTHERWISE, "; ".join(told))


def _theirs(one: GrantedLease) -> dict[str, object]:
    return {
        "name": one.name,
        "project": one.project_id,
        "user": one.user_id,
        "start": format_instant(one.period.start),
        "end": format_instant(one.period.end),
        "state": "not over",
        **{kept_id(part.id): _said(part.words) for part in one.reservations},
    }


def _ours(found: Lease) -> dict[str, object]:
    words = found.annotations.get(RESERVATIONS)
    said = words if isinstance(words, dict) else {}
    return {
        "name": found.name,
        "project": found.project_id,
        "user": found.user_id,
        "start": format_instant(found.terms.period.start),
        "end": format_instant(found.terms.period.end),
        "state": found.state.value if found.state in _OVER else "not over",
        **{part.id: _said(said.get(part.role, {})) for part in found.reservations},
    }


def _said(words: Mapping[str, Any]) -> str:
    """`virtual:instance amount=3`."""
    numbers = [f"{key}={words[key]}" for key in _NUMBERS if words.get(key) is not None]
    return " ".join([str(words.get("resource_type")), *numbers])
