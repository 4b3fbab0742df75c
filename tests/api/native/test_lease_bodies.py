"""What a body about a lease says: read alone, without a ledger."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from moorage.api.native import reading
from moorage.api.native.lease_requests import AMOUNT_ROLE, lease_change, lease_request
from moorage.domain.errors import InvalidDescription
from moorage.domain.leases import Yielding
from moorage.domain.period import DAY, HOUR, MINUTE, Period, parse_instant
from moorage.domain.requests import Objective
from moorage.usecases.leases.create import LeaseRequest
from moorage.usecases.shared.limits import Limits
from moorage.wire.leases import LeaseChange, LeaseCreate

NOW = parse_instant("2026-11-21T09:00:00Z")
START = parse_instant("2026-11-23T08:00:00Z")
AMOUNT = {"flavor": "m1.small", "count": 4}
WHEN = {"start": "2026-11-23T08:00:00Z", "end": "2026-11-27T18:00:00Z"}
OPERATORS: Any = SimpleNamespace(env=SimpleNamespace(limits=Limits(objective=Objective.ROOM)))
"""As much of a call as says what the operator has set."""


def read(**body: Any) -> LeaseRequest:
    body = (
        {"name": "week", "amount": AMOUNT}
        | ({} if {"end", "duration"} & set(body) else WHEN)
        | body
    )
    body = {key: value for key, value in body.items() if value is not None}
    lease = msgspec.convert({"lease": body}, LeaseCreate).lease
    return lease_request(lease, NOW, reading.objective(OPERATORS, lease.objective))


def refused(**body: Any) -> str | None:
    with pytest.raises(InvalidDescription) as error:
        read(**body)
    return error.value.path


def test_an_amount_of_a_flavor_is_an_ensemble_of_one_role() -> None:
    found = read()
    assert found.ensemble_id is None
    assert found.description is not None
    (role,) = found.description.roles
    assert (role.name, role.count, role.flavor) == (AMOUNT_ROLE, 4, "m1.small")
    assert found.description.name == "week"


def test_an_amount_may_have_policies_and_explicit_resources() -> None:
    apart = {"name": "apart", "type": "anti-affinity", "members": ["server"], "level": "rack"}
    amount = {"count": 2, "resources": {"VCPU": 3}, "required": ["HW_CPU_X86_AVX2"]}
    described = read(amount=amount | {"policies": [apart]}).description
    assert described is not None
    assert dict(described.roles[0].resources or {}) == {"VCPU": 3}
    assert [policy.name for policy in described.policies] == ["apart"]


def test_a_described_ensemble_is_called_as_it_says_or_as_its_lease() -> None:
    ensemble = {"members": [{"name": "web", "count": 2, "flavor": "m1.small"}]}
    unnamed = read(amount=None, ensemble=ensemble).description
    assert unnamed is not None
    assert unnamed.name == "week"
    named = read(amount=None, ensemble=ensemble | {"name": "shop"}).description
    assert named is not None
    assert named.name == "shop"


def test_terms_are_read() -> None:
    found = read(
        lead="PT30M",
        cleaning="1h",
        expiry="PT2H",
        priority=50,
        before_start=["preemptible"],
        on_start=["hook:warm"],
        before_end=["notify:PT24H"],
        on_end=["release"],
        objective="pack",
        seed=3,
        time_limit="PT2S",
    )
    terms = found.terms
    assert (terms.lead, terms.cleaning, terms.expiry) == (30 * MINUTE, HOUR, 2 * HOUR)
    assert terms.priority == 50
    assert terms.before_start == {Yielding.PREEMPTIBLE}
    assert {name: len(words) for name, words in found.actions.items()} == {
        "on_start": 1,
        "before_end": 1,
        "on_end": 1,
    }
    assert (found.objective, found.seed, found.time_limit) == (Objective.PACK, 3, 2_000_000)


@pytest.mark.parametrize("objective", Objective)
def test_the_objective_is_the_bodys_or_the_operators(objective: Objective) -> None:
    assert read(objective=objective.value).objective is objective
    assert read().objective is Objective.ROOM


def test_without_terms_anybody_who_yields_may_use_it_before() -> None:
    terms = read().terms
    assert (terms.lead, terms.cleaning, terms.expiry, terms.priority) == (0, 0, None, 0)
    assert terms.before_start == set(Yielding)
    assert read(before_start=[]).terms.before_start == frozenset()


def test_no_start_is_now_and_a_duration_counts_from_the_start() -> None:
    assert read(duration="4d10h").terms.period == Period(NOW, NOW + 4 * DAY + 10 * HOUR)
    later = read(start=WHEN["start"], duration="P1D").terms.period
    assert later == Period(START, START + DAY)
    assert read(start=WHEN["start"], end="2026-11-27T19:00:00+01:00") == read()


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"amount": None}, "lease"),
        ({"ensemble_id": "11111111-2222-4333-8444-555555555555"}, "lease"),
        ({"end": "2026-11-23T08:00:00Z", "start": "2026-11-23T08:00:00Z"}, "lease.end"),
        ({"end": "2026-11-22T08:00:00Z", "start": "2026-11-23T08:00:00Z"}, "lease.end"),
        ({"end": "2026-11-27T18:00:00Z", "duration": "P1D"}, "lease.end"),
        ({"start": "2026-11-23T08:00:00Z", "duration": "0d"}, "lease.duration"),
        ({"start": "2026-11-23T08:00:00Z", "duration": "soon"}, "lease.duration"),
        ({"start": "monday", "duration": "P1D"}, "lease.start"),
        ({"start": "2026-11-23T08:00:00", "duration": "P1D"}, "lease.start"),
        ({"end": "9999-01-01T00:00:00Z"}, "lease.end"),
        ({"lead": "-1h"}, "lease.lead"),
        ({"cleaning": "P1Y"}, "lease.cleaning"),
        ({"expiry": "P30D"}, "lease.expiry"),
        ({"expiry": "0s"}, "lease.expiry"),
        ({"time_limit": "0s"}, "time_limit"),
        ({"on_end": ["explode"]}, "lease.on_end"),
        ({"on_start": ["release"]}, "lease.on_start"),
        ({"amount": {"count": 2}}, "members[0].flavor"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value,
)
def test_what_cannot_be_meant_is_refused(body: dict[str, Any], path: str) -> None:
    assert refused(**body) == path


@pytest.mark.parametrize(
    "body",
    [
        {"amount": {"flavor": "m1.small", "count": 0}},
        {"amount": {"flavor": "m1.small", "count": 10_000_000}},
        {"priority": -1},
        {"before_start": ["open-ended"]},
        {"on_end": ["notify"] * 17},
        {"name": ""},
        {"id": "no-uuid"},
        {"ensemble": {"members": []}, "amount": None},
        {"ensemble": {"members": [{"name": f"r{n}"} for n in range(10_000)]}, "amount": None},
        {"unknown": 1},
    ],
    ids="-".join,
)
def test_bounds_are_the_structs(body: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        read(**body)


def change(**body: Any) -> Any:
    return lease_change(msgspec.convert({"lease": body}, LeaseChange).lease, NOW)


def test_a_change_says_only_what_changes() -> None:
    assert change().start is None
    assert change(start=None, duration="1d").start == NOW
    assert change(start=None, duration="1d").end == NOW + DAY
    moved = change(start="2026-11-23T08:00:00Z", end="2026-11-24T08:00:00Z", name="n")
    assert (moved.start, moved.end, moved.name) == (START, START + DAY, "n")
    assert change(counts={"web": 5}).counts == {"web": 5}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"end": "soon"}, "lease.end"),
        ({"start": "soon"}, "lease.start"),
        ({"duration": "1d"}, "lease.duration"),
        ({"start": None, "duration": "0d"}, "lease.duration"),
        ({"start": None, "end": "2026-11-27T18:00:00Z", "duration": "1d"}, "lease.duration"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else value,
)
def test_a_change_that_says_nothing_clear_is_refused(body: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidDescription) as error:
        change(**body)
    assert error.value.path == path
