"""The bound of Placement's candidates, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.engine.candidates.limit import CandidateLimit
from moorage.options.kinds import AUTO, UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Mapping

_AUTO: Final = 1_000
"""The bound `auto`: as many as Nova asks for; fleets with more hosts get one of each."""


def candidate_limit(value: Mapping[str, Any]) -> CandidateLimit:
    """The bound that the settings describe."""
    asked = value["max_allocation_candidates"]
    randomize = value["randomize_allocation_candidates"]
    by_room = value["order_candidates_by_room"]
    if asked == AUTO:
        return CandidateLimit(_AUTO, randomize=randomize, by_room=by_room, every_tree=True)
    depth_first = value["allocation_candidates_generation_strategy"] == "depth-first"
    most = None if asked == UNLIMITED else asked
    return CandidateLimit(most, depth_first, randomize, by_room)
