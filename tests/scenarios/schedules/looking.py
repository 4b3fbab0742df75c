"""What must be true whenever the workers have come to rest, reckoned from the rows alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.scenarios.schedules.watched import NOTHING, everything, taken

from moorage.domain.bookings import BookingState
from moorage.domain.decisions import DecisionState
from moorage.domain.effects import EffectKind
from moorage.domain.leases import LeaseState
from moorage.domain.period import parse_instant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.scenarios.schedules.months import Months

    from moorage.domain.bookings import Booking
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant, Period
    from moorage.domain.resources import Amounts
    from moorage.usecases.effect_dispatch import Message


def check(here: Months) -> None:
    """Everything."""
    bookings = everything(here.store)
    check_sums(here, bookings)
    check_overage(here, bookings)
    # Who should be gone has some time to go before anybody misses the place.
    grace = here.env.limits.grace
    over = overfull(here, [one for one in bookings if not _going(one, here.now, grace)])
    leases = here.leases()
    for lease in leases:
        check_life(here, lease)
        check_places(here, lease, bookings)
        check_flag(here, lease, leases, bookings, over)
    check_effects(here)


def check_sums(here: Months, bookings: list[Booking]) -> None:
    """Allocations are those that were acknowledged; usages and columns are their sums."""
    real = [one for one in bookings if one.state is BookingState.ALLOCATED]
    found: dict[str, dict[str, Amounts]] = {}
    for one in real:
        found.setdefault(one.consumer, {})[one.provider] = one.amounts
    assert found == here.servers
    assert not here.store.idle_consumers()
    used = Counter[tuple[str, str]]()
    for one in real:
        used.update({(one.provider, name): amount for name, amount in one.amounts.items()})
    sums = taken(bookings, here.now)
    snapshot = here.store.snapshot()
    assert snapshot.taken_at == here.now
    for name, columns in snapshot.classes.items():
        for position, row in enumerate(columns.rows.tolist()):
            where = (snapshot.uuids[row], name)
            assert columns.used[position] == used[where], (where, "usage")
            level = sums.get(where, NOTHING)
            peak = max(level.at(edge) for edge in level.edges(here.now))
            assert columns.peak[position] == peak, (where, "peak")
            assert columns.capacity[position] == here.store.room[where]
    whole = Counter[str]()
    for _, one in here.store.usages("project-a"):
        whole.update(one.amounts)
    assert whole == sum(
        (Counter(of) for each in here.servers.values() for of in each.values()), Counter()
    )


def check_overage(here: Months, bookings: list[Booking]) -> None:
    """Nowhere more is taken than there is, unless for a cause."""
    found = overfull(here, bookings)
    assert here.disturbed or not found, f"promised twice: {found}"


def _going(one: Booking, now: Instant, grace: Duration) -> bool:
    return one.state is BookingState.ALLOCATED and one.period.end <= now < one.period.end + grace


def overfull(here: Months, bookings: list[Booking]) -> Mapping[tuple[str, str], list[Instant]]:
    """Where more is taken than there is, and at which edges."""
    found = {}
    for where, level in taken(bookings, here.now).items():
        room = here.store.room[where]
        bad = sorted(edge for edge in level.edges(here.now) if level.at(edge) > room)
        if bad:
            found[where] = bad
    return found


ORDER: list[LeaseState] = [one for one in LeaseState if one is not LeaseState.OFFERED]
"""What a lease goes through, from when it is granted."""


def check_life(here: Months, lease: Lease) -> None:
    """It is in the state that its edges say: nothing of it is late, nor early."""
    # One that is cancelled in the instant in which it began lasts a moment on paper.
    moment = 1 if lease.state is LeaseState.ENDING else 0
    first, last = state_at(lease, here.now), state_at(lease, max(here.now, here.latest) + moment)
    assert ORDER.index(first) <= ORDER.index(lease.state) <= ORDER.index(last), lease


def state_at(lease: Lease, now: Instant) -> LeaseState:
    """The state by the clock alone."""
    terms = lease.terms
    edges = (terms.occupied.start, terms.period.start, terms.period.end, terms.occupied.end)
    return ORDER[sum(now >= edge for edge in edges)]


def check_places(here: Months, lease: Lease, bookings: list[Booking]) -> None:
    """Each member has its place, of its size, for the whole period; apart where that is asked."""
    decision = here.store.decision(lease.decision_id)
    ensemble = here.store.ensemble(lease.ensemble_id)
    kept = decision.state is DecisionState.HELD and here.now < decision.expires_at
    promised = lease.state in BEFORE or (lease.state is LeaseState.ACTIVE and kept)
    hosts: list[str] = []
    latest = max(here.now, here.latest)
    for member in ensemble.members:
        consumer = member.server_id or member.uuid
        places = [one for one in bookings if one.consumer == consumer]
        # What nobody had claimed was freed; who has come since has places, and a decision, anew.
        freed = lease.terms.expires_at <= latest and member.name not in decision.places
        assert places or freed or not promised, f"{member.name} of {lease.id} has no place"
        for one in places:
            assert one.amounts == ensemble.roles[0].resources
            assert one.period.end == lease.terms.occupied.end or lease.state in AFTER
            assert one.period.start <= max(latest, lease.terms.occupied.start)
            hosts.append(one.provider)
    assert not ensemble.policies or len(set(hosts)) == len(hosts), "two are on one host"


BEFORE = (LeaseState.PENDING, LeaseState.STARTING)
AFTER = (LeaseState.ENDING, LeaseState.CLOSED)


def check_flag(
    here: Months,
    lease: Lease,
    leases: list[Lease],
    bookings: list[Booking],
    over: Mapping[tuple[str, str], list[Instant]],
) -> None:
    """It is degraded if a place of it cannot be kept, and only then."""
    if lease.state in AFTER:
        return
    mine = [one for one in reserved(bookings) if one.decision == lease.decision_id]
    off = [one for one in mine if one.provider in here.disabled]
    stranded = {
        one.consumer
        for one in bookings
        if one.state is not BookingState.RESERVED
        and one.provider in here.disabled
        and one.decision is not None
        and here.store.decision(one.decision).lease_id == lease.id
    }
    assert lease.missing >= len(stranded), "its servers' host is disabled"
    touched = [one for one in mine if any(_overfull(one, over))]
    if off:
        assert lease.degraded, "its host is disabled"
    if not off and not touched:
        count = len(stranded)
        assert (lease.degraded, lease.missing) == (count > 0, count), "degraded for no cause"
    for one in touched:
        beside = {
            other.decision
            for other in reserved(bookings)
            if other.provider == one.provider and other.period.overlaps(one.period)
        }
        assert any(each.degraded for each in leases if each.decision_id in beside), (
            "nobody says that places are missing"
        )


def reserved(bookings: list[Booking]) -> list[Booking]:
    """Those that keep places for leases."""
    return [one for one in bookings if one.state is BookingState.RESERVED]


def _overfull(one: Booking, over: Mapping[tuple[str, str], list[Instant]]) -> list[Instant]:
    return [
        edge
        for name in one.amounts
        for edge in over.get((one.provider, name), [])
        if one.period.covers(edge)
    ]


def check_effects(here: Months) -> None:
    """Nothing that is due waits; who ends was warned, and in time."""
    assert not here.store.due_effects(10)
    if here.disturbed:
        return
    notice = here.env.limits.notice
    for when, message in here.heard:
        if message.body["kind"] != EffectKind.DELETE:
            continue
        details = message.body["details"]
        assert isinstance(details, dict)
        until = parse_instant(details["until"])
        assert when == until or details["reason"] == BY_OWNER, "ended too late, or too early"
        if details["reason"] == YIELDS:
            warned = [
                at
                for at, one in here.heard
                if one.body["kind"] == EffectKind.WARN and _of_same(one, message)
            ]
            assert min(warned, default=until) <= until - notice, "not warned in time"


def _of_same(one: Message, other: Message) -> bool:
    """Both of one server, or of the member whose place it took."""
    mine, others = one.body["details"], other.body["details"]
    assert isinstance(mine, dict)
    assert isinstance(others, dict)
    member = [(of.get("ensemble"), of.get("member")) for of in (mine, others)]
    return one.subject == other.subject or (member[0] == member[1] != (None, None))


BY_OWNER = "its owner wants it ended"
YIELDS = "it yields to a lease"


# --- what steps ask ---------------------------------------------------------------------------


def room_over(here: Months, amounts: Amounts, stay: Period) -> set[str]:
    """The hosts with so much room at every instant of a stay, and not disabled."""
    sums = taken(everything(here.store), here.now)
    found = set()
    for host in here.names:
        if host in here.disabled:
            continue
        if all(
            level.at(edge) + amount <= here.store.room[host, name]
            for name, amount in amounts.items()
            for level in [sums.get((host, name), NOTHING)]
            for edge in level.edges(here.now)
            if stay.covers(edge)
        ):
            found.add(host)
    return found
