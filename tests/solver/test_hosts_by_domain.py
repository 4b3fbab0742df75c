"""Hosts by domain: every host of the group is where its domain's slice says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.engine.joint.domain_rows import DomainRows
from moorage.solver.hosts_by_domain import HostsByDomain


@given(of=st.lists(st.integers(-1, 4), min_size=1, max_size=30), data=st.data())
def test_hosts_of_a_domain_are_one_slice(of: list[int], data: st.DataObject) -> None:
    level = DomainRows(np.array(of, dtype=np.int64), own=False)
    chosen = data.draw(st.sets(st.integers(0, len(of) - 1)))
    rows = np.array(sorted(chosen), dtype=np.int64)
    hosts = HostsByDomain(rows, len(of), level)
    for domain in range(level.count):
        inside = hosts.rows[hosts.places_in(domain)].tolist()
        assert inside == [row for row in rows.tolist() if of[row] == domain]
    outside = hosts.rows[hosts.places_in(level.count)].tolist()
    assert outside == [row for row in rows.tolist() if of[row] < 0]
    asked = np.arange(len(of), dtype=np.int64)
    assert hosts.rows[hosts.places_of(asked)].tolist() == rows.tolist()


def test_without_a_level_rows_stay_as_they_are() -> None:
    hosts = HostsByDomain(np.array([1, 4, 5], dtype=np.int64), 7, None)
    assert hosts.rows.tolist() == [1, 4, 5]
    assert hosts.places_of(np.array([5, 0, 1], dtype=np.int64)).tolist() == [2, 0]
