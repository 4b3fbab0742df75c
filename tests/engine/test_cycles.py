"""What a query looked at is free once it is answered: columns do not wait for the collector."""

import gc
from collections.abc import Iterator

import pytest

from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.candidates.query import CandidateQuery
from moorage.engine.state.fleet_view import SubsetView, TreeSubset
from moorage.engine.state.snapshot import ProviderState, Snapshot


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def fleet() -> Snapshot:
    return Snapshot.empty().with_states(
        ProviderState(
            ResourceProvider(
                *(uuid, uuid, None, uuid),
                inventories=(Inventory("VCPU", 4), Inventory("MEMORY_MB", 64)),
                traits=frozenset({"T"}),
                aggregates=frozenset({"zone"}),
            )
        )
        for uuid in ("a", "b", "c", "d")
    )


def there() -> list[object]:
    """What there is of a look at a fleet in this process."""
    return [one for one in gc.get_objects() if type(one) in {TreeSubset, SubsetView, Snapshot}]


@pytest.mark.parametrize("named", [frozenset[str](), frozenset({"a", "d"})], ids=["all", "two"])
def test_answered_queries_leave_nothing_behind(named: frozenset[str], uncollected: None) -> None:
    others = there()  # of other tests
    snapshot = fleet()
    for number in range(20):
        group = RequestGroup(
            "",
            {"VCPU": 1, "MEMORY_MB": number},
            (frozenset({"T"}),),
            member_of=(frozenset({"zone"}),),
            in_tree=next(iter(named), None),
        )
        assert list(candidates(snapshot, CandidateQuery((group,))))
    del snapshot
    assert [one for one in there() if not any(one is other for other in others)] == []
