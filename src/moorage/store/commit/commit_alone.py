"""A commit whose changeset is made while all other writers are locked out (ADR-0017)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.store.commit.commit import commit

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.changes import Changeset, Committed
    from moorage.store.backend import Log
    from moorage.store.changelog.local_commits import Ended
    from moorage.store.database.session import Session
    from moorage.usecases.ports import Clock


def commit_alone(
    connection: Session,
    propose: Callable[[], Changeset | None],
    *,
    log: Log,
    clock: Clock | None,
) -> tuple[Committed, Ended] | None:
    """As `commit`, of what is proposed once everybody else is shut out; None: of nothing."""
    log.shut_out(connection)
    changeset = propose()
    if changeset is None:
        return None
    return commit(connection, changeset, log=log, clock=clock)
