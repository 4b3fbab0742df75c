"""Leases as text, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.cli import decision_text, explanation_text
from moorage.cli.output import short
from moorage.cli.times import minute, period
from moorage.domain.words import counted

if TYPE_CHECKING:
    from msgspec import UnsetType

    from moorage.wire.leases import Audience, Lease, OneLease
    from moorage.wire.offers import Offer


def granted(made: OneLease, *, dry_run: bool) -> str:
    """A granted lease: `lease L3  pending  <start> .. <end>  9 places  guarantee: proved`.

    Of a dry run the verdict instead: what the placement would use.
    """
    one = made.lease
    if dry_run and made.decision:
        parts = [decision_text.dry_run(made.decision), period(one.start, one.end)]
        separator = "   "
    else:
        parts = [f"lease {called(one)}", status(one), period(one.start, one.end)]
        if made.decision:
            parts.append(counted(len(made.decision.assignments), "place"))
        parts.append(f"guarantee: {one.guarantee}")
        separator = decision_text.SEPARATOR
    if one.displaced and one.displaced.count:
        parts.append(f"ending early for it: {one.displaced.count}")
    preempted = made.preempted
    if preempted:
        parts.append(f"takes the places of {counted(preempted.count, 'lease')}")
    lines = [separator.join(parts)]
    for other in (preempted.leases or ()) if preempted else ():
        fits = f"fits next from {minute(other.earliest_start)}" if other.earliest_start else ""
        name = f"lease {short(other.id)} ({other.name}, priority {other.priority})"
        lines.append("  ".join(filter(None, (f"  {name}", period(other.start, other.end), fits))))
    return "\n".join(lines)


def guarantee(one: Lease) -> str:
    """The guarantee: `proved`, and the terms before the start."""
    terms = one.may_yield
    if terms is None:
        return one.guarantee
    until = minute(terms.until)
    return f"{one.guarantee}; may yield to priority > {terms.above} until {until}"


def called(one: Lease | Offer) -> str:
    """The handle, `L3` or `o3`; the beginning of the id where there is none."""
    return one.handle or short(one.id)


def status(one: Lease) -> str:
    """The status: `active`, `active, degraded: 1 place missing`, or `closed, preempted`."""
    if one.outcome is not None:
        return f"{one.status}, {one.outcome}"
    if not one.degraded:
        return one.status
    missing = f": {counted(one.missing, 'place')} missing" if one.missing else ""
    return f"{one.status}, degraded{missing}"


def brief(one: Lease) -> str:
    """The status for a table cell: `active`, `active, degraded 1` or `preempted`."""
    if one.outcome is not None or not one.degraded:
        return one.outcome or one.status
    return f"{one.status}, degraded {one.missing or ''}".rstrip()


def proposal(one: Lease) -> str | None:
    """The proposal: `"one-per-host max_per_domain 1->2 places the 4th on n4" (needs ...)`.

    Then how many subscriptions were notified; None without a proposal.
    """
    if one.proposal is None:
        return None
    change = explanation_text.relaxation({"change": one.proposal, "result": "fits then"})
    sent = notified(one)
    heard = f" | notify {sent}" if sent else ""
    placing = f" places {_whom(one)}" if "policy" in one.proposal else ""
    return f'"{change}{placing}" (needs owner consent){heard}'


def _whom(one: Lease) -> str:
    """The missing members' places: `the 4th on n4`; hosts only for operators."""
    places, missing = one.proposed_places, one.missing
    count = sum(reservation.count or 0 for reservation in one.reservations)
    who = f"the {_nth(count)}" if missing == 1 and count else "those missing"
    return f"{who} on {' and '.join(sorted(set(places.values())))}" if places else who


_ENDINGS: Final = {1: "st", 2: "nd", 3: "rd"}


def _nth(number: int) -> str:
    last = number % 10 if number % 100 not in {11, 12, 13} else 0
    return f"{number}{_ENDINGS.get(last, 'th')}"


def claimed(one: Lease) -> str:
    """Claimed and all places: `0/4`."""
    taken = sum(reservation.claimed or 0 for reservation in one.reservations)
    return f"{taken}/{sum(reservation.count or 0 for reservation in one.reservations)}"


def occurrence(one: Lease) -> str | None:
    """The place in a series: `1f2e3d4c, number 3`; empty for a single lease."""
    part = one.occurrence
    return f"{short(part.series_id)}, number {part.index}" if part else None


def notified(one: Lease) -> str | None:
    """Notified subscriptions: `sent to 1 subscription`; empty if there were none."""
    return f"sent to {counted(one.notified, 'subscription')}" if one.notified else None


def audience(one: Audience | UnsetType) -> str | None:
    """A notice's recipients: `webhook, mine, other (waiting)`, or `none`; else None."""
    if not one:
        return None
    found = [] if one.webhook == "none" else [_reached("webhook", one.webhook)]
    hearers = one.subscriptions or []
    found += [_reached(who.name or short(who.id), who.status) for who in hearers]
    return ", ".join(found) or (None if one.subscriptions is None else "none")


def _reached(who: str, status: str) -> str:
    """The delivery state of a recipient; empty once it has been notified."""
    return who if status in {"told", "heard"} else f"{who} ({status.replace('_', ' ')})"


def binding(one: Lease) -> str:
    """The binding: `planned` (hosts may still change) or `bound`."""
    return "planned (hosts may still change)" if one.binding == "planned" else one.binding
