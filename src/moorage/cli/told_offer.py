"""Offers in words: one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.cli.times import period
from moorage.cli.told import SEPARATOR
from moorage.cli.told_lease import called
from moorage.domain.period import MINUTE, SECOND, parse_instant

if TYPE_CHECKING:
    from moorage.client.leases import Granted
    from moorage.client.offers import Barred, Offer

_SHORT: Final = 120
"""Minutes up to here are told as minutes."""


def offered(one: Offer, now: str, *, dry_run: bool = False) -> str:
    """`o3  <start> .. <end>  424 unit-hours  expires in 60m`."""
    parts = ["would be offered" if dry_run else called(one), period(one.start, one.end)]
    parts.append(f"{one.unit_hours:g} unit-hours")
    if not dry_run:
        parts.append(left(one, now))
    if not one.proved:
        parts.append("not proved to be the earliest")
    return SEPARATOR.join(parts)


def barred(one: Barred) -> str:
    """`not allowed  <start> .. <end>  lease-units limit 4 used 4 requested 4   passes at <t>`."""
    return SEPARATOR.join(["not allowed", period(one.start, one.end), one.detail])


def left(one: Offer, now: str) -> str:
    """`expires in 60m`; of one that is over what became of it."""
    if one.status != "offered":
        return one.status
    rest = parse_instant(one.expires_at) - parse_instant(now)
    minutes = round(rest / MINUTE)
    if rest < MINUTE:
        return f"expires in {max(rest, 0) // SECOND}s"
    if minutes <= _SHORT:
        return f"expires in {minutes}m"
    return f"expires in {minutes // 60}h{minutes % 60:02}m"


def taken(made: Granted, *, dry_run: bool) -> str:
    """`lease L3  pending  guarantee: proved`."""
    one = made.lease
    head = "would be a lease" if dry_run else f"lease {called(one)}"
    parts = [head, one.status, f"guarantee: {one.guarantee}"]
    if one.displaced.count:
        parts.append(f"ending early for it: {one.displaced.count}")
    return SEPARATOR.join(parts)
