"""What a month came to: VCPU hours by what they were used for, and what was refused or lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from moorage.domain.period import HOUR


@dataclass
class Found:
    """Adds up. VCPU hours, unless said otherwise, over the time that is looked at."""

    capacity: float = 0.0
    leased: float = 0.0
    """Used by servers of leases."""
    loose: float = 0.0
    """Used by other servers."""
    set_aside: float = 0.0
    """Idle although somebody waits for it: kept for leases."""
    lost: float = 0.0
    """Used by servers that were ended for a lease before their owners were done with them."""
    counts: Counter[str] = field(default_factory=Counter)
    """Whatever is counted by a word: leases granted and refused, servers, evictions."""
    hours: list[tuple[float, float, float]] = field(default_factory=list)
    """Every hour, as shares of the capacity: leased, loose, set aside."""

    @property
    def utilisation(self) -> float:
        """The share of the capacity that was used."""
        return (self.leased + self.loose) / self.capacity

    def pass_by(self, span: int, capacity: int, leased: int, loose: int) -> None:
        """Some time in which nothing changes; levels in VCPU."""
        self.capacity += capacity * span / HOUR
        self.leased += leased * span / HOUR
        self.loose += loose * span / HOUR

    def as_json(self) -> dict[str, Any]:
        """To be kept."""
        whole = asdict(self) | {"counts": dict(sorted(self.counts.items()))}
        whole["hours"] = [[round(share, 4) for share in hour] for hour in self.hours]
        return whole | {"utilisation": self.utilisation}
