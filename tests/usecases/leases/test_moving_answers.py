"""What a refusal offers, where leases that have not started would move for it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.usecases.leases.conftest import World, build

from moorage.domain.describe import read_ensemble
from moorage.domain.errors import Infeasible, LimitExceeded
from moorage.domain.explain import Explanation
from moorage.domain.period import HOUR, format_instant
from moorage.testing.service import OPERATOR
from moorage.usecases.decide.solution import DecisionOptions
from moorage.usecases.ensembles.create import create_ensemble
from moorage.usecases.refusals.explanation import EMPTY, UNTRIED
from moorage.usecases.shared.limits import Limits

Make = Callable[..., World]


def on(*hosts: int, count: int = 1, vcpu: int = 4) -> dict[str, Any]:
    """So many members on some of the hosts."""
    fence = {"name": "f", "type": "fence", "members": ["m"]}
    named = {**fence, "domains": [f"h{number}" for number in hosts]}
    members = [{"name": "m", "count": count, "resources": {"VCPU": vcpu}}]
    return {"name": "e", "members": members, "policies": [named]}


def refused(ask: Callable[[], object]) -> Explanation:
    with pytest.raises(Infeasible) as told:
        ask()
    why = told.value.explanation
    assert isinstance(why, Explanation)
    return why


def offered(why: Explanation, field: str) -> object:
    """What a field could be instead, on this fleet and not only on an empty one."""
    here = (one.change for one in why.relaxations if one.result != EMPTY)
    return next((change.after for change in here if change.field == field), None)


def test_a_stay_ends_where_no_lease_can_move_any_more(world: Make) -> None:
    here = world(4, 4, 4, 4)
    here.ensemble(body=on(2, 3, count=2), caller=OPERATOR)
    here.lease(48, 72, vcpu=4, caller=OPERATOR)
    here.lease(96, 120, vcpu=4, members=2, caller=OPERATOR)
    why = refused(lambda: here.ensemble(body=on(0), caller=OPERATOR))
    assert offered(why, "until") == format_instant(here.at(96))
    here.ensemble(body=on(0), until=96, caller=OPERATOR)


def test_a_stay_ends_where_a_lease_begins_that_was_elsewhere(world: Make) -> None:
    here = world(4, 4)
    first = here.lease(48, 144, body=on(0, 1), caller=OPERATOR)
    here.lease(96, 120, body=on(0, 1), caller=OPERATOR)
    body = on([0, 1][here.hosts.index(here.host_of(first))])
    why = refused(lambda: here.ensemble(body=body, caller=OPERATOR))
    assert offered(why, "until") == format_instant(here.at(96))
    assert [one.kind for one in why.conflicts[0].elements] == ["booked", "stay"]
    here.ensemble(body=body, until=96, caller=OPERATOR)


def test_a_lease_ends_where_no_other_can_move_any_more(world: Make) -> None:
    here = world(4, 4)
    first = here.lease(48, 144, body=on(0, 1), caller=OPERATOR)
    here.lease(96, 120, body=on(0, 1), caller=OPERATOR)
    body = on([0, 1][here.hosts.index(here.host_of(first))])
    why = refused(lambda: here.lease(24, 200, body=body, caller=OPERATOR))
    assert offered(why, "end") == format_instant(here.at(96))


def test_the_largest_amount_is_what_is_granted(world: Make) -> None:
    here = world(4, 4, 4, 4)
    here.lease(48, 72, body=on(0, 3), caller=OPERATOR)
    here.ensemble(body=on(1), caller=OPERATOR)
    why = refused(lambda: here.lease(48, 72, body=on(0, 1, 2, count=3), caller=OPERATOR))
    assert why.largest is not None
    assert (offered(why, "count"), why.largest.count) == (2, 2)
    here.lease(48, 72, body=on(0, 1, 2, count=2), caller=OPERATOR)


def test_a_small_change_is_found_where_only_moving_makes_it_one(world: Make) -> None:
    here = world(4, 4, 4)
    here.lease(48, 72, body=on(0, 2), caller=OPERATOR)
    here.ensemble(body=on(1), caller=OPERATOR)
    why = refused(lambda: here.lease(48, 72, body=on(0, 1, count=2), caller=OPERATOR))
    assert offered(why, "count") == 1
    assert not why.note


def test_what_was_not_searched_for_want_of_time_is_said(world: Make) -> None:
    here = world(4, 4, 4, 4, limits=Limits(explanation_budget=1))
    here.lease(48, 72, body=on(0, 3), caller=OPERATOR)
    here.ensemble(body=on(1), caller=OPERATOR)
    why = refused(lambda: here.lease(48, 72, body=on(0, 1, 2, count=3), caller=OPERATOR))
    assert why.note == UNTRIED


AMPLE = Limits(explanation_budget=HOUR)
HOSTS = st.lists(st.integers(2, 4), min_size=2, max_size=3)


@settings(max_examples=25)
@given(data=st.data())
def test_what_is_offered_is_granted_and_no_more_is(data: st.DataObject) -> None:
    draw = data.draw
    sizes = draw(HOSTS)
    here = build(*sizes, limits=AMPLE)
    try:
        some = st.lists(st.sampled_from(range(len(sizes))), min_size=1, unique=True)
        for _ in range(draw(st.integers(1, 5))):
            start, length = draw(st.integers(1, 8)), draw(st.integers(1, 5))
            body = on(*draw(some), count=draw(st.integers(1, 2)), vcpu=draw(st.integers(1, 3)))
            span = start, start + length
            grants(here, partial(here.lease, *span, body=body, caller=OPERATOR))
        where, size = draw(some), draw(st.integers(1, 3))
        count = draw(st.integers(1, 3))
        body = on(*where, count=count, vcpu=size)
        if draw(st.booleans()):
            start, length = draw(st.integers(1, 6)), draw(st.integers(1, 6))
            end = start + length

            def lease(count: int, end: float) -> bool:
                body = on(*where, count=count, vcpu=size)
                return grants(
                    here, lambda: here.lease(start, end, body=body, dry_run=True, caller=OPERATOR)
                )

            if lease(count, end):
                return
            why = refused(lambda: here.lease(start, end, body=body, dry_run=True, caller=OPERATOR))
            most = max((n for n in range(1, count) if lease(n, end)), default=0)
            # Of what an empty fleet would refuse no largest amount is told, but a relaxation.
            told = why.largest.count if why.largest else offered(why, "count") or 0
            assert told == most
            if (at := offered(why, "end")) is not None:
                last = next(e for e in range(start, end) if format_instant(here.at(e)) == at)
                assert lease(count, last)
                assert not any(lease(count, e) for e in range(last + 1, end))
        else:

            def stay(end: int) -> bool:
                return grants(here, lambda: place(here, body, end))

            why_not = stays(here, body)
            if why_not is None:
                return
            at = offered(why_not, "until")
            ends = [e for e in range(1, 14) if stay(e)]
            if ends and max(ends) < 13:
                assert at == format_instant(here.at(max(ends)))
    finally:
        here.service.close()


def grants(here: World, ask: Callable[[], object]) -> bool:
    """Whether it is granted; why not is not asked."""
    service = here.service
    explaining = service.env
    service.env = replace(explaining, limits=replace(explaining.limits, explanation_budget=0))
    try:
        ask()
    except (Infeasible, LimitExceeded):
        return False
    finally:
        service.env = explaining
    return True


def place(here: World, body: dict[str, Any], until: int | None = None) -> None:
    """What would come of a stay."""
    ask = DecisionOptions(until=None if until is None else here.at(until))
    description = read_ensemble({**body, "name": "stay"})
    create_ensemble(here.service.env.in_dry_run(), OPERATOR, description, ask, here.naming())


def stays(here: World, body: dict[str, Any]) -> Explanation | None:
    """Why it cannot stay for good; None: it can."""
    if grants(here, lambda: place(here, body)):
        return None
    return refused(lambda: place(here, body))
