"""What somebody sees of capacity: operators exact numbers, tenants free or busy and rough counts.

A count is told to a tenant as the largest bucket that it reaches, so that it is never more than
there is; a share in eighths, rounded up, so that what is busy never looks free.
"""

from __future__ import annotations

from dataclasses import dataclass

EIGHTHS = 8
WHOLE = 10_000
"""A whole in the parts in which a share is told."""


@dataclass(frozen=True, slots=True)
class Sight:
    """How much of the numbers somebody sees."""

    exact: bool
    buckets: tuple[int, ...]
    """Ascending, from 0."""

    def count(self, number: int) -> int:
        """A count as it is seen."""
        if self.exact:
            return number
        return max((one for one in self.buckets if one <= number), default=0)

    def whole(self, number: int) -> bool:
        """Whether the count is seen as it is."""
        return self.exact or number in self.buckets

    def busy(self, share: int) -> float:
        """The part that cannot be had of what is there, from ten-thousandths."""
        return share / WHOLE if self.exact else -(-share * EIGHTHS // WHOLE) / EIGHTHS
