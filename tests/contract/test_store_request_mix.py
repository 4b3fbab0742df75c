"""The store contract: the stated mix of requests comes with the snapshot of every process."""

from tests.contract.conftest import SetClock
from tests.contract.test_store_bookings import write

from moorage.domain.changes import CreateProvider, PutRequestMix
from moorage.domain.request_mix import StatedMix, StatedShape, shape
from moorage.store import Ledger, open_store

MIX = StatedMix(
    (
        StatedShape(
            shape(
                {"VCPU": 4, "MEMORY_MB": 512}, [["A", "B"]], ["C"], [shape({"VGPU": 1}, [["T"]])]
            ),
            9,
            ("small", "tiny"),
        ),
        StatedShape(shape({"VCPU": 1}), 2),
    ),
    merged=3,
    updated_at=5,
)


def test_a_stated_mix_is_in_the_snapshot(store: Ledger) -> None:
    assert store.snapshot().stated_mix is None
    write(store, PutRequestMix(MIX))
    seen = store.snapshot()
    assert seen.stated_mix == MIX
    write(store, CreateProvider("a", "a"))
    assert store.snapshot().stated_mix is seen.stated_mix
    other = StatedMix(MIX.shapes[:1])
    write(store, PutRequestMix(other))
    assert store.snapshot().stated_mix == other
    write(store, PutRequestMix(None))
    assert store.snapshot().stated_mix is None


def test_other_processes_see_it_at_once(database_url: str, clock: SetClock) -> None:
    one, other = open_store(database_url, clock=clock), open_store(database_url, clock=clock)
    assert other.snapshot().stated_mix is None
    write(one, PutRequestMix(MIX))
    assert other.snapshot().stated_mix == MIX
    third = open_store(database_url, clock=clock)
    assert third.snapshot().stated_mix == MIX
    for each in (one, other, third):
        each.close()
