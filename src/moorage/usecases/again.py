"""Try a change again that somebody else's change overtook."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from moorage.domain.errors import ConcurrentUpdate, ConsumerConflict

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.usecases.parts import Parts

T = TypeVar("T")


def again(parts: Parts, attempt: Callable[[], T], *, generation: int | None = None) -> T:
    """Read, judge and commit until nothing moved meanwhile, or too often.

    A caller that names the generation it knows is answered at once: it must look itself.

    Raises:
        ConcurrentUpdate: of the last attempt.
        ConsumerConflict: the first one; looking again here would not change it.
    """
    for _ in range(1, parts.limits.attempts if generation is None else 1):
        try:
            return attempt()
        except ConsumerConflict:
            raise
        except ConcurrentUpdate:
            continue
    return attempt()
