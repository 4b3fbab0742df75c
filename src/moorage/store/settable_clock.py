"""The simulation's clock: it stands still until it is set.

Its instant lives in a file that every process of one simulation maps, so that all of them, and
the one that sets it, agree at once.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Conflict
from moorage.domain.period import checked, format_instant

if TYPE_CHECKING:
    from pathlib import Path

    from moorage.domain.period import Instant

_INSTANT: Final = struct.Struct("=q")


class ClockRanBackwards(Conflict):
    """A simulation's time only moves forward: what has lapsed does not come back."""


class SettableClock:
    """The clock in a file; see `create`."""

    def __init__(self, path: str | Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._shared = mmap.mmap(descriptor, _INSTANT.size)
        finally:
            os.close(descriptor)

    def now(self) -> Instant:
        """The instant it shows."""
        instant: Instant = _INSTANT.unpack_from(self._shared)[0]
        return instant

    def set(self, instant: Instant) -> None:
        """Move it forward.

        Raises:
            ClockRanBackwards: `instant` is before the one it shows.
            InvalidDescription: it is later than times may be.
        """
        if checked(instant) < self.now():
            raise ClockRanBackwards(
                f"it is {format_instant(self.now())} already; a simulation's clock only moves"
                " forward"
            )
        _INSTANT.pack_into(self._shared, 0, instant)


def create(path: Path, instant: Instant) -> None:
    """Make the file of a clock that shows `instant`.

    Raises:
        InvalidDescription: earlier or later than times may be.
    """
    path.write_bytes(_INSTANT.pack(checked(instant)))
