"""Rules for tests of moves, over domains given as a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class DomainRule:
    """A rule over how many of its units each domain has."""

    name: str
    kind: str
    """`apart`, `together`, `skew`, `domains`, or `at-most`."""
    units: tuple[int, ...]
    domain_of: tuple[int, ...]
    """[H] the domain of each host."""
    bound: int = 1
    """Of skew, domains, and at-most."""
    meanwhile: int | None = None
    limit: int = 0

    def counts(self, hosts: Mapping[int, int]) -> Counter[int]:
        return Counter(self.domain_of[hosts[unit]] for unit in self.units if unit in hosts)

    def amount(self, hosts: Mapping[int, int]) -> int:
        counts = self.counts(hosts)
        if self.kind == "apart":
            return sum(count - 1 for count in counts.values())
        if self.kind == "together":
            return sum(counts.values()) - max(counts.values(), default=0)
        if self.kind == "skew":
            every = [counts[domain] for domain in set(self.domain_of)]
            return max(max(every) - min(every) - self.bound, 0)
        if self.kind == "domains":
            return max(self.bound - len(counts), 0)
        return sum(max(count - self.bound, 0) for count in counts.values())

    def alike(self, unit: int, hosts: Mapping[int, int]) -> NDArray[np.int64]:
        others = self.counts({one: host for one, host in hosts.items() if one != unit})
        return np.array([others[domain] for domain in self.domain_of], dtype=np.int64)
