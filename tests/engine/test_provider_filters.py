"""Masks over the fleet: what they let through, and how rejections are counted."""

import numpy as np

from moorage.domain.bookings import Booking
from moorage.domain.period import Period
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.requests import RequestGroup
from moorage.engine.state import provider_filters
from moorage.engine.state.snapshot import ProviderState, Snapshot


def three_hosts() -> Snapshot:
    def host(name: str, *traits: str, used: int = 0, parent: str | None = None) -> ProviderState:
        provider = ResourceProvider(
            name,
            name,
            parent,
            parent or name,
            inventories=(Inventory("VCPU", 8, min_unit=2, max_unit=6, step_size=2),),
            traits=frozenset(traits),
            aggregates=frozenset({"agg"} if name == "h1" else ()),
        )
        bookings = (Booking("c", name, {"VCPU": used}, Period(0)),) if used else ()
        return ProviderState(provider, bookings)

    return Snapshot.empty().with_states(
        [host("h1", "SSD"), host("h2", used=6), host("child", "SSD", "GPU", parent="h1")]
    )


def passing(snapshot: Snapshot, group: RequestGroup) -> set[str]:
    mask, _ = provider_filters.apply_and_count(
        snapshot.alive, provider_filters.suffixed_group(snapshot, group)
    )
    return {snapshot.uuids[row] for row in np.flatnonzero(mask)}


def test_each_rule_alone() -> None:
    snapshot = three_hosts()
    assert passing(snapshot, RequestGroup()) == {"h1", "h2", "child"}
    ssd, gpu = frozenset({"SSD"}), frozenset({"GPU"})
    assert passing(snapshot, RequestGroup(required=(ssd,))) == {"h1", "child"}
    assert passing(snapshot, RequestGroup(required=(ssd, gpu))) == {"child"}
    assert passing(snapshot, RequestGroup(required=(ssd | gpu,))) == {"h1", "child"}
    assert passing(snapshot, RequestGroup(forbidden=gpu)) == {"h1", "h2"}
    assert passing(snapshot, RequestGroup(member_of=(frozenset({"agg", "none"}),))) == {"h1"}
    assert passing(snapshot, RequestGroup(not_member_of=frozenset({"agg"}))) == {"h2", "child"}
    assert passing(snapshot, RequestGroup(in_tree="child")) == {"h1", "child"}
    assert passing(snapshot, RequestGroup(in_tree="nobody")) == set()
    assert passing(snapshot, RequestGroup(resources={"VCPU": 4})) == {"h1", "child"}
    assert passing(snapshot, RequestGroup(resources={"VCPU": 2})) == {"h1", "h2", "child"}
    assert passing(snapshot, RequestGroup(resources={"VCPU": 3})) == set(), "step_size 2"
    assert passing(snapshot, RequestGroup(resources={"VCPU": 8})) == set(), "max_unit 6"
    assert passing(snapshot, RequestGroup(resources={"DISK_GB": 1})) == set()


def test_membership_of_the_root_counts_for_its_tree_where_asked() -> None:
    snapshot = three_hosts()
    wanted = RequestGroup(member_of=(frozenset({"agg"}),))
    mask, _ = provider_filters.apply_and_count(
        snapshot.alive, provider_filters.aggregate_rules_with_root(snapshot, wanted)
    )
    assert {snapshot.uuids[row] for row in np.flatnonzero(mask)} == {"h1", "child"}
    unwanted = RequestGroup(not_member_of=frozenset({"agg"}))
    mask, _ = provider_filters.apply_and_count(
        snapshot.alive, provider_filters.aggregate_rules_with_root(snapshot, unwanted)
    )
    assert {snapshot.uuids[row] for row in np.flatnonzero(mask)} == {"h2"}


def test_rejections_are_counted_per_reason_and_once_per_row() -> None:
    snapshot = three_hosts()
    group = RequestGroup(
        resources={"VCPU": 4},
        required=(frozenset({"SSD", "NVME"}),),
        forbidden=frozenset({"GPU"}),
    )
    mask, rejected = provider_filters.apply_and_count(
        snapshot.alive, provider_filters.suffixed_group(snapshot, group)
    )
    assert rejected == {"trait:NVME|SSD": 1, "forbidden:GPU": 1, "capacity:VCPU": 1}
    assert int(mask.sum()) == 1


def test_rows_of_deleted_providers_are_neither_kept_nor_counted() -> None:
    snapshot = three_hosts().with_states(removed=["h2"])
    mask, rejected = provider_filters.apply_and_count(
        snapshot.alive,
        provider_filters.suffixed_group(snapshot, RequestGroup(resources={"VCPU": 8})),
    )
    assert not mask.any()
    assert rejected == {"unit:VCPU": 2}
