"""The client's leases, on the application in this process."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.client import errors
from moorage.client.moorage import Moorage
from moorage.domain.period import parse_instant
from moorage.testing import in_process
from moorage.testing.service import HandClock

FLEET = (Path(__file__).parents[2] / "fleets/three-racks.yaml").read_text("utf-8")
START, END = "2026-11-23T08:00:00Z", "2026-11-27T18:00:00Z"


@pytest.fixture
def operator() -> Iterator[Moorage]:
    application = in_process.app(clock=HandClock(), fleet=FLEET)
    with application as made, in_process.client(made) as found:
        yield found


def week(name: str = "week", count: int = 2, **more: Any) -> dict[str, Any]:
    amount = {"flavor": "m1.2xlarge", "count": count}
    return {"name": name, "amount": amount, "start": START, "end": END} | more


def test_a_lease_goes_through_its_life(operator: Moorage) -> None:
    dry = operator.leases.create(week(), dry_run=True).value
    assert operator.leases.all().value.leases == []
    assert dry.decision
    made = operator.leases.create(week(lead="PT30M")).value
    assert made.decision
    assert made.decision.lease_id == made.lease.id
    assert made.decision.interval.end == END
    lease = operator.leases.show(made.lease.id).value
    assert lease == made.lease
    assert [(one.count, one.remaining) for one in lease.reservations] == [(2, 2)]
    longer = {"end": "2026-11-28T18:00:00Z", "generation": lease.generation}
    changed = operator.leases.change(lease.id, longer).value.lease
    assert changed.end == "2026-11-28T18:00:00Z"
    with pytest.raises(errors.Conflict):
        operator.leases.change(lease.id, longer)
    with pytest.raises(errors.Conflict) as stale:
        operator.leases.cancel(lease.id, lease.generation)
    assert stale.value.status == 412
    operator.leases.cancel(lease.id, changed.generation, dry_run=True)
    assert operator.leases.show(lease.id).value.status == "pending"
    operator.leases.cancel(lease.id, changed.generation)
    assert operator.leases.show(lease.id).value.status == "closed"


def test_a_refusal_carries_its_explanation(operator: Moorage) -> None:
    operator.leases.create(week(count=5))
    with pytest.raises(errors.Infeasible) as refused:
        operator.leases.create(week("second", count=5))
    assert refused.value.explanation["verdict"] == "infeasible"
    with pytest.raises(errors.NotFound):
        operator.leases.show(str(uuid.uuid4()))


def test_leases_are_listed_by_name_and_state_with_the_time(operator: Moorage) -> None:
    for name in ("a", "b", "a"):
        operator.leases.create(week(name, count=1))
    found = operator.leases.all()
    assert [one.name for one in found.value.leases] == ["a", "b", "a"]
    assert parse_instant(found.value.computed_at) == parse_instant("2026-11-21T09:00:00Z")
    assert [one["id"] for one in found.body["leases"]] == [one.id for one in found.value.leases]
    assert len(operator.leases.all(name="a").value.leases) == 2
    assert operator.leases.all(state="active", all_projects=True).value.leases == []


def test_listings_are_read_to_the_end(operator: Moorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage.client.lookup.PAGE", 2)
    for number in range(5):
        operator.leases.create(week(str(number), count=1))
    found = operator.leases.all().value.leases
    assert [one.name for one in found] == ["0", "1", "2", "3", "4"]
    events = operator.leases.events(found[0].id).value
    assert [one.kind for one in events] == ["prepare", "activate", "end", "close"]


def test_a_name_means_the_lease_that_is_not_over(operator: Moorage) -> None:
    first = operator.leases.create(week()).value.lease
    assert operator.leases.find("week") == operator.leases.find(first.id[:8]) == first.id
    operator.leases.cancel(first.id, first.generation)
    assert operator.leases.find("week") == first.id
    second = operator.leases.create(week()).value.lease
    assert operator.leases.find("week") == second.id
    operator.leases.create(week())
    with pytest.raises(errors.Ambiguous):
        operator.leases.find("week")
    with pytest.raises(errors.Missing):
        operator.leases.find("month")


def test_a_name_means_the_ensemble_that_is_in_use(operator: Moorage) -> None:
    first = operator.leases.create(week()).value
    operator.leases.cancel(first.lease.id, first.lease.generation)
    assert operator.ensembles.find("week") == first.lease.ensemble_id, "the only one"
    second = operator.leases.create(week()).value.lease
    assert operator.ensembles.find("week") == second.ensemble_id
    assert operator.ensembles.find(first.lease.ensemble_id[:8]) == first.lease.ensemble_id
    described = {"name": "week", "members": [{"name": "n", "count": 1, "flavor": "m1.small"}]}
    with pytest.raises(errors.NameTaken) as refused:
        operator.ensembles.create(described)
    assert refused.value.existing == second.ensemble_id


def test_a_lease_means_its_ensemble(operator: Moorage) -> None:
    first, second = (operator.leases.create(week()).value.lease for _ in range(2))
    assert operator.ensembles.find(first.handle) == first.ensemble_id
    assert operator.leases.find(first.handle) == first.id
    with pytest.raises(errors.Ambiguous) as raised:
        operator.ensembles.find("week")
    for one in (first, second):
        assert f"{one.ensemble_id} (lease {one.handle}, pending, from " in str(raised.value)
    change = {"name": first.handle, "generation": second.generation}
    renamed = operator.leases.change(second.id, change).value.lease
    assert operator.leases.find(first.handle) == first.id, "a handle wins"
    assert operator.ensembles.find(first.handle) == first.ensemble_id
    change = {"name": "other", "generation": renamed.generation}
    operator.leases.change(second.id, change)
    assert operator.ensembles.find("other") == second.ensemble_id


def test_an_ensemble_whose_places_were_given_back_leaves_its_name(operator: Moorage) -> None:
    described = {"name": "shop", "members": [{"name": "n", "count": 1, "flavor": "m1.small"}]}
    first = operator.ensembles.create({**described, "decide": {"hold": "PT10M"}}).value
    assert first.decision
    operator.decisions.release(first.decision.id, first.decision.generation)
    second = operator.ensembles.create({**described, "decide": {"hold": "PT10M"}}).value
    assert operator.ensembles.find("shop") == second.ensemble.id


def test_who_ends_early_is_told_as_far_as_one_may_know(operator: Moorage) -> None:
    members = [{"name": "n", "count": 6, "flavor": "m1.2xlarge"}]
    decide = {"hold": "PT1H", "preemptible": True}
    operator.ensembles.create({"name": "batch", "members": members, "decide": decide})
    lease = operator.leases.create(week()).value.lease
    shown = operator.leases.show(lease.id).value.displaced
    assert shown
    assert shown.count == 2
    assert shown.consumers
    assert [one.declared_end for one in shown.consumers] == [None, None]
    assert all(one.end is not None and one.end < START for one in shown.consumers)
