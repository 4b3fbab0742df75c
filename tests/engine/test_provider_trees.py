"""Provider trees as columns."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.engine.state.provider_trees import Forest, values_by_key


@given(st.lists(st.integers(-1, 9), min_size=1, max_size=10), st.data())
def test_above_says_where_in_its_tree_each_parent_is(drawn: list[int], data: st.DataObject) -> None:
    """Rows are freed and given anew, so a parent may stand behind its children."""
    size = len(drawn)
    rank = data.draw(st.permutations(range(size)))
    parents = [
        one if 0 <= one < size and rank[one] < rank[row] else -1 for row, one in enumerate(drawn)
    ]

    def root_of(row: int) -> int:
        return row if parents[row] < 0 else root_of(parents[row])

    forest = Forest.of(
        np.array(parents, dtype=np.int32),
        np.array([root_of(row) for row in range(size)], dtype=np.int32),
        np.ones(size, dtype=np.bool_),
    )
    for row, parent in enumerate(parents):
        tree = forest.trees.rows_of(root_of(row)).tolist()
        assert int(forest.parent_position[row]) == (-1 if parent < 0 else tree.index(parent))


def test_ranges_are_the_same_for_one_key_as_for_many() -> None:
    keys, values = np.array([1, 1, 4, 7], dtype=np.int32), np.array([5, 6, 7, 8], dtype=np.int32)
    of, found = values_by_key(keys, values, np.array([1, 3, 7]))
    assert (of.tolist(), found.tolist()) == ([0, 0, 2], [5, 6, 8])
    of, found = values_by_key(keys, values, np.array([1]))
    assert (of.tolist(), found.tolist()) == ([0, 0], [5, 6])
