"""The environment of every use case: ports, limits, strategies and what the process remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from moorage.usecases.decide.environment import DecideEnvironment
from moorage.usecases.shared.admission import Admission, SeriesInProgress
from moorage.usecases.shared.waitlist_memory import WaitlistMemory

if TYPE_CHECKING:
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.usecases.shared.lease_check import LeaseCheck


class TriesEntry(Protocol):
    """Grants an entry of the waitlist if it fits now; see `waitlist.attempt`."""

    def __call__(self, env: UseCaseEnvironment, entry: WaitlistEntry, seconds: float) -> bool:
        """Whether it waits no more; at most so many seconds are spent on the search."""


@dataclass(frozen=True, slots=True)
class UseCaseEnvironment(DecideEnvironment):
    """The ports, limits and strategies that a use case works with."""

    try_entry: TriesEntry
    """What a request does for the entries of the waitlist that come before it."""
    check: LeaseCheck | None = None
    """The operator's own check of leases."""
    admission: Admission = field(default_factory=Admission, compare=False)
    """How many expensive requests this process works on."""
    line: WaitlistMemory = field(default_factory=WaitlistMemory, compare=False)
    """What this process remembers of the waitlist."""
    under_way: SeriesInProgress = field(default_factory=SeriesInProgress, compare=False)
    """Which series this process makes."""
