"""The stored texts of what a changeset writes, made before anybody waits for its locks.

Those of ensembles and decisions grow with their members, and follow from the change alone.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.changes import PutDecision, PutEnsemble
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.changes import Change, Changeset

_ENCODERS: Final[Mapping[type, Callable[[Any], str]]] = MappingProxyType(
    {
        PutEnsemble: lambda change: stored_bodies.ENSEMBLE.encode(change.stored),
        PutDecision: lambda change: stored_bodies.DECISION.encode(change.stored),
    }
)


class ChangeBodies:
    """Texts by change; those of changes that were not foreseen are made when asked for."""

    def __init__(self, changeset: Changeset | None = None) -> None:
        # By identity, which costs nothing; the changes are kept, so no other gets one's place.
        self._changes = () if changeset is None else changeset.changes
        self._texts = {
            id(change): _ENCODERS[type(change)](change)
            for change in self._changes
            if type(change) in _ENCODERS
        }

    def of(self, change: Change) -> str:
        """The stored text of a change of one of these kinds."""
        found = self._texts.get(id(change))
        return _ENCODERS[type(change)](change) if found is None else found
