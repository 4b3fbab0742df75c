"""A lease lives by its timers: each step once, in order, whatever the clock does."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.usecases.leases.conftest import World, described

from moorage.domain.bookings import Binding, BookingState
from moorage.domain.changes import Changeset, PutEffect, PutEnsemble, SwapHold
from moorage.domain.consumers import Consumer
from moorage.domain.decisions import DecisionState
from moorage.domain.describe import read_ensemble
from moorage.domain.effects import Effect, EffectKind, EffectState, Lane
from moorage.domain.errors import ConcurrentUpdate
from moorage.domain.leases import Lease, LeaseState, Terms
from moorage.domain.period import HOUR, Period
from moorage.testing.service import TENANT
from moorage.usecases.effect_dispatch import EffectResult, OutwardActions, carry_out
from moorage.usecases.ensembles.delete import delete_ensemble
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.change import change_lease
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.requests import LeaseChange, LeaseRequest

Worlds = Callable[..., World]


def lease(
    world: World,
    start: float,
    end: float,
    *,
    actions: Mapping[str, tuple[str, ...]] | None = None,
    members: int = 1,
    **terms: Any,
) -> Lease:
    asked = LeaseRequest(
        name="shop",
        terms=Terms(Period(world.at(start), world.at(end)), **terms),
        description=read_ensemble(described(members=members)),
        actions=actions or {},
    )
    return create_lease(world.service.env, TENANT, asked, world.naming()).lease


def work(world: World, *lanes: Lane) -> list[str]:
    """Carry out what is due, as the worker does; return the kinds in their order."""
    done: list[str] = []
    for lane in lanes or tuple(Lane):
        while due := world.service.store.due_effects(1, lane):
            done.append(due[0].kind.value)
            assert carry_out(world.service.env, OutwardActions(), due[0]) is EffectResult.DONE
    return done


def claim(world: World, one: Lease, server: str = "server") -> str:
    """A server takes the lease's only place, as a claim does in the end."""
    decision = world.service.store.decision(one.decision_id)
    ensemble = world.service.store.ensemble(one.ensemble_id)
    member = ensemble.members[0].uuid
    world.service.store.commit(
        Changeset((SwapHold(member, Consumer(server, TENANT.project_id, "ann", "INSTANCE")),))
    )
    fresh = replace(ensemble.members[0], server_id=server)
    world.service.store.commit(
        Changeset((PutEnsemble(replace(ensemble, members=(fresh,)), ensemble.generation),))
    )
    assert decision.lease_id == one.id
    return server


def now(world: World, one: Lease) -> Lease:
    return world.service.store.lease(one.id)


def test_a_lease_goes_through_its_states_at_its_edges(world: Worlds) -> None:
    here = world(4)
    one = lease(here, 2, 6, lead=HOUR, cleaning=HOUR)
    seen = []
    for hours in (0.9, 1, 2, 5.9, 6, 7):
        here.go_to(hours)
        seen.append((work(here), now(here, one).state.value))
    assert seen == [
        ([], "pending"),
        (["prepare"], "starting"),
        (["activate"], "active"),
        ([], "active"),
        (["end"], "ending"),
        (["close"], "closed"),
    ]
    assert here.service.store.due_effects(10) == []
    states = [effect.state for effect in here.service.store.effects(one.id)]
    assert states == [EffectState.DONE] * 4


def test_a_prepared_lease_is_bound(world: Worlds) -> None:
    here = world(4)
    one = lease(here, 2, 6)
    member = here.service.store.ensemble(one.ensemble_id).members[0].uuid
    assert here.booking(member).binding is Binding.PLANNED
    here.go_to(2)
    work(here)
    assert here.booking(member).binding is Binding.BOUND
    assert now(here, one).binding is Binding.BOUND


def test_a_jump_passes_through_all_states_in_order(world: Worlds) -> None:
    here = world(4)
    first = lease(here, 2, 6, actions={"on_start": ("notify",), "on_end": ("notify",)})
    second = lease(here, 3, 4)
    here.go_to(100)
    assert work(here, Lane.LIFE) == [
        *("prepare", "activate"),  # of the first
        *("prepare", "activate", "end", "close"),  # of the second
        *("end", "close"),
    ]
    told = here.service.store.due_effects(10, Lane.TELL)
    assert [one.details["edge"] for one in told] == ["on_start", "on_end"]
    assert {now(here, one).state for one in (first, second)} == {LeaseState.CLOSED}
    decision = here.service.store.decision(now(here, first).decision_id)
    assert decision.state is DecisionState.EXPIRED


def test_a_clock_that_steps_back_waits_for_the_edge(world: Worlds) -> None:
    here = world(4)
    one = lease(here, 2, 6)
    here.go_to(2)
    (due, *_) = here.service.store.due_effects(10)
    here.go_to(1)
    carry_out(here.service.env, OutwardActions(), due)
    assert now(here, one).state is LeaseState.PENDING
    assert here.service.store.due_effects(10) == []
    here.go_to(2)
    work(here)
    assert now(here, one).state is LeaseState.ACTIVE


def test_of_two_workers_one_takes_the_step(world: Worlds) -> None:
    here = world(4)
    one = lease(here, 2, 6)
    here.go_to(2)
    (due, *_) = here.service.store.due_effects(10)
    assert carry_out(here.service.env, OutwardActions(), due) is EffectResult.DONE
    generation = now(here, one).generation
    assert carry_out(here.service.env, OutwardActions(), due) is EffectResult.NOTHING
    assert now(here, one).generation == generation


def test_the_end_frees_what_nobody_claimed_and_ends_the_servers(world: Worlds) -> None:
    here = world(4)
    one = lease(here, 1, 3, cleaning=HOUR)
    here.go_to(1)
    work(here)
    server = claim(here, one)
    here.go_to(3)
    assert work(here, Lane.LIFE) == ["end"]
    (asked,) = here.service.store.due_effects(10, Lane.END)
    assert (asked.kind, asked.subject) == (EffectKind.DELETE, server)
    assert asked.details["lease"] == one.id
    (ended,) = [each for each in here.service.store.effects(one.id) if each.kind is EffectKind.END]
    assert ended.outcome == "ending (0 places freed, 1 server to be ended)"
    here.go_to(4)
    work(here, Lane.LIFE)
    closed = next(
        each for each in here.service.store.effects(one.id) if each.kind is EffectKind.CLOSE
    )
    assert closed.outcome == "closed (1 server is there still)"
    assert here.booking(server).state is BookingState.ALLOCATED


def test_an_extended_lease_ends_later(world: Worlds) -> None:
    here = world(4)
    one = lease(here, 1, 3)
    here.go_to(2)
    work(here)
    change_lease(here.service.env, TENANT, one.id, LeaseChange(end=here.at(5)), None, here.naming())
    here.go_to(3)
    assert work(here) == []
    here.go_to(5)
    assert work(here) == ["end", "close"]


def test_a_cancelled_lease_has_nothing_before_it(world: Worlds) -> None:
    here = world(4)
    one = lease(here, 1, 3, actions={"before_end": ("notify:30m",)})
    cancel_lease(here.service.env, TENANT, one.id)
    here.go_to(9)
    assert work(here) == []
    assert now(here, one).state is LeaseState.CLOSED


def test_a_lease_cancelled_while_active_is_ending_at_once(world: Worlds) -> None:
    here = world(4)
    one = lease(here, 1, 9, actions={"before_end": ("notify:30m",), "on_end": ("hook:save",)})
    here.go_to(2)
    work(here)
    cancel_lease(here.service.env, TENANT, one.id)
    assert now(here, one).state is LeaseState.ENDING
    told = [effect.details["edge"] for effect in here.service.store.due_effects(10, Lane.HOOK)]
    assert told == ["on_end"]
    assert work(here, Lane.LIFE) == ["act", "close"]
    assert now(here, one).state is LeaseState.CLOSED


def test_a_lease_cancelled_the_instant_it_begins_is_closed_unless_somebody_uses_it(
    world: Worlds,
) -> None:
    here = world(4)
    unused, used = (lease(here, 1, 9, cleaning=HOUR) for _ in range(2))
    here.go_to(1)
    work(here)
    claim(here, used)
    for one in (unused, used):
        assert now(here, one).state is LeaseState.ACTIVE
        cancel_lease(here.service.env, TENANT, one.id)
    closed = now(here, unused)
    start = unused.terms.period.start
    ended = replace(unused.terms, period=Period(start, start + 1))
    assert (closed.state, closed.terms) == (LeaseState.CLOSED, ended)
    assert here.service.store.decision(unused.decision_id).state is DecisionState.CLOSED
    delete_ensemble(here.service.env, TENANT, unused.ensemble_id, None)
    assert now(here, used).state is LeaseState.ENDING
    assert work(here, Lane.LIFE) == []


def test_an_action_before_the_end_is_said_once_however_often_the_lease_changes(
    world: Worlds,
) -> None:
    here = world(4)
    one = lease(here, 1, 9, actions={"before_end": ("notify:2h",)})
    here.go_to(7)
    for name in ("a", "b"):
        work(here, Lane.LIFE)
        change = LeaseChange(name=name)
        change_lease(here.service.env, TENANT, one.id, change, None, here.naming())
    work(here, Lane.LIFE)
    (told,) = here.service.store.due_effects(10, Lane.TELL)
    assert told.details["edge"] == "before_end"
    assert told.due == here.at(7)
    later = LeaseChange(end=here.at(12))
    change_lease(here.service.env, TENANT, one.id, later, None, here.naming())
    here.go_to(10)
    work(here, Lane.LIFE)
    assert len(here.service.store.due_effects(10, Lane.TELL)) == 2


def test_release_before_the_end_frees_what_nobody_claimed(world: Worlds) -> None:
    here = world(1)
    one = lease(here, 1, 9, actions={"before_end": ("release:3h",)})
    here.go_to(6)
    work(here, Lane.LIFE)
    assert now(here, one).state is LeaseState.ACTIVE
    member = here.service.store.ensemble(one.ensemble_id).members[0].uuid
    assert here.service.store.bookings(consumer=member) == []
    here.server(1, until=8)
    here.go_to(9)
    assert work(here, Lane.LIFE) == ["end", "close"]


def test_what_nobody_claimed_lapses_at_the_expiry(world: Worlds) -> None:
    here = world(1)
    one = lease(here, 1, 9, expiry=HOUR)
    here.go_to(2)
    assert work(here, Lane.LIFE) == ["prepare", "activate", "release"]
    assert here.service.store.decision(one.decision_id).state is DecisionState.EXPIRED
    here.server(1, until=8)


def test_servers_are_deleted_before_the_end_if_the_owner_says_so(world: Worlds) -> None:
    here = world(4)
    one = lease(here, 1, 9, actions={"before_end": ("delete:1h",)})
    here.go_to(1)
    work(here)
    server = claim(here, one)
    here.go_to(8)
    work(here, Lane.LIFE)
    (asked,) = here.service.store.due_effects(10, Lane.END)
    assert asked.subject == server


def test_a_step_that_is_overtaken_leaves_the_effect_due(
    world: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world(4)
    one = lease(here, 1, 9)
    here.go_to(1)
    (due, *_) = here.service.store.due_effects(10)
    store = here.service.store
    commit = store.commit

    def overtaken(changeset: Changeset) -> Any:
        monkeypatch.undo()
        rename = LeaseChange(name="other")
        change_lease(here.service.env, TENANT, one.id, rename, None, here.naming())
        return commit(changeset)

    monkeypatch.setattr(store, "commit", overtaken)
    assert carry_out(here.service.env, OutwardActions(), due) is EffectResult.NOTHING
    assert now(here, one).state is LeaseState.PENDING
    work(here)
    assert (now(here, one).state, now(here, one).name) == (LeaseState.ACTIVE, "other")


def test_an_effect_of_a_lease_that_is_gone_is_done(world: Worlds) -> None:
    here = world(1)
    stray = Effect("x", EffectKind.END, "nobody", "p", here.now, here.now)
    here.service.store.commit(Changeset((PutEffect(stray, None),)))
    assert work(here) == ["end"]
    assert here.service.store.effects("nobody")[0].outcome == "the lease is gone"
    with pytest.raises(ConcurrentUpdate):
        here.service.store.commit(Changeset((PutEffect(stray, 0),)))
