"""Rename a series, and cancel its leases that have not started."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, PutLease, PutSeries
from moorage.domain.errors import Busy, NotFound, StaleGeneration, WrongState
from moorage.domain.leases import LeaseState
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.series.queries import leases_of, own_series, series_with_leases
from moorage.usecases.shared.access import check_generation
from moorage.usecases.shared.retry import retry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.leases import Lease
    from moorage.domain.series import Series
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller, Store
    from moorage.usecases.series.requests import SeriesResult

_UNBEGUN: Final = frozenset({LeaseState.PENDING, LeaseState.STARTING})
_TRIES: Final = 5


def rename_series(
    env: UseCaseEnvironment,
    caller: Caller,
    series_id: str,
    name: str,
    generation: int | None,
) -> SeriesResult:
    """Rename a series and its leases in one transaction, except leases renamed on their own.

    Raises:
        NotFound: no such series for this caller.
        StaleGeneration: the series has another generation.
    """
    store = env.store

    def attempt() -> SeriesResult:
        series = own_series(store, caller, series_id)
        check_generation(series, generation)
        now = store.now()
        renamed = replace(series, name=name, updated_at=now)
        leases = [
            (one, replace(one, name=new, updated_at=now))
            for one in leases_of(store, series)
            for new in _called(series, renamed, one)
        ]
        store.commit(
            Changeset(
                (
                    PutSeries(renamed, series.generation),
                    *(PutLease(new, one.generation) for one, new in leases),
                )
            )
        )
        return series_with_leases(store, store.series(series_id))

    return retry(env, attempt)


def _called(series: Series, renamed: Series, lease: Lease) -> tuple[str, ...]:
    """The new name of a lease whose name is the one that the series gave it; else empty."""
    assert lease.occurrence is not None, "it is one of the series"
    index = lease.occurrence.index
    return (renamed.called(index),) if lease.name == series.called(index) else ()


def cancel_series(
    env: UseCaseEnvironment,
    caller: Caller,
    series_id: str,
    *,
    since: int | None = None,
    only: int | None = None,
) -> tuple[Lease, ...]:
    """Cancel the leases of a series that have not started; started leases continue.

    Each lease is cancelled in its own transaction; if the service stops meanwhile, a repeat of the
    request cancels the rest.

    `since` is the first occurrence to cancel, None for the first of the series; `only` cancels one
    alone.

    Returns:
        The leases that were cancelled, or would be.

    Raises:
        NotFound: no such series for this caller, or it has no such occurrence.
        WrongState: the occurrence has started or ended, or all occurrences have started.
        Busy: too many conflicting commits.
    """
    chosen = _chosen(env.store, caller, series_id, since, only)
    each = (_cancelled(env, caller, one) for one in chosen)
    return tuple(one for one in each if one is not None)


def _cancelled(env: UseCaseEnvironment, caller: Caller, lease: Lease) -> Lease | None:
    """The cancelled lease; None if it has started or was cancelled meanwhile."""
    for _ in range(_TRIES):
        try:
            return cancel_lease(env, caller, lease.id, lease.generation)
        except StaleGeneration:
            lease = env.store.lease(lease.id)
            if _begun(env.store, lease):
                return None
    raise Busy("too many conflicting changes of the leases of the series; retry")


def _chosen(
    store: Store, caller: Caller, series_id: str, since: int | None, only: int | None
) -> Sequence[Lease]:
    series = own_series(store, caller, series_id)
    every = {one.occurrence.index: one for one in leases_of(store, series) if one.occurrence}
    if only is not None:
        if only not in every:
            raise NotFound("occurrence", f"{only} of series {series.name}")
        lease = every[only]
        if _begun(store, lease):
            state = "started" if lease.state in _UNBEGUN else lease.state
            raise WrongState(f"occurrence {only} is {state}: it is {lease.called}")
        return [lease]
    chosen = [
        one for index, one in every.items() if index >= (since or 1) and not _begun(store, one)
    ]
    if not chosen:
        raise WrongState("no occurrence is left that has not started")
    return chosen


def _begun(store: Store, lease: Lease) -> bool:
    """Whether the lease has started, even if no worker has activated it yet."""
    return lease.state not in _UNBEGUN or lease.terms.period.start <= store.now()
