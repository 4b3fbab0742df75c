"""What owners hear of an end for a lease: that it comes, is off, or was carried out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.usecases.leases.conftest import World, named
from tests.usecases.leases.test_outside import Heard, of, work

from moorage.domain.effects import EffectKind
from moorage.domain.events import BEGINNING, EVERYTHING, Event
from moorage.domain.member_names import MemberName
from moorage.domain.period import FOREVER, MINUTE, format_instant
from moorage.testing.service import TENANT
from moorage.usecases.claims.claim import SecondDescription, claim
from moorage.usecases.claims.outcome import activate
from moorage.usecases.effect_dispatch import Message, OutwardActions, SimulatedServers
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.lease_sweeper import LeaseSweeper, is_overrun
from moorage.usecases.shared.limits import Limits

Make = Callable[..., World]
NOTICE = 5 * MINUTE


def events(here: World, pattern: str = "member.") -> list[Event]:
    found = here.service.store.event_log.page(None, BEGINNING, EVERYTHING, 1000)
    return [one for one in found.events if one.type.startswith(pattern)]


def batch(here: World) -> tuple[str, dict[str, object]]:
    """A server of a preemptible ensemble, and what events say of whose it is."""
    made = here.ensemble(2, preemptible=True)
    assert made.decision is not None
    return booted(here, made.decision.id), {"ensemble": made.ensemble.id, "member": "web[0]"}


def said(event: Event, *names: str) -> dict[str, Any]:
    return {name: event.body[name] for name in names}


def test_who_was_warned_is_told_that_it_may_stay(world: Make) -> None:
    here, heard = world(16), Heard()
    server, names = batch(here)
    lease = here.lease(4, 6, vcpu=16)
    end = format_instant(here.at(4) - NOTICE)
    (warned,) = events(here, "member.warned")
    assert said(warned, "server", "ends", "ensemble", "member") == {
        "server": server,
        "ends": end,
        **names,
    }
    cancel_lease(here.service.env, TENANT, lease.lease.id)
    (reprieved,) = events(here, "member.reprieved")
    assert reprieved.subject == server
    assert reprieved.body == {"server": server, "ends": None, "declared_end": "forever", **names}
    assert lease.lease.id not in str([one.body for one in events(here)])
    work(here, OutwardActions(tell=heard))
    told = [one.body for one in heard.messages if one.body["kind"] == "reprieve"]
    assert [(one["subject"], one["details"]) for one in told] == [(server, reprieved.body)]


def test_who_yields_to_a_later_lease_instead_is_told_when(world: Make) -> None:
    here = world(16)
    server, _ = batch(here)
    first, second = here.lease(4, 6, vcpu=16), here.lease(8, 9, vcpu=16)
    cancel_lease(here.service.env, TENANT, first.lease.id)
    (reprieved,) = events(here, "member.reprieved")
    assert reprieved.body["ends"] == format_instant(here.at(8) - NOTICE)
    cancel_lease(here.service.env, TENANT, second.lease.id)
    assert [one.body["ends"] for one in events(here, "member.reprieved")][1:] == [None]
    assert here.booking(server).period.end == FOREVER


def test_it_may_happen_again_at_the_same_time(world: Make) -> None:
    here = world(16)
    batch(here)
    for _ in range(2):
        lease = here.lease(4, 6, vcpu=16)
        cancel_lease(here.service.env, TENANT, lease.lease.id)
    assert len(events(here, "member.reprieved")) == 2


def test_one_is_evicted_when_whoever_ends_servers_has_ended_it(world: Make) -> None:
    here = world(16)
    server, names = batch(here)
    here.lease(4, 6, vcpu=16)
    here.service.clock.set(here.at(4) - NOTICE)
    work(here, OutwardActions(end=Heard()))
    assert not events(here, "member.evicted"), "it is there still"
    here.service.clock.pass_by(MINUTE)
    work(here, OutwardActions(end=SimulatedServers(here.service.store)))
    (evicted,) = events(here, "member.evicted")
    end = format_instant(here.at(4) - NOTICE)
    assert said(evicted, "because", "server", "ends", "order", "of", "ensemble", "member") == {
        "because": "preempted",
        "server": server,
        "ends": end,
        "order": 1,
        "of": 1,
        **names,
    }
    assert not here.service.store.bookings(consumer=server)
    LeaseSweeper(here.service.env).run_round()
    assert not events(here, "member.overrun")


def test_where_nobody_ends_servers_it_is_overrun_and_not_evicted(world: Make) -> None:
    here = world(16)
    server, names = batch(here)
    here.lease(4, 6, vcpu=16)
    for at in (here.at(4) - NOTICE, here.at(4)):
        here.service.clock.set(at)
        LeaseSweeper(here.service.env).run_round()
        work(here, OutwardActions())
    assert not events(here, "member.evicted")
    (overrun,) = events(here, "member.overrun")
    ended = format_instant(here.at(4) - NOTICE)
    assert overrun.body == {"server": server, "ended": ended, **names}


def test_whoever_looks_first_tells_the_same_of_it(world: Make) -> None:
    here = world(16)
    _, names = batch(here)
    here.lease(4, 6, vcpu=16)
    here.service.clock.set(here.at(4) - NOTICE)
    LeaseSweeper(here.service.env).run_round()
    work(here, OutwardActions(end=SimulatedServers(here.service.store)))
    (evicted,) = events(here, "member.evicted")
    assert said(evicted, "ensemble", "member", "order") == {**names, "order": 1}


def test_one_that_goes_by_itself_is_not_called_evicted(world: Make) -> None:
    here = world(16)
    server, _ = batch(here)
    here.lease(4, 6, vcpu=16)
    here.service.clock.set(here.at(4) - NOTICE)
    LeaseSweeper(here.service.env).run_round()
    SimulatedServers(here.service.store)(Message("id", server, {}))
    work(here, OutwardActions(end=Heard()))
    assert not events(here, "member.evicted")
    assert of(here, server, EffectKind.DELETE)[0].outcome == "the server is gone"


def test_a_bounded_server_is_ended_at_its_end(world: Make) -> None:
    here = world(16)
    server = here.server(4, until=3)
    here.lease(4, 6, vcpu=16)
    here.go_to(3)
    LeaseSweeper(here.service.env).run_round()
    work(here, OutwardActions(end=SimulatedServers(here.service.store)))
    assert not here.service.store.bookings(consumer=server)
    assert (
        SimulatedServers(here.service.store)(Message("id", server, {})) == "there is no such server"
    )


def test_what_is_ended_in_time_degrades_no_lease_and_is_not_overrun(world: Make) -> None:
    here = world(4, limits=Limits(grace=NOTICE))
    server = here.server(4, until=3)
    lease = here.lease(4, 6, vcpu=4).lease.id
    lookout = LeaseSweeper(here.service.env)
    here.go_to(3)
    lookout.run_round()
    assert not here.service.store.lease(lease).degraded
    assert not of(here, server, EffectKind.OVERRUN)
    here.service.clock.pass_by(MINUTE)
    work(here, OutwardActions(end=SimulatedServers(here.service.store)))
    here.service.clock.pass_by(NOTICE)
    for _ in range(2):
        lookout.run_round()
    assert not events(here, "lease.degraded")
    assert not events(here, "member.overrun")


def test_what_is_not_ended_in_time_is_overrun_and_degrades_the_lease(world: Make) -> None:
    here = world(4, limits=Limits(grace=NOTICE))
    server = here.server(4, until=3)
    lease = here.lease(4, 6, vcpu=4).lease.id
    lookout = LeaseSweeper(here.service.env)
    here.go_to(3)
    lookout.run_round()
    work(here, OutwardActions(end=Heard()))
    here.service.clock.pass_by(NOTICE)
    lookout.run_round()
    assert here.service.store.lease(lease).degraded
    assert [one.subject for one in events(here, "member.overrun")] == [server]
    assert len(of(here, server, EffectKind.DELETE)) == 1, "it is asked for already"


def test_whoever_was_ended_is_told_and_why(world: Make) -> None:
    here = world(16)
    made = here.ensemble(2, until=3)
    assert made.decision is not None
    own = booted(here, made.decision.id)
    granted = here.lease(4, 6, vcpu=2)
    here.begin(granted.lease.id)
    here.go_to(4)
    leased = booted(here, granted.decision.id)
    LeaseSweeper(here.service.env).run_round()
    work(here, OutwardActions(end=SimulatedServers(here.service.store)))
    here.go_to(6)
    for _ in range(2):
        work(here, OutwardActions(end=SimulatedServers(here.service.store)))
        LeaseSweeper(here.service.env).run_round()
    names = ("because", "server", "ends", "ensemble", "member")
    assert [said(one, *names) for one in events(here, "member.evicted")] == [
        dict(zip(names, ("declared", own, hour(here, 3), made.ensemble.id, "web[0]"), strict=True)),
        dict(
            zip(
                names,
                ("lease", leased, hour(here, 6), granted.lease.ensemble_id, "web[0]"),
                strict=True,
            )
        ),
    ]


def booted(here: World, decision_id: str) -> str:
    """A server in the first place of a decision."""
    naming = here.naming()
    second = SecondDescription(MemberName("web", 0), {"resources": {"VCPU": 2}})
    claim(here.service.env, TENANT, decision_id, second, naming)
    server = named(next(here.numbers))
    activate(here.service.env, TENANT, naming.id, server)
    return server


def hour(here: World, hours: float) -> str:
    return format_instant(here.at(hours))


def test_one_is_overrun_once_it_has_had_its_time_to_go(world: Make) -> None:
    here = world(4)
    booking, limits = here.booking(here.server(4, until=3)), Limits(grace=NOTICE)
    yielding = replace(booking, yields_to="l")
    for since, nobody_ends, somebody_ends in ((-1, False, False), (0, True, False)):
        now = here.at(3) + since
        assert is_overrun(booking, now, Limits()) is nobody_ends
        assert is_overrun(booking, now, limits) is somebody_ends
        assert not is_overrun(yielding, now, Limits())
    assert is_overrun(booking, here.at(3) + NOTICE, limits)
    assert is_overrun(yielding, here.at(3) + NOTICE, Limits())


def test_a_member_is_warned_once_and_names_no_server_that_is_not_there(world: Make) -> None:
    here, heard = world(16), Heard()
    here.lease(4, 6, vcpu=16)
    server, names = batch(here)
    (warned,) = events(here, "member.warned")
    end = format_instant(here.at(4) - NOTICE)
    assert said(warned, "server", "ends", *names) == {"server": None, "ends": end, **names}
    assert warned.subject == names["ensemble"]
    work(here, OutwardActions(tell=heard))
    assert [one.body["kind"] for one in heard.messages] == ["warn"], "though its server is there"
    here.service.clock.set(here.at(4) - NOTICE)
    for _ in range(2):
        work(here, OutwardActions(end=SimulatedServers(here.service.store)))
    (evicted,) = events(here, "member.evicted")
    assert said(evicted, "server", *names) == {"server": server, **names}
