"""What is done outside: taken on, tried again, given up and kept; servers that stay too long."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from tests.usecases.leases.conftest import World

from moorage.domain.changes import (
    Changeset,
    DeleteAllocations,
    EndBookings,
    PutEffect,
    PutInventories,
    PutTraits,
)
from moorage.domain.effects import Effect, EffectKind, EffectState, Lane
from moorage.domain.leases import LeaseState
from moorage.domain.period import HOUR, MINUTE, SECOND
from moorage.domain.providers import Inventory
from moorage.domain.retry_policy import RetryPolicy
from moorage.testing.service import TENANT
from moorage.usecases.effect_dispatch import (
    EffectResult,
    Message,
    OutwardActions,
    OutwardFailure,
    carry_out,
    postpone,
)
from moorage.usecases.leases import lease_sweeper
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.lease_sweeper import LeaseSweeper

Worlds = Callable[..., World]
THREE = RetryPolicy(SECOND, attempts=3)


@dataclass
class Heard:
    """Somebody outside; fails while it is told to."""

    failing: bool = False
    messages: list[Message] = field(default_factory=list)

    def __call__(self, message: Message) -> str:
        self.messages.append(message)
        if self.failing:
            raise OutwardFailure("no answer")
        return "heard"


def notice(world: World, name: str = "n") -> Effect:
    effect = Effect(name, EffectKind.NOTIFY, "l", "p", world.now, world.now, details={"x": 1})
    world.service.store.commit(Changeset((PutEffect(effect, None),)))
    return effect


def work(world: World, outside: OutwardActions) -> list[tuple[str, str]]:
    """One turn for everything that is due."""
    done: list[tuple[str, str]] = []
    for lane in Lane:
        due = world.service.store.due_effects(100, lane)
        done += [(e.kind.value, carry_out(world.service.env, outside, e).value) for e in due]
    return done


def of(world: World, subject: str, kind: EffectKind) -> list[Effect]:
    return [one for one in world.service.store.effects(subject) if one.kind is kind]


# --- telling ----------------------------------------------------------------------------------


def test_what_is_told_carries_its_id_and_is_told_once(world: Worlds) -> None:
    here, heard = world(1), Heard()
    notice(here)
    assert work(here, OutwardActions(tell=heard)) == [("notify", "done")]
    assert work(here, OutwardActions(tell=heard)) == []
    (message,) = heard.messages
    assert (message.id, message.body["id"], message.body["attempt"]) == ("n", "n", 1)
    assert message.body["details"] == {"x": 1}
    assert here.service.store.effects("l")[0].outcome == "heard"


def test_nobody_is_told_where_nobody_is_named(world: Worlds) -> None:
    here = world(1)
    notice(here)
    assert work(here, OutwardActions()) == [("notify", "done")]
    assert "no webhook is set" in here.service.store.effects("l")[0].outcome


def test_a_failure_is_tried_again_ever_later_then_given_up_and_kept(world: Worlds) -> None:
    here, heard = world(1), Heard(failing=True)
    retry = RetryPolicy(8 * SECOND, 20 * SECOND, jitter=0.5, attempts=5)
    outside = OutwardActions(tell=heard, retry=retry)
    notice(here)
    waits = []
    while (effect := here.service.store.effects("l")[0]).state is EffectState.PENDING:
        waits.append(effect.not_before - here.now)
        here.service.clock.set(effect.not_before)
        work(here, outside)
    assert len(heard.messages) == 5
    assert {message.id for message in heard.messages} == {"n"}
    assert [message.body["attempt"] for message in heard.messages] == [1, 2, 3, 4, 5]
    assert (effect.state, effect.outcome) == (EffectState.FAILED, "no answer")
    assert waits[0] == 0
    for wait, doubled in zip(waits[1:], (8, 16, 20, 20), strict=True):
        assert doubled * SECOND // 2 <= wait <= doubled * SECOND
    here.go_to(9)
    assert work(here, outside) == []


def test_who_dies_between_taking_and_recording_leaves_it_to_others(world: Worlds) -> None:
    here, heard = world(1), Heard()
    outside = OutwardActions(tell=heard, timeout=30 * SECOND)
    notice(here)

    def killed(message: Message) -> str:
        raise KeyboardInterrupt

    (due,) = here.service.store.due_effects(1)
    with pytest.raises(KeyboardInterrupt):
        carry_out(here.service.env, OutwardActions(tell=killed, timeout=30 * SECOND), due)
    assert work(here, outside) == []
    here.service.clock.pass_by(30 * SECOND)
    assert work(here, outside) == [("notify", "done")]
    assert [one.body["attempt"] for one in heard.messages] == [2]


def test_an_adapter_that_breaks_is_tried_again(world: Worlds) -> None:
    here = world(1)
    notice(here)

    def breaks(message: Message) -> str:
        raise ZeroDivisionError("oops")

    assert work(here, OutwardActions(tell=breaks)) == [("notify", "again")]
    assert here.service.store.effects("l")[0].outcome == "ZeroDivisionError: oops"


def test_who_comes_back_late_records_nothing(world: Worlds) -> None:
    here, heard = world(1), Heard()
    outside = OutwardActions(tell=heard)
    notice(here)

    def slow(message: Message) -> str:
        here.service.clock.pass_by(HOUR)
        assert work(here, outside) == [("notify", "done")]
        return "much later"

    (due,) = here.service.store.due_effects(1)
    assert carry_out(here.service.env, OutwardActions(tell=slow), due) is EffectResult.NOTHING
    assert here.service.store.effects("l")[0].outcome == "heard"


def test_who_always_dies_is_given_up_at_last(world: Worlds) -> None:
    here = world(1)
    notice(here)

    def killed(message: Message) -> str:
        raise KeyboardInterrupt

    for _ in range(3):
        (due,) = here.service.store.due_effects(1)
        with pytest.raises(KeyboardInterrupt):
            carry_out(here.service.env, OutwardActions(tell=killed, retry=THREE), due)
        here.service.clock.pass_by(HOUR)
    assert work(here, OutwardActions(tell=Heard(), retry=THREE)) == [("notify", "failed")]


def test_what_fails_inside_is_put_off_and_never_given_up(world: Worlds) -> None:
    here = world(1)
    notice(here)
    outside = OutwardActions(retry=RetryPolicy(SECOND, 4 * SECOND))
    for _ in range(20):
        (due,) = here.service.store.due_effects(1)
        postpone(here.service.env, outside, due, "broken")
        assert here.service.store.due_effects(1) == []
        here.service.clock.pass_by(4 * SECOND)
    (due,) = here.service.store.due_effects(1)
    assert (due.attempts, due.outcome) == (20, "broken")


def test_waits_of_many_are_spread() -> None:
    outside = OutwardActions()
    found = {
        outside.wait(Effect(f"e{n}", EffectKind.NOTIFY, "l", "p", 0, 0, attempts=4))
        for n in range(50)
    }
    assert len(found) > 25
    assert all(20 * SECOND <= one <= 40 * SECOND for one in found)


# --- servers that stay ------------------------------------------------------------------------


def test_who_is_overrun_is_told_of_once_and_ended(world: Worlds) -> None:
    here, told, ender = world(4), Heard(), Heard()
    server = here.server(1, until=2)
    outside = OutwardActions(tell=told, end=ender)
    lookout = LeaseSweeper(here.service.env)
    lookout.run_round()
    here.go_to(1.9)
    lookout.run_round()
    assert work(here, outside) == []
    here.go_to(2)
    for _ in range(3):
        lookout.run_round()
        LeaseSweeper(here.service.env).run_round()
    assert sorted(work(here, outside)) == [("delete", "again"), ("overrun", "done")]
    assert [one.subject for one in told.messages] == [server]
    here.service.store.commit(Changeset((DeleteAllocations(server),)))
    here.go_to(3)
    assert work(here, outside) == [("delete", "done")]
    assert len(ender.messages) == 1
    assert of(here, server, EffectKind.DELETE)[0].outcome == "the server is gone"


def test_who_says_that_a_server_is_gone_is_not_believed(world: Worlds) -> None:
    here, liar = world(4), Heard()
    server = here.server(1, until=2)
    outside = OutwardActions(end=liar, retry=THREE)
    here.go_to(2)
    LeaseSweeper(here.service.env).run_round()
    outcomes = []
    for _ in range(6):
        outcomes += [how for kind, how in work(here, outside) if kind == "delete"]
        here.service.clock.pass_by(HOUR)
    # Whoever ends servers may be away for longer than a call is worth trying.
    assert outcomes == ["again"] * 6
    (effect,) = of(here, server, EffectKind.DELETE)
    assert (effect.state, len(liar.messages)) == (EffectState.PENDING, 6)
    assert effect.outcome == "heard; the server is there still"
    here.service.store.commit(Changeset((DeleteAllocations(server),)))
    assert work(here, outside) == [("delete", "done")]
    assert len(liar.messages) == 6


def test_who_has_got_more_time_is_not_ended(world: Worlds) -> None:
    here, ender = world(4), Heard()
    server = here.server(1, until=2)
    here.go_to(2)
    LeaseSweeper(here.service.env).run_round()
    here.service.store.commit(Changeset((EndBookings(frozenset({server}), here.at(5)),)))
    assert ("delete", "done") in work(here, OutwardActions(end=ender))
    assert ender.messages == []
    here.go_to(5)
    LeaseSweeper(here.service.env).run_round()
    assert len(of(here, server, EffectKind.OVERRUN)) == 2


def test_preemptible_servers_are_warned_and_evicted_in_their_order(world: Worlds) -> None:
    here, told, ender = world(4), Heard(), Heard()
    servers = [here.server(2, preemptible=True)]
    here.service.clock.pass_by(SECOND)
    servers.append(here.server(2, preemptible=True))
    outside = OutwardActions(tell=told, end=ender)
    made = here.lease(2, 4, vcpu=4)
    assert work(here, outside) == [("warn", "done"), ("warn", "done")]
    assert [one.subject for one in told.messages] == servers[::-1]
    details = told.messages[0].body["details"]
    assert isinstance(details, dict)
    assert (details["order"], details["of"], details["lease"]) == (1, 2, made.lease.id)
    assert "youngest" in details["why"]
    here.service.clock.set(here.at(2) - 5 * MINUTE)
    assert work(here, outside) == [("evict", "done")] * 2 + [("delete", "again")] * 2
    assert [one.subject for one in ender.messages] == servers[::-1]
    LeaseSweeper(here.service.env).run_round()
    assert not of(here, servers[0], EffectKind.OVERRUN)
    here.go_to(2)
    LeaseSweeper(here.service.env).run_round()
    assert of(here, servers[0], EffectKind.OVERRUN)


def test_who_need_not_yield_any_more_is_left_alone(world: Worlds) -> None:
    here, ender = world(4), Heard()
    server = here.server(3, preemptible=True)
    made = here.lease(2, 4, vcpu=4)
    cancel_lease(here.service.env, TENANT, made.lease.id)
    here.go_to(3)
    LeaseSweeper(here.service.env).run_round()
    work(here, OutwardActions(end=ender))
    assert ender.messages == []
    assert not of(here, server, EffectKind.EVICT)


# --- leases that lose places ------------------------------------------------------------------


def test_a_lease_is_degraded_by_who_is_overrun_and_mended_when_that_goes(world: Worlds) -> None:
    here = world(4)
    server = here.server(3, until=2)
    made = here.lease(3, 5, vcpu=2, members=2)
    lookout = LeaseSweeper(here.service.env)
    lookout.run_round()
    lease = here.service.store.lease(made.lease.id)
    assert (lease.degraded, lease.missing) == (False, 0)
    here.go_to(2)
    lookout.run_round()
    lease = here.service.store.lease(made.lease.id)
    assert (lease.degraded, lease.missing) == (True, 2)
    told, generation = Heard(), lease.generation
    work(here, OutwardActions(tell=told))
    assert any(one.subject == lease.id and one.body["kind"] == "notify" for one in told.messages)
    lookout.run_round()
    assert here.service.store.lease(made.lease.id).generation == generation
    here.service.store.commit(Changeset((DeleteAllocations(server),)))
    lookout.run_round()
    lease = here.service.store.lease(made.lease.id)
    assert (lease.degraded, lease.missing) == (False, 0)


def test_a_lease_is_degraded_where_capacity_is_lost(world: Worlds) -> None:
    here = world(4)
    made = here.lease(3, 5, vcpu=2, members=2)
    lookout = LeaseSweeper(here.service.env)
    lookout.run_round()
    for vcpu, missing in ((3, 1), (1, 2), (4, 0)):
        put = PutInventories(here.hosts[0], (Inventory("VCPU", vcpu),), None)
        here.service.store.commit(Changeset((put,)))
        lookout.run_round()
        assert here.service.store.lease(made.lease.id).missing == missing


def test_a_lease_is_degraded_while_its_host_is_disabled(world: Worlds) -> None:
    here = world(4)
    made = here.lease(3, 5, vcpu=2, members=2)
    for traits, missing in (({"COMPUTE_STATUS_DISABLED"}, 2), (set(), 0)):
        put = PutTraits(here.hosts[0], frozenset(traits), None)
        here.service.store.commit(Changeset((put,)))
        LeaseSweeper(here.service.env).run_round()
        assert here.service.store.lease(made.lease.id).missing == missing


def test_who_was_promised_first_keeps_what_is_left(world: Worlds) -> None:
    here = world(4)
    first, second = here.lease(3, 5, vcpu=2), here.lease(4, 6, vcpu=2)
    put = PutInventories(here.hosts[0], (Inventory("VCPU", 2),), None)
    here.service.store.commit(Changeset((put,)))
    LeaseSweeper(here.service.env).run_round()
    store = here.service.store
    assert [store.lease(one.lease.id).missing for one in (first, second)] == [0, 1]
    assert store.lease(second.lease.id).state is LeaseState.PENDING


def test_every_round_is_paged(world: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_sweeper, "PAGE", 2)
    here = world(10)
    servers = [here.server(1, until=2) for _ in range(5)]
    here.go_to(2)
    lookout = LeaseSweeper(here.service.env)
    turns = [lookout.run_round() for _ in range(3)]
    assert turns == [True, True, False]
    assert all(len(of(here, one, EffectKind.OVERRUN)) == 1 for one in servers)
