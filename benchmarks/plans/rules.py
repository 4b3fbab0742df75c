"""Rules of the instances; each amount takes as long as a policy of an ensemble takes to judge."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]

SECONDS: Final = 30e-6
"""How long an amount takes."""


@dataclass(frozen=True, eq=False)
class DomainRule:
    """A rule over how many of its units each domain has."""

    name: str
    kind: str
    """`apart`, `together` or `skew`."""
    units: tuple[int, ...]
    domain_of: Ints
    """[H] the domain of each host."""
    labels: Ints
    """[H] equal for hosts that are in the same domains above the host."""
    bound: int = 1
    """Of skew: the greatest difference between domains, of all that have units or may have."""
    meanwhile: int | None = None
    limit: int = 0
    seconds: float = SECONDS

    def amount(self, hosts: Mapping[int, int]) -> int:
        """By how much it is violated."""
        until = time.perf_counter() + self.seconds
        found = self._amount(hosts)
        while time.perf_counter() < until:
            pass
        return found

    def _amount(self, hosts: Mapping[int, int]) -> int:
        counts = self._counts(hosts)
        if self.kind == "apart":
            return sum(count - 1 for count in counts.values())
        if self.kind == "together":
            return sum(counts.values()) - max(counts.values(), default=0)
        return max(max(counts.values(), default=0) - self.bound, 0)

    def _counts(self, hosts: Mapping[int, int]) -> Counter[int]:
        return Counter(
            int(self.domain_of[hosts[unit]]) for unit in self.units if hosts.get(unit, -1) >= 0
        )

    def alike(self, unit: int, hosts: Mapping[int, int]) -> Ints:
        """[H] labels: domains, with a label of its own for each host with another of the units."""
        found = self.labels.copy()
        others = sorted({hosts[one] for one in self.units if one != unit and one in hosts})
        found[others] = len(found) + np.arange(len(others))
        return found
