"""What somebody sees of capacity: operators exact numbers, tenants free or busy and rough counts.

A count is told to a tenant as the largest bucket that it reaches, so that it is never more than
there is; a share in eighths, rounded up, so that what is busy never looks free.
"""

from __future__ import annotations

from dataclasses import dataclass

EIGHTHS = 8


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

    def busy(self, total: int, available: int) -> float:
        """The part that cannot be had of the most there is in the time looked at.

        So a host that is away makes its zone busier.
        """
        share = 1 - available / total if total > 0 else 1.0
        if self.exact:
            return round(min(max(share, 0.0), 1.0), 4)
        return min(max(-(-share * EIGHTHS // 1), 0.0), EIGHTHS) / EIGHTHS
