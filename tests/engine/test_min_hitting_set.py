"""The lightest set that is enough, against all sets."""

from itertools import chain, combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.engine.explain.min_hitting_set import minimum_set

Families = st.lists(st.frozensets(st.integers(0, 5), max_size=4), max_size=5)
Weights = st.lists(st.integers(1, 40), min_size=6, max_size=6)


@settings(max_examples=200, deadline=None)
@given(Families, Weights)
def test_no_lighter_set_is_enough(families: list[frozenset[int]], weights: list[int]) -> None:
    """Enough is whatever holds one of these families whole."""

    def enough(some: frozenset[int]) -> bool:
        return any(one <= some for one in families)

    found = minimum_set(weights, enough)
    sums = [
        sum(weights[one] for one in some)
        for some in chain.from_iterable(combinations(range(6), size) for size in range(7))
        if enough(frozenset(some))
    ]
    assert found.proved
    if found.items is None:
        assert not sums
    else:
        assert enough(found.items)
        assert sum(weights[one] for one in found.items) == min(sums)


@settings(max_examples=100, deadline=None)
@given(Families, Weights, st.integers(0, 12))
def test_what_is_not_settled_is_not_called_proved(
    families: list[frozenset[int]], weights: list[int], answers: int
) -> None:
    left = iter(range(answers))

    def enough(some: frozenset[int]) -> bool | None:
        return None if next(left, None) is None else any(one <= some for one in families)

    found = minimum_set(weights, enough)
    if found.items is not None:
        assert any(one <= found.items for one in families)
    if found.proved:
        surely = minimum_set(weights, lambda some: any(one <= some for one in families))
        total = [
            None if one is None else sum(weights[i] for i in one)
            for one in (found.items, surely.items)
        ]
        assert total[0] == total[1]


def test_nothing_is_asked_twice() -> None:
    asked: list[frozenset[int]] = []

    def enough(some: frozenset[int]) -> bool:
        asked.append(some)
        return {1, 3} <= some

    assert minimum_set([1, 2, 4, 8], enough).items == frozenset({1, 3})
    assert len(asked) == len(set(asked)) <= 8
