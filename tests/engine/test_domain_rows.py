"""Hosts by domain."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.engine.joint.domain_rows import DomainRows


@given(
    of=st.lists(st.integers(-1, 5), min_size=1, max_size=20),
    wanted=st.lists(st.integers(0, 5), max_size=4),
)
def test_the_hosts_of_some_domains(of: list[int], wanted: list[int]) -> None:
    found = DomainRows(np.array(of), own=False)
    known = [domain for domain in wanted if domain < found.count]
    rows = found.rows_in(np.array(known, dtype=np.int64)).tolist()
    assert rows == [row for domain in known for row, one in enumerate(of) if one == domain]
    assert found.outside.tolist() == [row for row, one in enumerate(of) if one < 0]
    assert found.covers_all is (min(of) >= 0)
    values = np.arange(2 * len(of)).reshape(2, -1)[1]
    assert found.sums(values).tolist() == [
        sum(values[row] for row, one in enumerate(of) if one == domain)
        for domain in range(found.count)
    ]


def test_hosts_that_are_domains_of_their_own() -> None:
    found = DomainRows(np.arange(4), own=True)
    assert found.rows_in(np.array([2, 0])).tolist() == [2, 0]
    assert found.sums(np.array([5, 6, 7, 8])).tolist() == [5, 6, 7, 8]
    assert found.outside.tolist() == []
