"""Which reservation of a lease the refusal of the whole is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.explain import Explanation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.errors import Infeasible


def lacking_type(error: Infeasible, types: Mapping[str, str]) -> str | None:
    """The resource type of the first reservation that does not fit; None if none is named.

    Blazar refuses a lease for the first one as well. `types` are those of all reservations, by
    role. Elements of conflicts are named after their role: `r0`, or a policy such as `r0-apart`.
    """
    assert isinstance(error.explanation, Explanation)
    named = {
        element.name.partition("-")[0]
        for one in error.explanation.conflicts
        for element in one.elements
    }
    conflicting = [kind for role, kind in types.items() if role in named]
    every = set(types.values())
    return conflicting[0] if conflicting else every.pop() if len(every) == 1 else None
