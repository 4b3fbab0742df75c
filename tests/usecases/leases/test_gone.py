"""Preemptible servers that end for a lease which moves for another."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.usecases.leases.conftest import World, build
from tests.usecases.leases.test_moving_answers import on, place

from moorage.domain.effects import EffectKind
from moorage.domain.errors import Infeasible
from moorage.domain.period import FOREVER, HOUR, MINUTE, format_instant
from moorage.testing.service import OPERATOR
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.requests import LeaseResult

Make = Callable[..., World]


def lease(here: World, start: float, end: float, *hosts: int, **more: int) -> LeaseResult:
    return here.lease(start, end, body=on(*hosts, **more), caller=OPERATOR)


def test_a_lease_that_moves_displaces_a_preemptible_server(world: Make) -> None:
    here = world(4, 4, 4, 4)
    here.ensemble(body=on(1, 3, count=2), caller=OPERATOR)
    server = here.server(4, 0, preemptible=True)
    first = lease(here, 72, 96, 0, 1, 2, 3)
    assert here.host_of(first) == here.hosts[2]
    made = lease(here, 72, 96, 2, 3)
    assert here.host_of(made) == here.hosts[2]
    assert [one.consumer for one in made.displaced] == [server]
    booking = here.booking(server)
    assert booking.period.end == here.at(72) - 5 * MINUTE
    assert (booking.yields_to, booking.declared_end) == (first.lease.id, FOREVER)
    cancel_lease(here.service.env, OPERATOR, first.lease.id)
    assert here.booking(server).period.end == FOREVER


def test_nobody_ends_where_leases_move_to_what_is_free(world: Make) -> None:
    here = world(4, 4, 4)
    server = here.server(4, 0, preemptible=True)
    first = lease(here, 72, 96, 1, 2)
    last = [1, 2][here.hosts[1:].index(here.host_of(first))]
    made = lease(here, 72, 96, last)
    assert made.displaced == ()
    assert here.booking(server).period.end == FOREVER


@pytest.mark.parametrize("on_host", [0, 1])
def test_a_lease_displaces_a_preemptible_server_where_its_host_is_to_be_away(
    world: Make, on_host: int
) -> None:
    here = world(4, 4, 4)
    low = here.server(4, on_host, preemptible=True)
    high = here.server(4, 1 - on_host, preemptible=True, priority=7)
    first = lease(here, 72, 96, 0, 1, 2)
    assert here.host_of(first) == here.hosts[2]
    between = {"start": format_instant(here.at(72)), "end": format_instant(here.at(96))}
    body = {"window": {"kind": "maintenance", "hosts": ["h2"], **between}}
    for query, ends in (({"dry_run": "true"}, FOREVER), ({}, here.at(72) - 5 * MINUTE)):
        answer = here.service.call("POST", "/capacity/planned", body, caller=OPERATOR, query=query)
        assert answer.status_code in {200, 201}, answer.json
        assert here.booking(low).period.end == ends
    assert here.booking(low).yields_to == first.lease.id
    assert here.booking(high).period.end == FOREVER
    kinds = [one.kind for one in here.service.store.effects(low)]
    assert kinds.count(EffectKind.WARN) == 1


def test_a_host_is_away_without_an_end_where_there_is_room(world: Make) -> None:
    here = world(4, 4, 4)
    server = here.server(4, 0, preemptible=True)
    first = lease(here, 72, 96, 1, 2)
    between = {"start": format_instant(here.at(72)), "end": format_instant(here.at(96))}
    name = f"h{here.hosts.index(here.host_of(first))}"
    body = {"window": {"kind": "maintenance", "hosts": [name], **between}}
    answer = here.service.call("POST", "/capacity/planned", body, caller=OPERATOR)
    assert answer.status_code == 201, answer.json
    assert here.booking(server).period.end == FOREVER


@pytest.mark.parametrize("on_host", [0, 1])
def test_the_lowest_priority_ends(world: Make, on_host: int) -> None:
    here = world(4, 4, 4)
    low = here.server(4, on_host, preemptible=True)
    high = here.server(4, 1 - on_host, preemptible=True, priority=7)
    first = lease(here, 72, 96, 0, 1, 2)
    assert here.host_of(first) == here.hosts[2]
    made = lease(here, 72, 96, 2)
    assert [one.consumer for one in made.displaced] == [low]
    assert here.booking(high).period.end == FOREVER


def test_nobody_ends_who_cannot_be_warned(world: Make) -> None:
    here = world(4, 4)
    here.server(4, 0, preemptible=True)
    lease(here, 0.1, 24, 0, 1)
    with pytest.raises(Infeasible):
        lease(here, 0.05, 24, 1)
    with pytest.raises(Infeasible):
        place(here, on(1))


@settings(max_examples=30)
@given(data=st.data())
def test_what_is_granted_does_not_depend_on_preemptible_servers(data: st.DataObject) -> None:
    draw = data.draw
    sizes = draw(st.lists(st.integers(2, 4), min_size=2, max_size=3))
    here, there = build(*sizes), build(*sizes)
    some = st.lists(st.sampled_from(range(len(sizes))), min_size=1, unique=True)
    try:
        servers = {}
        for host, size in enumerate(sizes):
            vcpu = draw(st.integers(0, size))
            if vcpu:
                servers[here.server(vcpu, host, preemptible=True)] = host
        for _ in range(draw(st.integers(1, 5))):
            start, length = draw(st.integers(1, 6)), draw(st.integers(1, 5))
            asked = (start, start + length, *draw(some))
            more = {"count": draw(st.integers(1, 2)), "vcpu": draw(st.integers(1, 3))}
            answers = [granted(one, *asked, **more) for one in (here, there)]
            assert answers[0] == answers[1]
            for server in servers:
                booking = here.booking(server)
                early = booking.yields_to is not None
                assert early == (booking.period.end < FOREVER)
                assert not early or booking.period.end >= here.at(start) - HOUR * 24
    finally:
        here.service.close()
        there.service.close()


def granted(here: World, start: int, end: int, *hosts: int, **more: int) -> bool:
    service = here.service
    env = service.env
    service.env = replace(env, limits=replace(env.limits, explanation_budget=0))
    try:
        lease(here, start, end, *hosts, **more)
    except Infeasible:
        return False
    finally:
        service.env = env
    return True
