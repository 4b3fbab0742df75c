"""Leases in words: one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.cli import explanation, told
from moorage.cli.output import short
from moorage.cli.times import minute, period
from moorage.domain.words import counted

if TYPE_CHECKING:
    from moorage.client.leases import Audience, Granted, Lease
    from moorage.client.offers import Offer


def granted(made: Granted, *, dry_run: bool) -> str:
    """`lease L3  pending  <start> .. <end>  9 places  guarantee: proved`.

    Of a dry run the verdict instead: what the placement would use.
    """
    one = made.lease
    if dry_run and made.decision is not None:
        parts = [told.dry_run(made.decision), period(one.start, one.end)]
        separator = "   "
    else:
        parts = [f"lease {called(one)}", status(one), period(one.start, one.end)]
        if made.decision is not None:
            parts.append(counted(len(made.decision.assignments), "place"))
        parts.append(f"guarantee: {one.guarantee}")
        separator = told.SEPARATOR
    if one.displaced.count:
        parts.append(f"ending early for it: {one.displaced.count}")
    if made.preempted.count:
        parts.append(f"takes the places of {counted(made.preempted.count, 'lease')}")
    lines = [separator.join(parts)]
    for other in made.preempted.leases:
        fits = f"fits next from {minute(other.earliest_start)}" if other.earliest_start else ""
        told_of = f"lease {short(other.id)} ({other.name}, priority {other.priority})"
        lines.append(
            "  ".join(filter(None, (f"  {told_of}", period(other.start, other.end), fits)))
        )
    return "\n".join(lines)


def guarantee(one: Lease) -> str:
    """`proved`, and on which terms before the lease begins."""
    terms = one.may_yield
    if terms is None:
        return one.guarantee
    until = minute(terms.until)
    return f"{one.guarantee}; may yield to priority > {terms.above} until {until}"


def called(one: Lease | Offer) -> str:
    """What its project calls it by, `L3` or `o3`; the beginning of its id where that is unknown."""
    return one.handle or short(one.id)


def status(one: Lease) -> str:
    """`active`, `active, degraded: 1 place missing`, or `closed, preempted`."""
    if one.outcome is not None:
        return f"{one.status}, {one.outcome}"
    if not one.degraded:
        return one.status
    missing = f": {counted(one.missing, 'place')} missing" if one.missing else ""
    return f"{one.status}, degraded{missing}"


def brief(one: Lease) -> str:
    """`active`, `active, degraded 1` or `preempted`: a cell of a listing."""
    if one.outcome is not None or not one.degraded:
        return one.outcome or one.status
    return f"{one.status}, degraded {one.missing or ''}".rstrip()


def proposal(one: Lease) -> str | None:
    """`"one-per-host max_per_domain 1->2 places the 4th on n4" (needs owner consent)`.

    Then how many subscriptions have been told; nothing where nothing is proposed.
    """
    if one.proposal is None:
        return None
    change = explanation.relaxation({"change": one.proposal, "result": "fits then"})
    told_to = notified(one)
    heard = f" | notify {told_to}" if told_to else ""
    placing = f" places {_whom(one)}" if "policy" in one.proposal else ""
    return f'"{change}{placing}" (needs owner consent){heard}'


def _whom(one: Lease) -> str:
    """`the 4th on n4`; without hosts to those who may not know them."""
    places, missing = one.proposed_places, one.missing
    count = sum(reservation.count or 0 for reservation in one.reservations)
    who = f"the {_nth(count)}" if missing == 1 and count else "those missing"
    return f"{who} on {' and '.join(sorted(set(places.values())))}" if places else who


_ENDINGS: Final = {1: "st", 2: "nd", 3: "rd"}


def _nth(number: int) -> str:
    last = number % 10 if number % 100 not in {11, 12, 13} else 0
    return f"{number}{_ENDINGS.get(last, 'th')}"


def claimed(one: Lease) -> str:
    """`0/4`: how many of its places servers have taken."""
    taken = sum(reservation.claimed or 0 for reservation in one.reservations)
    return f"{taken}/{sum(reservation.count or 0 for reservation in one.reservations)}"


def occurrence(one: Lease) -> str | None:
    """`1f2e3d4c, number 3`; nothing where it is of no series."""
    part = one.occurrence
    return None if part is None else f"{short(part.series_id)}, number {part.index}"


def notified(one: Lease) -> str | None:
    """`sent to 1 subscription`; nothing where nobody had to be told."""
    return f"sent to {counted(one.notified, 'subscription')}" if one.notified else None


def audience(one: Audience | None) -> str | None:
    """`webhook, mine, other (waiting)`, or `nobody`; nothing of what nobody has to be told."""
    if one is None:
        return None
    found = [] if one.webhook == "none" else [_reached("webhook", one.webhook)]
    hearers = one.subscriptions or []
    found += [_reached(who.name or short(who.id), who.status) for who in hearers]
    return ", ".join(found) or (None if one.subscriptions is None else "nobody")


def _reached(who: str, status: str) -> str:
    """Without more, it has been told."""
    return who if status in {"told", "heard"} else f"{who} ({status.replace('_', ' ')})"


def binding(one: Lease) -> str:
    """`planned`, which says that hosts are not final yet, or `bound`."""
    return "planned (hosts may still change)" if one.binding == "planned" else one.binding
