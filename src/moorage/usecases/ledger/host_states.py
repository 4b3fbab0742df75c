"""Close and open hosts, and keep what Nova says of their compute services.

All of it may be repeated: what is stored already is not written again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.changes import Changeset, CloseHost, PutHostService
from moorage.domain.errors import NotFound
from moorage.domain.host_states import (
    ClosingReason,
    HostRecord,
    OperatorClosing,
    ServiceReport,
)
from moorage.engine.state.host_states import host_states
from moorage.usecases.compliance.impact import NOTHING as NO_IMPACT
from moorage.usecases.compliance.impact import ensembles_at, newly_broken
from moorage.usecases.ledger.hosts import host_status, windows_by_host
from moorage.usecases.ledger.hypervisor_rows import hypervisor_rows
from moorage.usecases.shared.access import require_operator
from moorage.usecases.shared.lookup import host_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.changes import Change
    from moorage.domain.nova_hosts import NovaHost
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.compliance.impact import Impact
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ledger.hosts import HostStatus
    from moorage.usecases.ports import Caller
    from moorage.usecases.shared.candidate_search import CandidateSearch

_AT_ONCE: Final = 200
"""Most services that one commit writes."""
NOTHING: Final = HostRecord()


def close_host(
    env: UseCaseEnvironment, caller: Caller, name: str, reason: str
) -> tuple[HostStatus, Impact]:
    """Close a host: nothing new is placed there. Another reason replaces the one before.

    Return its status then, and the violations that begin by it.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: no such host.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    row = _host(snapshot, name)
    record = _record(snapshot, row)
    before = record.closing
    if before is not None and before.reason == reason:
        return _status(env, snapshot, row), NO_IMPACT
    since = snapshot.taken_at if before is None else before.since
    closing = OperatorClosing(reason, caller.user_id, since)
    closed = replace(record, closing=closing)
    status = _written(env, snapshot, row, closed)
    return status, _impact(env, snapshot, _with(snapshot, row, closed), row)


def open_host(env: UseCaseEnvironment, caller: Caller, name: str) -> HostStatus:
    """Take back that operators have closed a host. What else closes it still does.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: no such host.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    row = _host(snapshot, name)
    record = _record(snapshot, row)
    if record.closing is None:
        return _status(env, snapshot, row)
    return _written(env, snapshot, row, replace(record, closing=None))


def report_service(
    env: UseCaseEnvironment,
    caller: Caller,
    name: str,
    *,
    enabled: bool,
    up: bool,
    forced_down: bool,
) -> tuple[HostStatus, Impact]:
    """Write what Nova says of the compute service of a host.

    Return its status then, and the violations that begin by it.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: no such host.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    row = _host(snapshot, name)
    record = _record(snapshot, row)
    report = _report(enabled=enabled, up=up, forced_down=forced_down, now=snapshot.taken_at)
    if _same(record.service, report):
        return _status(env, snapshot, row), NO_IMPACT
    env.store.commit(Changeset((PutHostService(snapshot.uuids[row], report),)))
    after = _with(snapshot, row, replace(record, service=report))
    return _status(env, after, row), _impact(env, snapshot, after, row)


@dataclass(frozen=True, slots=True)
class ServiceChange:
    """A host of which Nova says something else than before."""

    host: str
    before: tuple[str, ...]
    """Why Nova's word closed the host; empty: it did not."""
    after: tuple[str, ...]


def sync_services(
    env: UseCaseEnvironment, caller: Caller, hosts: Sequence[NovaHost]
) -> tuple[ServiceChange, ...]:
    """Write what Nova says of the compute services of hypervisors, where that has changed.

    A host that is not among them stays as it was.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    snapshot = env.store.snapshot()
    rows = hypervisor_rows(snapshot, hosts)
    found: list[ServiceChange] = []
    every: list[Change] = []
    for one in hosts:
        row = rows.get(one.name)
        if row is None:
            continue
        before = _record(snapshot, row).service
        up = _was_up(before) if one.up is None else one.up
        report = _report(
            enabled=one.enabled, up=up, forced_down=one.forced_down, now=snapshot.taken_at
        )
        if not _same(before, report):
            every.append(PutHostService(snapshot.uuids[row], report))
            found.append(ServiceChange(snapshot.names[row], _why(before), _why(report)))
    for start in range(0, len(every), _AT_ONCE):
        env.store.commit(Changeset(tuple(every[start : start + _AT_ONCE])))
    return tuple(found)


_REFUSED: Final = (
    ClosingReason.OPERATOR,
    ClosingReason.SERVICE_DOWN,
    ClosingReason.FORCED_DOWN,
)
"""Reasons for which hosts are no candidates of Placement's API.

Nova's own query leaves out hosts with `DISABLED_TRAIT`, and inventories and absences speak for
themselves.
"""


def without_closed_hosts(search: CandidateSearch) -> CandidateSearch:
    """The search without hosts that an operator has closed or whose service is down."""
    snapshot, query = search.snapshot, search.query
    closed = host_states(snapshot).closed
    masks = [closed[why] for why in _REFUSED if why in closed]
    if not masks:
        return search
    shut = frozenset(np.flatnonzero(np.logical_or.reduce(masks)).tolist())
    anchors = frozenset(snapshot.roots.tolist()) if query.anchors is None else query.anchors
    return replace(search, query=replace(query, anchors=anchors - shut))


def _report(*, enabled: bool, up: bool, forced_down: bool, now: int) -> ServiceReport | None:
    """What is stored of a service; None: it serves."""
    found = ServiceReport(enabled, up, forced_down, now)
    return found if found.reasons else None


def _was_up(before: ServiceReport | None) -> bool:
    """Whether a service reported, as far as is known.

    Nova lists a service that is forced down as down, so that says nothing of its reports.
    """
    return before is None or before.up or before.forced_down


def _same(before: ServiceReport | None, report: ServiceReport | None) -> bool:
    return _why(before) == _why(report)


def _why(report: ServiceReport | None) -> tuple[str, ...]:
    return () if report is None else tuple(one.value for one in report.reasons)


def _host(snapshot: Snapshot, name: str) -> int:
    """The row of a host.

    Raises:
        NotFound: there is none; what a server offers is no host.
    """
    row = host_named(snapshot, name)
    if row in snapshot.offered_by:
        raise NotFound("host", name)
    return row


def _record(snapshot: Snapshot, row: int) -> HostRecord:
    return snapshot.state(row).host or NOTHING


def _written(
    env: UseCaseEnvironment, snapshot: Snapshot, row: int, record: HostRecord
) -> HostStatus:
    """Write who closes a host, and return its status then."""
    env.store.commit(Changeset((CloseHost(snapshot.uuids[row], record.closing),)))
    return _status(env, _with(snapshot, row, record), row)


def _with(snapshot: Snapshot, row: int, record: HostRecord) -> Snapshot:
    """The snapshot with another record, as a dry run must tell it, too."""
    known = None if record == NOTHING else record
    return snapshot.with_states([replace(snapshot.state(row), host=known)])


def _impact(env: UseCaseEnvironment, before: Snapshot, after: Snapshot, row: int) -> Impact:
    """What the ensembles on a host break by another record of it."""
    there = ensembles_at(env.store, before, row)
    return newly_broken(env, before, after, ensembles=there)


def _status(env: UseCaseEnvironment, snapshot: Snapshot, row: int) -> HostStatus:
    return host_status(snapshot, row, windows_by_host(env.store, snapshot.taken_at))
