"""A commit that is thought of while nobody else can write (ADR-0017)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.store.commit import commit

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.changes import Changeset, Committed
    from moorage.store.backends import Log
    from moorage.store.own import Ended
    from moorage.store.session import Session
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
