"""With `order_candidates_by_room` the same candidates come in another order, unless cut."""

from typing import Any

from moorage.app import create_app
from moorage.settings import configure, read
from moorage.store import Ledger
from moorage.testing import in_process
from moorage.testing.ledger_copy import private_ledger

FLEET = """
fleet: two-kinds
hosts:
  - {name: g1, inventories: {VCPU: 16, VGPU: 4}}
  - {name: c1, inventories: {VCPU: 16}}
  - {name: g2, inventories: {VCPU: 16, VGPU: 4}}
  - {name: c2, inventories: {VCPU: 16}}
  - {name: g3, inventories: {VCPU: 16, VGPU: 4}}
"""
MIX: list[dict[str, Any]] = [
    {"resources": {"VCPU": 4, "VGPU": 1}, "weight": 9},
    {"resources": {"VCPU": 1}},
]


def candidates(store: Ledger, ordered: str, limit: int | None = None) -> list[str]:
    """The hosts of an answer, in its order."""
    given = {"database": "sqlite://", "order_candidates_by_room": ordered}
    application = create_app(configure(read(given, {}, files=())), store=store)
    asked: dict[str, str | int] = {"resources": "VCPU:4"}
    if limit is not None:
        asked["limit"] = limit
    with in_process.client(application) as operator:
        names = {one.uuid: one.name for one in operator.placement.providers()}
        reply = operator.placement._call("GET", "/placement/allocation_candidates", params=asked)
    return [names[uuid] for one in reply.body["allocation_requests"] for uuid in one["allocations"]]


def test_only_the_order_differs() -> None:
    store = private_ledger()
    with in_process.client(create_app(configure(read({}, {}, files=())), store=store)) as operator:
        in_process.load(operator, FLEET)
        operator.request_mix.state(MIX)
    usual = candidates(store, "false")
    plain, with_gpu = ([one for one in usual if one.startswith(kind)] for kind in "cg")
    assert (len(plain), len(with_gpu)) == (2, 3)
    assert candidates(store, "true") == [*plain, *with_gpu]
    assert candidates(store, "true", 6) == [*plain, *with_gpu]
    assert candidates(store, "true", 4) == usual[:4]
    assert candidates(store, "true", 5) == usual  # it may have been cut
    store.close()
