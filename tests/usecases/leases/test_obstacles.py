"""Refusals for lack of time say who is in the way."""

from collections.abc import Callable

import pytest
from tests.usecases.leases.conftest import World

from moorage.domain.errors import Infeasible
from moorage.domain.explain import Explanation, Stage
from moorage.testing.service import OPERATOR, TENANT
from moorage.usecases.ports import Caller

Make = Callable[..., World]


def refused(act: Callable[[], object]) -> Explanation:
    with pytest.raises(Infeasible) as no:
        act()
    assert isinstance(no.value.explanation, Explanation)
    return no.value.explanation


def booked(explanation: Explanation) -> list[str]:
    return [
        one.exact or one.name
        for conflict in explanation.conflicts
        for one in conflict.elements
        if one.kind == "booked"
    ]


STRANGER = Caller("eve", "project-b", frozenset({"member"}))


@pytest.mark.parametrize("caller", [TENANT, OPERATOR, STRANGER], ids=["own", "operator", "other"])
def test_a_lease_in_the_way_is_named(world: Make, caller: Caller) -> None:
    here = world(16)
    made = here.lease(1, 3, vcpu=16)
    told = refused(lambda: here.lease(2, 4, vcpu=1, caller=caller))
    assert (told.stage, told.verdict) == (Stage.TIME, "infeasible")
    names = {TENANT: "lease L1", OPERATOR: f"lease {made.lease.id}"}
    name = names.get(caller, "another project's lease")
    assert booked(told) == [f"{name} from 2026-11-21T10:00:00Z to 2026-11-21T12:00:00Z"]


def test_to_others_leases_of_one_time_are_told_once(world: Make) -> None:
    here = world(16)
    here.lease(1, 3, vcpu=8)
    here.lease(1, 3, vcpu=8)
    with pytest.raises(Infeasible) as no:
        here.lease(2, 4, vcpu=1, caller=STRANGER)
    name = "another project's lease from 2026-11-21T10:00:00Z to 2026-11-21T12:00:00Z (2+ of them)"
    assert no.value.message.startswith(f"no placement meets the request (time: {name}")
    assert isinstance(no.value.explanation, Explanation)
    assert booked(no.value.explanation) == [name]


def test_servers_without_an_end_are_counted(world: Make) -> None:
    here = world(16)
    here.server(10)
    here.server(2, until=2)
    here.server(2, until=1)
    told = refused(lambda: here.lease(1, 3, vcpu=16))
    assert told.stage is Stage.TIME
    assert booked(told) == ["servers without an end", "servers that end after it begins"]
    here.go_to(2)
    told = refused(lambda: here.lease(3, 4, vcpu=16))
    assert booked(told) == ["servers without an end", "servers past their end"]


def test_places_held_and_not_claimed_are_no_servers(world: Make) -> None:
    here = world(16)
    here.ensemble(10)
    here.server(2)
    told = refused(lambda: here.lease(1, 3, vcpu=16))
    held = "own places that are held and not claimed"
    assert booked(told) == ["servers without an end", held]
    assert [one[:2] for one in told.conflicts[0].facts] == [
        ("servers without an end", 1),
        (held, 1),
    ]
    with pytest.raises(Infeasible) as no:
        here.lease(1, 3, vcpu=16, caller=STRANGER)
    assert isinstance(no.value.explanation, Explanation)
    others = "places of others that are held and not claimed"
    assert booked(no.value.explanation) == ["servers without an end", others]


def test_servers_that_yield_anyway_are_told_apart(world: Make) -> None:
    here = world(16, 16)
    here.server(10)
    here.server(2, preemptible=True)
    here.server(2, preemptible=True)
    told = refused(lambda: here.lease(30, 33, vcpu=16, members=2))
    assert booked(told) == ["servers without an end"]
    facts = [one[:2] for one in told.conflicts[0].facts]
    assert facts == [("servers without an end", 1), ("preemptible servers", 2)]
    soon = world(4)
    soon.server(4, preemptible=True)
    told = refused(lambda: soon.lease(0.01, 1, vcpu=4))
    assert booked(told) == ["preemptible servers"], "who needs notice is in the way of a lease soon"


def test_what_no_fleet_of_ours_could_hold_is_no_matter_of_time(world: Make) -> None:
    here = world(16)
    here.lease(1, 3)
    assert refused(lambda: here.lease(1, 3, vcpu=17)).stage is Stage.STATIC


def test_a_request_for_now_meets_a_lease_that_begins_later(world: Make) -> None:
    here = world(16)
    here.lease(1, 3, vcpu=10)
    told = refused(lambda: here.ensemble(10))
    assert told.stage is Stage.TIME
    assert booked(told) == ["lease L1 from 2026-11-21T10:00:00Z"]


def test_without_leases_a_full_fleet_is_full(world: Make) -> None:
    here = world(16)
    here.server(10)
    assert refused(lambda: here.ensemble(10)).stage is Stage.CAPACITY


def test_an_extension_says_who_comes_next(world: Make) -> None:
    here = world(16)
    made = here.lease(1, 3, vcpu=16)
    here.lease(3, 4, vcpu=16)
    told = refused(lambda: here.change(made.lease.id, end=3.5))
    assert (told.stage, told.verdict) == (Stage.TIME, "infeasible")
    assert booked(told) == ["lease L2 from 2026-11-21T12:00:00Z to 2026-11-21T13:00:00Z"]
