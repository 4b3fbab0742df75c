"""Counts in columns which sets of members become too small when domains are lost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DomainCounts:
    """N members in G sets, each in one of D domains or in none; a set must keep so many of them.

    A member of several sets is there several times.
    """

    set_of: Ints
    """[N] the member's set."""
    domain_of: Ints
    """[N] the member's domain, or -1."""
    needed: Ints
    """[G] how many of the members of a set must be left."""
    domains: int
    """D."""

    @cached_property
    def size(self) -> Ints:
        """[G] how many members each set has."""
        return np.bincount(self.set_of, minlength=len(self.needed)).astype(np.int64)

    @cached_property
    def short(self) -> NDArray[np.bool_]:
        """[G] the sets that have too few members as it is."""
        return self.size < self.needed

    @cached_property
    def pairs(self) -> tuple[Ints, Ints, Ints]:
        """Sets with the domains where they have members, and how many there; by set."""
        there = self.domain_of >= 0
        key = self.set_of[there] * self.domains + self.domain_of[there]
        found, count = np.unique(key, return_counts=True)
        return found // self.domains, found % self.domains, count.astype(np.int64)

    def lost_alone(self) -> tuple[Ints, Ints, Ints]:
        """Sets that become too small by the loss of one domain: set, domain, how many are left."""
        sets, domains, count = self.pairs
        left = self.size[sets] - count
        lost = (left < self.needed[sets]) & ~self.short[sets]
        return sets[lost], domains[lost], left[lost]

    def lost_together(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Sets that become too small by the loss of two domains, but by that of neither alone.

        Returns:
            Set, the smaller domain number, the greater one, and how many are left.
        """
        sets, domains, count = self.pairs
        left = self.size[sets] - count
        stays = (left >= self.needed[sets]) & ~self.short[sets]
        sets, domains, count = sets[stays], domains[stays], count[stays]
        starts = np.searchsorted(sets, np.arange(len(self.needed) + 1))
        found: list[Ints] = []
        for one in np.unique(sets).tolist():
            mine = slice(starts[one], starts[one + 1])
            both = count[mine][:, None] + count[mine][None, :]
            a, b = np.nonzero(np.triu(self.size[one] - both < self.needed[one], 1))
            if len(a):
                of = domains[mine]
                found.append(
                    np.stack((np.full(len(a), one), of[a], of[b], self.size[one] - both[a, b]))
                )
        every = np.concatenate(found, axis=1) if found else np.zeros((4, 0), dtype=np.int64)
        return every[0], every[1], every[2], every[3]
