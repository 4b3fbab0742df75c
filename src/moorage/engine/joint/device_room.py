"""The room of hosts for shares of devices: each amount is one provider's.

A host with four GPUs of which 900 of 1,000 shares are free has no room for a whole one, though
3,600 are free; and a member that takes 400 leaves room for three of 600, not for five. So amounts
of a class that providers below the host have are counted provider by provider.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float32]

NO_DEVICE: Final = -1
"""What is free where a host has no further provider."""


class Share(NamedTuple):
    """An amount that one provider gives."""

    amount: int
    gives: Bools | None
    """[H, D] providers that may give it; None: all."""
    number: int = 1
    """How often it is taken."""


@dataclass(frozen=True, eq=False)
class DeviceRoom:
    """What is free of one class on each of the D providers that hosts have at most."""

    free: Ints
    """[H, D] in the order in which they are given out; `NO_DEVICE` beyond a host's last."""
    shapes: Mapping[int, tuple[Share, ...]]
    """Number of a shape -> what it takes of the class."""
    roles: Mapping[int, tuple[Share, ...]]
    """Number of a role -> what a member takes of the class; absent: nothing."""

    def after(self, free: Ints, role: int, rows: Ints | slice) -> Ints:
        """[n, D] what is free after one more member of a role on each host.

        Each amount is taken from the first provider that has it, as devices are assigned. A host
        without one stays as it is.
        """
        for share in self.roles.get(role, ()):
            for _ in range(share.number):
                fits = free >= share.amount
                if share.gives is not None:
                    fits &= share.gives[rows]
                first = fits.argmax(axis=1)
                at = np.arange(len(free))
                taken = np.where(fits[at, first], share.amount, 0)
                free = free.copy()
                free[at, first] -= taken
        return free

    def left_on(self, row: int, roles: Sequence[int]) -> Ints:
        """[D] what members of these roles leave on a host; devices are given out role by role."""
        rows = np.array([row])
        free = self.free[rows]
        for role in sorted(roles):
            free = self.after(free, role, rows)
        found: Ints = free[0]
        return found

    def limit(self, left: Floats, free: Ints, rows: Ints | slice) -> None:
        """Let no shape have more room in `left` [J, n] than these providers give it."""
        for j, shares in self.shapes.items():
            for share in shares:
                times = np.maximum(free, 0) // share.amount
                if share.gives is not None:
                    times *= share.gives[rows]
                np.minimum(left[j], times.sum(axis=1) // share.number, out=left[j])


def device_columns(host_of: Ints, host_count: int, most: int) -> tuple[Ints, Ints, int] | None:
    """The places of n providers in a table of hosts: row, column, and how many columns there are.

    `host_of` [n] is the row of each one's host. None: some host has more than `most` of them.
    """
    order = np.argsort(host_of, kind="stable")
    counts = np.bincount(host_of, minlength=host_count)
    width = int(counts.max(initial=0))
    if width > most:
        return None
    column = np.empty(len(host_of), dtype=np.int64)
    column[order] = np.arange(len(host_of)) - np.repeat(np.cumsum(counts) - counts, counts)
    return host_of, column, width
