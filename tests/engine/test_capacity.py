"""No commit makes an overage worse at any instant, and nothing else is refused."""

from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.period import FOREVER
from moorage.engine.time.capacity_check import shortfall
from moorage.engine.time.occupancy import NO_SPANS, Spans

LAST = 10
Items = list[tuple[int, int, int, int]]

spans = st.lists(
    st.tuples(st.integers(0, LAST), st.integers(1, 5), st.integers(1, 6)).map(
        lambda one: (0, one[0], one[0] + one[1], one[2])
    ),
    max_size=5,
)


def level_at(items: Items, instant: int) -> int:
    return sum(amount for _, start, end, amount in items if start <= instant < end)


@given(capacity=st.integers(0, 12), others=spans, before=spans, after=spans)
def test_refused_exactly_when_some_instant_gets_worse(
    capacity: int, others: Items, before: Items, after: Items
) -> None:
    worse = [
        at
        for at in range(LAST + 7)
        if level_at(others, at) + level_at(after, at)
        > max(capacity, level_at(others, at) + level_at(before, at))
    ]
    found = shortfall(
        capacity,
        others=Spans.of(others),
        before=Spans.of(before),
        after=Spans.of(after),
        since=0,
    )
    assert (found is not None) == bool(worse)
    if found is not None:
        assert found.at in worse
        assert found.free == capacity - level_at(others, found.at)
        assert found.requested == level_at(after, found.at)
        assert found.requested > found.free


def test_the_past_is_not_judged() -> None:
    over = Spans.of([(0, 0, 5, 9)])
    assert shortfall(8, others=NO_SPANS, before=NO_SPANS, after=over, since=5) is None
    assert shortfall(8, others=NO_SPANS, before=NO_SPANS, after=over, since=4) is not None


def test_an_over_full_inventory_may_empty_step_by_step() -> None:
    others, nine, eight = (Spans.of([(0, 0, FOREVER, n)]) for n in (4, 9, 8))
    assert shortfall(2, others=others, before=nine, after=eight, since=0) is None
    assert shortfall(2, others=others, before=eight, after=nine, since=0) is not None


def test_a_future_promise_protects_its_period_only() -> None:
    promised = Spans.of([(0, 100, 200, 3)])
    until_then, for_ever = Spans.of([(0, 0, 100, 4)]), Spans.of([(0, 0, FOREVER, 4)])
    assert shortfall(4, others=promised, before=NO_SPANS, after=until_then, since=0) is None
    found = shortfall(4, others=promised, before=NO_SPANS, after=for_ever, since=0)
    assert found is not None
    assert (found.at, found.free, found.requested) == (100, 1, 4)
