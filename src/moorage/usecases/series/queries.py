"""Queries of series: access, listing, their leases, and the state that follows from these."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from moorage.domain.series import state_of
from moorage.usecases.paging import Page
from moorage.usecases.series.requests import SeriesResult
from moorage.usecases.shared.access import owned, visible_project
from moorage.usecases.shared.lookup import every_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.leases import Lease, LeaseState
    from moorage.domain.series import Series, SeriesState
    from moorage.usecases.ports import Caller, Store

_WHOLE = Page()


def own_series(store: Store, caller: Caller, series_id: str) -> Series:
    """The series, if the caller may see it.

    Raises:
        NotFound: there is no such series, or it belongs to another project.
    """
    return owned(caller, "series", series_id, store.series(series_id))


def leases_of(store: Store, series: Series) -> tuple[Lease, ...]:
    """The leases of a series by occurrence number, closed ones included."""
    found = every_record(partial(store.leases, project_id=None, series_id=series.id))
    return tuple(sorted(found, key=_number))


def series_with_leases(store: Store, series: Series) -> SeriesResult:
    """The series with its leases as stored now."""
    return SeriesResult(series, leases_of(store, series), store.snapshot())


def status(store: Store, series: Series) -> SeriesState:
    """The state of a series, which follows from its leases."""
    return state_of(series, store.occurrences((series.id,))[series.id].keys(), store.now())


def list_series(
    store: Store,
    caller: Caller,
    *,
    all_projects: bool = False,
    name: str | None = None,
    page: Page = _WHOLE,
) -> Sequence[tuple[Series, Mapping[LeaseState, int]]]:
    """The caller's series by creation time, each with the number of its leases per state.

    For operators those of every project.

    Raises:
        Forbidden: a tenant asked for every project's series.
        NotFound: the page's marker is no series that the caller may see.
    """
    project = visible_project(caller, all_projects=all_projects, project_id=None)
    if page.marker is not None:
        own_series(store, caller, page.marker)
    found = store.all_series(project_id=project, name=name, page=page)
    counts = store.occurrences([one.id for one in found])
    return [(one, counts[one.id]) for one in found]


def _number(lease: Lease) -> int:
    assert lease.occurrence is not None, "only leases of series are asked for"
    return lease.occurrence.index
