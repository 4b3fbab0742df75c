"""Finds the earliest start at which a request fits, and whether it is proved to be the earliest.

Starts are solved one by one in the order of time, without those that counting refutes (see
`capacity.starts`). An answer is proved if every earlier start was refuted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.domain.period import Instant


@dataclass(frozen=True, slots=True)
class EarliestStart:
    """The result of a search over starts."""

    start: Instant | None
    """None: the request fits at none of the starts that were tried."""
    proved: bool
    """Whether every earlier start was refuted; without a start, whether every one was."""
    proved_without_relocation: bool = True
    """Whether it is proved at least for the fleet as it is, without relocations."""


NO_START = EarliestStart(None, proved=True)
"""No start was left to try."""


def first_fitting(
    starts: Sequence[Instant],
    fits: Callable[[Instant], bool | None],
    remaining: Callable[[], float],
) -> EarliestStart:
    """The first of these starts at which a request fits.

    After half of the time without an answer, more and more starts are skipped: a later start is
    better than none. The answer is then not proved.

    `starts` are those that counting did not refute, ascending. `fits` returns False with a proof,
    or None when time ran out; `remaining` returns the seconds left for the whole search.
    """
    whole, proved, stride, at = remaining(), True, 1, 0
    while at < len(starts):
        if remaining() <= 0:
            return EarliestStart(None, proved=False)
        verdict = fits(starts[at])
        if verdict:
            return EarliestStart(starts[at], proved)
        proved = proved and verdict is False
        if remaining() < whole / 2:
            stride *= 2
        # The last start, after everything else has ended, is always tried.
        following = at + 1 if at + 1 >= len(starts) - 1 else min(at + stride, len(starts) - 1)
        proved = proved and following == at + 1
        at = following
    return EarliestStart(None, proved)
