"""The earliest of many starts at which a request fits, with or without a proof that it is.

Starts are solved one by one in the order of time; those that counting has refuted are not (see
`engine.starts`). An answer is proved to be the earliest when each start before it was refuted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.domain.period import Instant


@dataclass(frozen=True, slots=True)
class Sought:
    """What came of a search over starts."""

    start: Instant | None
    """None: at none of those that were looked at."""
    proved: bool
    """Whether every earlier start was refuted; without a start, whether every one was."""
    unmoved: bool = True
    """Whether that is so at least where nobody who could make room by moving does."""


NOWHERE = Sought(None, proved=True)
"""No start was left to look at."""


def earliest(
    starts: Sequence[Instant],
    fits: Callable[[Instant], bool | None],
    remaining: Callable[[], float],
) -> Sought:
    """The first of these starts at which a request fits.

    When half of the time is gone without an answer starts are passed over, more and more of
    them: some window is better than none, and then it is not proved to be the earliest.

    Args:
        starts: that were not refuted, ascending.
        fits: whether it fits at a start: False with a proof, None where neither was found in time.
        remaining: seconds left for the whole search.
    """
    whole, proved, stride, at = remaining(), True, 1, 0
    while at < len(starts):
        if remaining() <= 0:
            return Sought(None, proved=False)
        verdict = fits(starts[at])
        if verdict:
            return Sought(starts[at], proved)
        proved = proved and verdict is False
        if remaining() < whole / 2:
            stride *= 2
        # The last one is looked at in any case: after everything else has ended.
        following = at + 1 if at + 1 >= len(starts) - 1 else min(at + stride, len(starts) - 1)
        proved = proved and following == at + 1
        at = following
    return Sought(None, proved)
