"""What lies ahead of a lease follows from its terms and state, and is written anew with them."""

from dataclasses import dataclass, replace

import pytest

from moorage.domain.changes import DropEffects, PutEffect
from moorage.domain.effects import TIMERS, Effect
from moorage.domain.leases import Lease, LeaseState, Terms
from moorage.domain.period import HOUR, Period
from moorage.usecases.effects.lease_timers import timers_after_change

NINE = 1_800_000_000_000_000


@dataclass
class Counted:
    """Ids in the order in which they are asked for."""

    made: int = 0

    def uuid(self) -> str:
        self.made += 1
        return f"effect-{self.made}"

    def salt(self) -> str:
        return "salt"


LEASE = Lease(
    id="l",
    project_id="p",
    user_id="u",
    name="shop",
    ensemble_id="e",
    decision_id="d",
    terms=Terms(Period(NINE, NINE + 8 * HOUR), lead=HOUR, cleaning=2 * HOUR, expiry=3 * HOUR),
    state=LeaseState.PENDING,
    reservations=(),
    actions={
        "on_start": ("notify", "hook:wake:PT30M"),
        "before_end": ("notify:PT1H", "notify:PT24H"),
        "on_end": ("notify",),
    },
)


def written(lease: Lease) -> list[Effect]:
    dropped, *puts = timers_after_change(lease, Counted(), NINE - 9 * HOUR)
    assert dropped == DropEffects("l", TIMERS)
    effects = []
    for put in puts:
        assert isinstance(put, PutEffect)
        assert put.attempts is None
        effects.append(put.effect)
    return effects


def told(effects: list[Effect]) -> list[tuple[str, float]]:
    return [(one.kind.value, (one.due - NINE) / HOUR) for one in effects]


def test_a_new_lease_has_all_its_edges_ahead_in_order() -> None:
    effects = written(LEASE)
    assert told(effects) == [
        ("prepare", -1),
        ("act", -0.5),
        ("activate", 0),
        ("act", 0),  # a day before the end would be before the start
        ("release", 3),
        ("act", 7),
        ("end", 8),
        ("close", 10),
    ]
    assert [one.id for one in effects] == [f"effect-{n}" for n in range(1, 9)]
    assert all(one.not_before == one.due and one.subject == "l" for one in effects)
    assert effects[1].details == {"edge": "on_start", "action": "hook:wake:PT30M", "at": NINE}


@pytest.mark.parametrize(
    ("state", "kinds"),
    [
        (LeaseState.STARTING, ["act", "activate", "act", "release", "act", "end", "close"]),
        (LeaseState.ACTIVE, ["act", "act", "release", "act", "end", "close"]),
        (LeaseState.ENDING, ["act", "act", "act", "close"]),
        (LeaseState.CLOSED, []),
    ],
)
def test_what_has_happened_does_not_lie_ahead(state: LeaseState, kinds: list[str]) -> None:
    assert [one.kind.value for one in written(replace(LEASE, state=state))] == kinds


def test_equal_instants_keep_the_order_of_a_life() -> None:
    plain = replace(LEASE, terms=Terms(LEASE.terms.period), actions={})
    assert [one.kind.value for one in written(plain)] == ["prepare", "activate", "end", "close"]
