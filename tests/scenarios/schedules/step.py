"""The shape of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.scenarios.schedules.months import Months

    from moorage.domain.period import Duration, Instant

T = TypeVar("T")


class Step(Protocol):
    """Something that happens."""

    def do(self, here: Months) -> str:
        """Do it; say in a word what came of it."""


NOTHING = "nothing there"
"""What comes of a step that is about what is not there."""


def chosen(of: Sequence[T], which: int) -> T | None:
    """The one that a number means, if there are any."""
    return of[which % len(of)] if of else None


def rounded(instant: Instant, rounding: Duration) -> Instant:
    """The first round instant that is not before it."""
    return -(-instant // rounding) * rounding
