"""Reports when members' stays end, and why; nothing is decided here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.usecases.shared.lookup import lease_of_decision

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.decisions import Decision
    from moorage.domain.leases import Lease
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.usecases.ports import Store


class EndReason(StrEnum):
    """Reasons of a stay's end."""

    DECLARED = "declared"
    """The owner declared the end, or the operator's default for servers without one applies."""
    LEASE = "lease"
    """Its own lease ends."""
    PREEMPTED = "preempted"
    """It was displaced for a lease."""
    AWAY = "away"
    """Its host is planned to be away from then on."""


@dataclass(frozen=True, slots=True)
class StayEnd:
    """When a stay ends, and why."""

    at: Instant
    because: EndReason


def stay_ends(
    store: Store,
    placed: Mapping[MemberName, tuple[Booking, ...]],
    known: Mapping[str, Lease | None] = MappingProxyType({}),
) -> Mapping[MemberName, StayEnd]:
    """The ends of placed members that have one, as booked now.

    `placed` are the members' bookings; see `MemberPlaces`. `known` are leases that were read
    already, by decision id.
    """
    leases = dict(known)
    found: dict[MemberName, StayEnd] = {}
    for name, bookings in placed.items():
        first = bookings[0]
        if first.period.open_ended:
            continue
        end = StayEnd(first.period.end, EndReason.DECLARED)
        if first.yields_to is not None:
            end = StayEnd(first.period.end, EndReason.PREEMPTED)
        elif first.declared_end is not None:
            end = StayEnd(first.period.end, EndReason.AWAY)
        elif first.decision is not None:
            if first.decision not in leases:
                leases[first.decision] = lease_of_decision(store, first.decision)
            if (lease := leases[first.decision]) is not None:
                at = min(first.period.end, lease.terms.period.end)
                end = StayEnd(at, EndReason.LEASE)
        found[name] = end
    return MappingProxyType(found)


def decided_ends(decision: Decision) -> Mapping[MemberName, StayEnd]:
    """The ends that a decision that is not written would give its members."""
    early = {
        name: StayEnd(at, EndReason.AWAY if name in decision.away else EndReason.PREEMPTED)
        for name, at in decision.endings.items()
    }
    if decision.period.open_ended or decision.lease_id is not None:
        return MappingProxyType(early)
    usual = StayEnd(decision.period.end, EndReason.DECLARED)
    return MappingProxyType({**dict.fromkeys(decision.places, usual), **early})
