"""Read, create, move and delete resource providers."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.changes import Changeset, CreateProvider, DeleteProvider, UpdateProvider
from moorage.domain.errors import InvalidDescription
from moorage.domain.providers import ResourceProvider
from moorage.engine.state import provider_filters
from moorage.usecases.ledger import withdrawal
from moorage.usecases.shared.lookup import if_stored

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.domain.requests import RequestGroup
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store

    Ints: TypeAlias = NDArray[np.int64]


class AllowedMoves(Enum):
    """Which changes of a provider's parent a caller may make."""

    FROM_ROOT_ONLY = "from root only"
    """A root may get a parent, once; as before microversion 1.37."""
    ANYWHERE = "anywhere"


FROM_ROOT_ONLY: Final = AllowedMoves.FROM_ROOT_ONLY
ANYWHERE: Final = AllowedMoves.ANYWHERE


def find_provider(store: Store, uuid: str) -> ResourceProvider:
    """A provider by UUID; upper and lower case differ.

    Raises:
        NotFound: there is no such provider.
    """
    return store.provider(uuid)


def matching(
    snapshot: Snapshot, group: RequestGroup, *, name: str | None, uuid: str | None
) -> Ints:
    """Rows of providers that satisfy the request group by themselves, with this name and UUID.

    Ascending. An empty name is ignored, as in Placement. Resources must be free at every instant,
    as for candidates.
    """
    mask = provider_filters.apply_filters(
        snapshot.alive, provider_filters.suffixed_group(snapshot, group)
    )
    if uuid is not None:
        row = snapshot.row_of.get(uuid)
        rows = np.array([] if row is None or not mask[row] else [row], dtype=np.int64)
    else:
        rows = np.flatnonzero(mask)
    if not name:
        return rows
    return np.array([row for row in rows.tolist() if snapshot.names[row] == name], dtype=np.int64)


def create(store: Store, *, uuid: str, name: str, parent: str | None) -> ResourceProvider:
    """Create a provider under `parent`, or as a root.

    Returns:
        The provider as created; a root lacks its internal revision.

    Raises:
        InvalidDescription: no name, or no such parent.
        DuplicateName: the name or UUID is taken.
    """
    where = f'Unable to create resource provider "{name}", {uuid}'
    _check_name(name, where)
    if parent is not None:
        _check_parent(store, uuid, parent, where, "create")
    committed = store.commit(Changeset((CreateProvider(uuid, name, parent),)))
    if parent is not None:
        return find_provider(store, uuid)
    return ResourceProvider(
        uuid,
        name,
        parent_uuid=None,
        root_uuid=uuid,
        generation=committed.provider_generations[uuid],
        created_at=committed.at,
        updated_at=committed.at,
    )


def rename(store: Store, uuid: str, name: str) -> ResourceProvider:
    """Rename a provider, and leave its parent as concurrent moves set it.

    Raises:
        NotFound: there is no such provider.
        InvalidDescription: no name.
        DuplicateName: the name is taken.
    """
    _check_name(name, f"Unable to save resource provider {uuid}")
    store.commit(Changeset((UpdateProvider(uuid, name),)))
    return find_provider(store, uuid)


def update(
    store: Store, uuid: str, *, name: str, parent: str | None, movable: AllowedMoves
) -> ResourceProvider:
    """Rename a provider, and give it this parent (None: make it a root).

    Raises:
        NotFound: there is no such provider.
        InvalidDescription: no name, no such parent, a loop, or a move that is not allowed.
        DuplicateName: the name is taken.
        ProviderConflict: only roots may be moved, and it was moved meanwhile.
    """
    where = f"Unable to save resource provider {uuid}"
    _check_name(name, where)
    found = find_provider(store, uuid)
    before, change = found.parent_uuid, UpdateProvider(uuid, name, parent, set_parent=True)
    if parent == before:
        store.commit(_relying(change, found, movable))
        return find_provider(store, uuid)
    if movable is FROM_ROOT_ONLY and before is not None:
        verb = "un-parenting" if parent is None else "re-parenting"
        raise InvalidDescription(
            f"{where}: Object action update failed because: {verb} a provider is not currently "
            "allowed.",
            path="parent_provider_uuid",
        )
    if parent is not None:
        _check_parent(store, uuid, parent, where, "update")
        _check_no_loop(store.snapshot(), uuid, parent, where)
    store.commit(_relying(change, found, movable))
    return find_provider(store, uuid)


def _relying(change: UpdateProvider, found: ResourceProvider, movable: AllowedMoves) -> Changeset:
    """The changeset; if only roots may be moved, it relies on the provider's revision."""
    if movable is ANYWHERE:
        return Changeset((change,))
    return Changeset((change,), relies_on={found.uuid: found.revision}, seen={found.uuid: found})


def delete(store: Store, uuid: str) -> None:
    """Delete a provider; places held on it are withdrawn, see `withdrawal`.

    Raises:
        NotFound, ProviderHasChildren, ProviderInUse.
    """
    withdrawal.commit_with_withdrawal(store, Changeset((DeleteProvider(uuid),)))


def _check_name(name: str, where: str) -> None:
    if not name:
        raise InvalidDescription(f"{where}: a provider needs a name", path="name")


def _check_parent(store: Store, uuid: str, parent: str, where: str, action: str) -> None:
    if parent == uuid:
        reason = (
            "parent provider UUID cannot be same as UUID."
            if action == "create"
            else "creating loop in the provider tree is not allowed."
        )
    elif if_stored(store.provider, parent) is None:
        reason = "parent provider UUID does not exist."
    else:
        return
    raise InvalidDescription(
        f"{where}: Object action {action} failed because: {reason}", path="parent_provider_uuid"
    )


def _check_no_loop(snapshot: Snapshot, uuid: str, parent: str, where: str) -> None:
    row, own = snapshot.row(parent), snapshot.row(uuid)
    while row >= 0:
        if row == own:
            raise InvalidDescription(
                f"{where}: Object action update failed because: creating loop in the provider "
                "tree is not allowed.",
                path="parent_provider_uuid",
            )
        row = int(snapshot.parent[row])
