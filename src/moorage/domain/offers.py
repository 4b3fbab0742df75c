"""Offers: leases proposed and held until they expire, of which one may be accepted.

An offer is a lease in the state `offered` (ADR-0011): its places are booked like a lease's, until
it is accepted, given up or expires. What is known of it besides stands here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from moorage.domain.period import Instant


class OfferState(StrEnum):
    """`offered`, then one of the ways out."""

    OFFERED = "offered"
    ACCEPTED = "accepted"
    """It is a lease."""
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    """Given up, or another offer of the same request was accepted."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The terms and the state of a lease that is, or was, an offer."""

    request: str
    """The id of the request that it answers; others may answer it, too."""
    expires_at: Instant
    """When its places are free again, unless it is accepted."""
    proved: bool
    """Whether nothing that starts earlier in the range that was asked for would have fitted; of
    several offers for one request, after the one before."""
    score: float
    """1 for the first offer of a request, less the later one starts, 0 at the end of the range."""
    places: int
    """How many members it has places for."""
    of: str | None = None
    """The ensemble that it is for; its places are those of a copy until it is accepted."""
    state: OfferState = OfferState.OFFERED

    def state_at(self, now: Instant) -> OfferState:
        """The state at `now`, expired after its end even if that is not recorded yet."""
        if self.state is OfferState.OFFERED and self.expires_at <= now:
            return OfferState.EXPIRED
        return self.state
