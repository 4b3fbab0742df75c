"""What became free between two snapshots: all that may matter to who waits, and no more."""

from dataclasses import replace

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.period import FOREVER, Period
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.topology import Topology
from moorage.engine.state.freed_capacity import FreedLog, freed
from moorage.engine.state.snapshot import ProviderState, Snapshot


def provider(name: str, *, revision: int = 0, vcpu: int = 8) -> ResourceProvider:
    return ResourceProvider(
        name, name, None, name, revision=revision, inventories=(Inventory("VCPU", vcpu),)
    )


def booked(start: int, end: int, amount: int = 1, **more: object) -> Booking:
    state = BookingState.RESERVED
    fields = {"amounts": {"VCPU": amount}, "period": Period(start, end), "state": state, **more}
    return Booking("c", "h", **fields)  # type: ignore[arg-type]  # fields of a booking


def snapshot(*bookings: Booking, revision: int = 1, vcpu: int = 8, now: int = 0) -> Snapshot:
    state = ProviderState(provider("h", revision=revision, vcpu=vcpu), bookings)
    return Snapshot.empty(now=now).with_states([state], revision=revision)


def later(old: Snapshot, *bookings: Booking, vcpu: int = 8, now: int = 0) -> Snapshot:
    state = ProviderState(provider("h", revision=old.revision + 1, vcpu=vcpu), bookings)
    return old.with_states([state], revision=old.revision + 1, now=now)


def test_what_is_taken_is_not_freed() -> None:
    old = snapshot(booked(10, 20))
    assert list(freed(old, later(old, booked(10, 20), booked(30, 40)))) == []
    assert list(freed(old, old)) == []


def test_what_ends_or_ends_earlier_is() -> None:
    old = snapshot(booked(10, 20), booked(30, 40))
    assert list(freed(old, later(old, booked(10, 20)))) == [("VCPU", 30, 40)]
    assert list(freed(old, later(old, booked(10, 15), booked(30, 40)))) == [("VCPU", 10, 20)]


def test_a_hold_that_became_a_server_is_not() -> None:
    old = snapshot(booked(10, 20))
    server = booked(10, 20, state=BookingState.ALLOCATED, decision=None)
    assert list(freed(old, later(old, replace(server, consumer="server")))) == []


def test_what_lapses_by_time_alone_is() -> None:
    old = snapshot(booked(0, FOREVER, lapses_at=50))
    assert list(freed(old, old.at(49))) == []
    assert list(freed(old, old.at(50))) == [("VCPU", 0, FOREVER)]


def test_what_is_past_is_not() -> None:
    old = snapshot(booked(10, 20))
    assert list(freed(old, later(old, now=20))) == []


def test_hosts_that_come_or_grow_are() -> None:
    old = snapshot()
    assert list(freed(old, later(old, vcpu=16))) == [("VCPU", 0, FOREVER)]
    more = ProviderState(provider("i", revision=2))
    assert list(freed(old, old.with_states([more], revision=2))) == [("VCPU", 0, FOREVER)]
    gone = old.with_states(removed=["h"], revision=2)
    assert list(freed(old, gone)) == []
    other = old.with_states(topology=Topology({}, {}, {}), topology_revision=9)
    assert list(freed(old, other)) == [("", 0, FOREVER)]


def test_a_log_says_what_was_freed_since() -> None:
    log = FreedLog()
    log.add(iter([("VCPU", 10, 20)]))
    mark = log.mark
    assert log.since(0, {"VCPU", "DISK_GB"}, Period(19, 30))
    assert not log.since(0, {"VCPU"}, Period(20, 30))
    assert not log.since(0, {"DISK_GB"}, Period(10, 20))
    assert not log.since(mark, {"VCPU"}, Period(0, FOREVER))
    log.add(iter([("", 0, FOREVER)]))
    assert log.since(mark, {"DISK_GB"}, Period(5, 6))
    assert not log.since(log.mark, {"DISK_GB"}, Period(5, 6))
