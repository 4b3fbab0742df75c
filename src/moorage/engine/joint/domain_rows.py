"""The hosts of each domain of a level."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]


class DomainRows:
    """Host rows by domain; domain -1 is that of hosts without one."""

    def __init__(self, of: Ints, *, own: bool) -> None:
        """`of` is [H] the domain of each host; `own`: each host is a domain, its row's number."""
        self.of = of
        self.count = int(of.max(initial=-1)) + 1
        self.own = own

    @cached_property
    def covers_all(self) -> bool:
        """Whether every host has a domain."""
        return self.own or not bool((self.of < 0).any())

    @cached_property
    def bins(self) -> Ints:
        """[H] the domain of each host; the number of domains for hosts without one."""
        return np.where(self.of < 0, self.count, self.of)

    @cached_property
    def _order(self) -> Ints:
        # numpy sorts numbers of 16 bits ten times as fast.
        of = self.of.astype(np.int16) if self.count <= np.iinfo(np.int16).max else self.of
        return np.argsort(of, kind="stable")

    @cached_property
    def _starts(self) -> Ints:
        """[D + 1] where each domain begins in the order, and where the last one ends."""
        return np.searchsorted(self.of[self._order], np.arange(self.count + 1))

    @cached_property
    def outside(self) -> Ints:
        """The hosts without a domain, ascending."""
        return self.of[:0] if self.own else self._order[: self._starts[0]]

    def rows_in(self, domains: Ints) -> Ints:
        """The hosts of these domains; a domain named twice gives its hosts twice."""
        if self.own:
            return domains
        first, last = self._starts[domains], self._starts[domains + 1]
        if len(domains) == 1:
            return self._order[first[0] : last[0]]
        sizes = last - first
        ends = np.cumsum(sizes)
        shift = np.repeat(first - ends + sizes, sizes)
        return np.asarray(self._order[np.arange(len(shift)) + shift], dtype=np.int64)

    def sums(self, values: Ints) -> Ints:
        """[D] the sums over the hosts of each domain of [H] values."""
        if self.own:
            return values
        return np.bincount(self.bins, values, self.count + 1)[:-1].astype(np.int64)
