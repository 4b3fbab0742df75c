"""Custom resource classes and traits that tenants' servers bring in, and give back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.changes import BoundOfferedNames, DropOfferedNames
from moorage.domain.quotas import too_many_names
from moorage.domain.resources import is_custom_name
from moorage.usecases.shared.lookup import every_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Store

_CLASS: Final = "resource class"
_TRAIT: Final = "trait"
NO_NAMES: Final = frozenset[tuple[str, str]]()


def names_of(classes: Iterable[str], traits: Iterable[str]) -> frozenset[tuple[str, str]]:
    """The custom ones of these names, each with its kind."""
    every = (*((_CLASS, one) for one in classes), *((_TRAIT, one) for one in traits))
    return frozenset(one for one in every if is_custom_name(one[1]))


@dataclass(frozen=True, slots=True)
class OfferedNames:
    """The custom names at one revision of the ledger."""

    store: Store
    snapshot: Snapshot
    known: frozenset[tuple[str, str]]
    """All that there are."""
    offered: frozenset[tuple[str, str]]
    """Those of them that tenants' servers have brought in."""

    @classmethod
    def of(cls, store: Store, snapshot: Snapshot) -> OfferedNames:
        """The names of a ledger."""
        classes, traits = store.resource_classes(), store.traits()
        known = names_of((one.name for one in classes), (one.name for one in traits))
        offered = names_of(
            (one.name for one in classes if one.offered),
            (one.name for one in traits if one.offered),
        )
        return cls(store, snapshot, known, offered)

    def bound(
        self,
        env: UseCaseEnvironment,
        project_id: str,
        provider: str,
        wanted: frozenset[tuple[str, str]],
    ) -> Iterator[BoundOfferedNames]:
        """Check that a project's servers need few names that are there for such servers only.

        The commit checks it again by the condition that is returned, if there are new names.

        Args:
            env: has the limit.
            project_id: the project.
            provider: the server provider that is to have the names `wanted`.
            wanted: all names of its offer.

        Raises:
            LimitExceeded: it is to have further ones, and they would be too many.
        """
        others = self._of_project(project_id, provider)
        before = self._of_provider(provider)
        needed = frozenset(one for one in wanted if one in self.offered or one not in self.known)
        new = needed - others - before
        total, limit = len(others | needed), env.limits.offered_names
        if new and total > limit:
            raise too_many_names(limit=limit, used=total - len(new), requested=len(new))
        if new:
            yield BoundOfferedNames(project_id, limit, len(new))

    def returned(
        self, provider: str, wanted: frozenset[tuple[str, str]] = NO_NAMES
    ) -> Iterator[DropOfferedNames]:
        """The change that deletes what no provider has once this one has the names `wanted`."""
        row = self.snapshot.row_of.get(provider, -1)
        unused = [one for one in self.offered - wanted if not self._used_beside(row, *one)]
        if unused:
            classes = frozenset(name for kind, name in unused if kind == _CLASS)
            yield DropOfferedNames(classes, frozenset(n for kind, n in unused if kind == _TRAIT))

    def _used_beside(self, row: int, kind: str, name: str) -> bool:
        """Whether a provider other than that of a row has the name."""
        if kind == _CLASS:
            columns = self.snapshot.classes.get(name)
            return columns is not None and bool(np.any(columns.rows != row))
        mask = self.snapshot.traits.get(name)
        return mask is not None and int(np.count_nonzero(mask)) > (
            0 <= row < len(mask) and mask[row]
        )

    def _of_project(self, project_id: str, but: str) -> frozenset[tuple[str, str]]:
        """The offered names that the project's server providers have, without one of them."""
        every = every_record(self.store.server_providers)
        mine = (one.id for one in every if one.project_id == project_id and one.id != but)
        return frozenset[tuple[str, str]]().union(*map(self._of_provider, mine))

    def _of_provider(self, provider: str) -> frozenset[tuple[str, str]]:
        row = self.snapshot.row_of.get(provider)
        if row is None:
            return NO_NAMES
        classes = (one.resource_class for one in self.snapshot.inventories_of(row))
        return names_of(classes, self.snapshot.traits_of(row)) & self.offered
