"""Leases, offers, what waits, and absences of hosts in a period, as bars in rows and lanes.

A project sees its own. Rows by rack and host, and absences, are for operators.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Forbidden, InvalidDescription, NotFound
from moorage.domain.lanes import lanes
from moorage.domain.leases import LeaseState
from moorage.domain.offers import OfferState
from moorage.domain.period import DAY, Period
from moorage.domain.topology import DEFAULT_TREE, Level
from moorage.domain.waitlist import EntryState
from moorage.domain.words import natural
from moorage.engine.capacity.capacity_over_time import hosts_where
from moorage.usecases.shared.access import visible_project
from moorage.usecases.shared.lookup import every_record
from moorage.usecases.waitlist.queries import basis, waitlist_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any

    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Caller, Store

AHEAD: Final = 30 * DAY
"""The default length of the period."""


class RowsBy(StrEnum):
    """What a row of a timeline is."""

    LEASE = "lease"
    """A lease, an offer, an entry of the waitlist or an absence."""
    PROJECT = "project"
    RACK = "rack"
    """A domain of the lowest level of the first tree, whatever that is called."""
    HOST = "host"


class BarKind(StrEnum):
    """What a bar of a timeline is."""

    LEASE = "lease"
    OFFER = "offer"
    WAITING = "waiting"
    ABSENCE = "absence"


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that lasts for a period."""

    kind: BarKind
    id: str
    label: str
    period: Period
    occupied: Period
    """With lead and cleaning: what lanes are made for."""
    state: str
    """A lease's; of an offer `offered`; of an absence `planned`, `begun` or `over`; of what waits
    `proved` or `estimated` if it has a window, else `waiting`: somewhere in the period."""
    project: str | None
    series: str | None = None
    decision: str | None = None
    hosts: tuple[str, ...] = ()
    """Of an absence: UUIDs of its hosts."""


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A row with its bars, in the order of their starts, and the lane of each."""

    id: str
    label: str
    bars: tuple[Bar, ...]
    lanes: tuple[int, ...]

    @property
    def height(self) -> int:
        """How many lanes it has."""
        return max(self.lanes, default=-1) + 1


@dataclass(frozen=True, slots=True)
class Timeline:
    """A page of the rows that have bars in a period."""

    window: Period
    rows_by: RowsBy
    rows: tuple[TimelineRow, ...]
    more: bool
    """Whether there are rows after these."""
    snapshot: Snapshot
    valid_until: Instant
    """When time alone changes it."""


@dataclass(frozen=True, slots=True)
class TimelineQuery:
    """What is to be shown."""

    since: Instant | None = None
    """None: now."""
    until: Instant | None = None
    """None: `AHEAD` after the start."""
    rows_by: RowsBy = RowsBy.LEASE
    closed: bool = False
    """Whether leases are shown that are closed."""
    all_projects: bool = False


def timeline(env: UseCaseEnvironment, caller: Caller, query: TimelineQuery, page: Page) -> Timeline:
    """The rows that have bars in a period, one page of them.

    Raises:
        Forbidden: a tenant asked for every project, or for rows by rack or host.
        InvalidDescription: the period ends before it begins, or there are no racks.
        NotFound: the page's marker is no row.
    """
    project = visible_project(caller, all_projects=query.all_projects, project_id=None)
    if query.rows_by in {RowsBy.RACK, RowsBy.HOST} and not caller.operator:
        raise Forbidden("only operators see where leases are")
    snapshot = env.store.snapshot()
    start = snapshot.taken_at if query.since is None else query.since
    end = start + AHEAD if query.until is None else query.until
    if end <= start:
        raise InvalidDescription("the period must end after its start", path="to")
    window = Period(start, end)
    edges = [snapshot.valid_until]
    bars = list(_bars(env.store, caller, snapshot, query, window, project, edges=edges))
    rows = _rows(snapshot, bars, query.rows_by)
    first = 0
    if page.marker is not None:
        at = next((n for n, one in enumerate(rows) if one[0] == page.marker), None)
        if at is None:
            raise NotFound("marker", page.marker)
        first = at + 1
    shown = rows[first : first + page.limit]
    laid_out = tuple(_laid_out(*one) for one in shown)
    more = first + len(shown) < len(rows)
    valid_until = min(one for one in edges if one > snapshot.taken_at)
    return Timeline(window, query.rows_by, laid_out, more, snapshot, valid_until)


def _bars(  # noqa: PLR0913 - what is shown, and what it is read from
    store: Store,
    caller: Caller,
    snapshot: Snapshot,
    query: TimelineQuery,
    window: Period,
    project: str | None,
    *,
    edges: list[Instant],
) -> Iterator[Bar]:
    """What lasts in the period; when time alone changes some of it is added to `edges`."""
    now = snapshot.taken_at
    for lease in every_record(partial(store.leases, project_id=project, overlaps=window)):
        if query.closed or lease.state is not LeaseState.CLOSED:
            yield _of_lease(lease, BarKind.LEASE, lease.state)
    for offer in every_record(partial(store.offers, project_id=project, overlaps=window)):
        if offer.offer is not None and offer.offer.state_at(now) is OfferState.OFFERED:
            edges.append(offer.offer.expires_at)
            yield _of_lease(offer, BarKind.OFFER, OfferState.OFFERED)
    others: Iterator[Bar] = _of_waitlist(store, snapshot, project, edges)
    if caller.operator:
        away = list(every_record(store.capacity_windows))
        edges += (edge for one in away for edge in (one.period.start, one.period.end))
        others = chain(others, (_of_absence(one, now) for one in away))
    yield from (bar for bar in others if bar.period.overlaps(window))


def _of_waitlist(
    store: Store, snapshot: Snapshot, project: str | None, edges: list[Instant]
) -> Iterator[Bar]:
    ordered = waitlist_order(store)
    waiting = partial(store.waitlist, project_id=project, state=EntryState.WAITING)
    for entry in every_record(waiting):
        if entry.state_at(snapshot.taken_at) is EntryState.WAITING:
            edges += (entry.until, entry.latest - entry.terms.lead + 1)
            if entry.estimate is None:
                # Once its first start is over its bar begins later with every moment.
                first = entry.terms.period.start - entry.terms.lead
                edges.append(max(first, snapshot.taken_at) + 1)
            yield _of_entry(snapshot, ordered, entry)


def _of_lease(lease: Lease, kind: BarKind, state: str) -> Bar:
    return Bar(
        kind=kind,
        id=lease.id,
        label=lease.name,
        period=lease.terms.period,
        occupied=lease.terms.occupied,
        state=str(state),
        project=lease.project_id,
        series=None if lease.occurrence is None else lease.occurrence.series,
        decision=lease.decision_id,
    )


def _of_entry(snapshot: Snapshot, ordered: Sequence[WaitlistEntry], entry: WaitlistEntry) -> Bar:
    found, state = entry.estimate, "estimated"
    if found is None:
        earliest = entry.first_at(snapshot.taken_at)
        length = entry.terms.period.end - entry.terms.period.start
        period, state = Period(earliest, max(entry.latest, earliest) + length), "waiting"
    else:
        period = Period(found.start, found.end)
        if found.proved and entry.estimated_from == basis(snapshot, ordered, entry):
            state = "proved"
    return Bar(
        kind=BarKind.WAITING,
        id=entry.id,
        label=entry.name,
        period=period,
        occupied=Period(period.start - entry.terms.lead, period.end + entry.terms.cleaning),
        state=state,
        project=entry.project_id,
    )


def _of_absence(one: CapacityWindow, now: Instant) -> Bar:
    return Bar(
        kind=BarKind.ABSENCE,
        id=one.id,
        label=one.reason or one.kind.value,
        period=one.period,
        occupied=one.period,
        state=one.state_at(now),
        project=None,
        hosts=one.hosts,
    )


def _rows(
    snapshot: Snapshot, bars: Sequence[Bar], rows_by: RowsBy
) -> list[tuple[str, str, list[Bar]]]:
    """Id, label and bars of each row, in the order in which they are drawn."""
    match rows_by:
        case RowsBy.LEASE:
            ordered = sorted(bars, key=_start)
            return [(one.id, one.label, [one]) for one in ordered]
        case RowsBy.PROJECT:
            return _grouped(((one.project or "", one) for one in bars), str)
        case RowsBy.HOST:
            rows = _grouped(_placed(snapshot, bars), natural)
            uuids = {snapshot.names[row]: snapshot.uuids[row] for row in snapshot.hosts.tolist()}
            return [(uuids[name], label, some) for name, label, some in rows]
        case RowsBy.RACK:
            level, topology = _lowest_level(snapshot), snapshot.topology
            placed = _placed(snapshot, bars)
            # What is on several hosts of a rack is there once.
            once = {(topology.domain_of(host, level) or "", one.id): one for host, one in placed}
            return _grouped(((rack, one) for (rack, _), one in once.items()), natural)


def _start(bar: Bar) -> tuple[Instant, Instant, str]:
    return bar.period.start, bar.period.end, bar.id


def _lowest_level(snapshot: Snapshot) -> Level:
    levels = snapshot.topology.levels
    tree = DEFAULT_TREE if DEFAULT_TREE in levels else next(iter(levels), DEFAULT_TREE)
    names = levels.get(tree, ())
    if not names:
        raise InvalidDescription("the fleet has no racks or other domains", path="rows")
    return Level(tree, names[-1])


def _grouped(
    pairs: Iterable[tuple[str, Bar]], key: Callable[[str], Any]
) -> list[tuple[str, str, list[Bar]]]:
    """Rows by the name of each bar's row, in the order of the names; the nameless one is last."""
    found: dict[str, list[Bar]] = defaultdict(list)
    for name, bar in pairs:
        found[name].append(bar)
    names = sorted(found, key=lambda name: (not name, key(name)))
    return [(name, name, sorted(found[name], key=_start)) for name in names]


def _laid_out(id_: str, label: str, bars: Sequence[Bar]) -> TimelineRow:
    return TimelineRow(id_, label, tuple(bars), lanes([one.occupied for one in bars]))


def _placed(snapshot: Snapshot, bars: Sequence[Bar]) -> list[tuple[str, Bar]]:
    """Names of hosts, each with a bar that is about it: once for each host and bar."""
    decided = {one.decision: one for one in bars if one.decision is not None}
    by_decision = _hosts_of_decisions(snapshot, decided.keys())
    found = [
        (snapshot.names[row], bar)
        for decision, bar in decided.items()
        for row in sorted(by_decision.get(decision, ()))
    ]
    found += [
        (snapshot.names[snapshot.row_of[host]], bar)
        for bar in bars
        for host in bar.hosts
        if host in snapshot.row_of
    ]
    return found


def _hosts_of_decisions(snapshot: Snapshot, decisions: AbstractSet[str]) -> Mapping[str, set[int]]:
    """Decision -> rows of the hosts where it has live bookings; slices are at their servers'."""
    hosts, at = hosts_where(snapshot), snapshot.locations.hosts.tolist()
    found: dict[str, set[int]] = defaultdict(set)
    states = chain.from_iterable(snapshot.states.chunks)
    for row, state in enumerate(states):
        if state is None or at[row] < 0 or not hosts[at[row]]:
            continue
        for booking in state.bookings:
            decision = booking.decision
            if decision in decisions and booking.live(snapshot.taken_at):
                found[str(decision)].add(at[row])
    return found
