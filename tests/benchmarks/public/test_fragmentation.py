"""Fragmentation gradient descent, on two hosts by hand."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.joint.fleet import make_fleet
from benchmarks.public.fragmentation import Fragmentation

CLASSES = ("VCPU", "PGPU")


def _weigher(used: list[list[int]], shapes: dict[tuple[int, ...], int]) -> Fragmentation:
    fleet = replace(
        make_fleet(2, load=0.5, seed=1),
        classes=CLASSES,
        capacity=np.array([[16, 8], [16, 8]], dtype=np.int64),
        used=np.array(used, dtype=np.int64),
    )
    return Fragmentation(fleet, "PGPU", shapes)


def test_a_server_without_gpus_goes_where_gpus_are_lost_already() -> None:
    # On the second host 3 VCPU are left for 8 GPUs: no instance of (4, 1) fits there any more.
    weigher = _weigher([[8, 0], [13, 0]], {(4, 1): 1})
    costs = weigher.costs(np.array([2, 0], dtype=np.int64))
    assert costs.argmin() == 1
    assert costs[0] == pytest.approx(0, abs=1e-4)  # 6 VCPU are left there, enough for one
    more = weigher.costs(np.array([6, 0], dtype=np.int64))
    assert more[0] == pytest.approx(8, abs=1e-4)  # 2 VCPU: all its GPUs become fragments


def test_gpus_that_are_fragments_already_are_taken_first() -> None:
    weigher = _weigher([[0, 0], [0, 7]], {(1, 1): 1, (1, 4): 1})
    costs = weigher.costs(np.array([1, 1], dtype=np.int64))
    # One GPU is left on the second: half of the mix cannot use it. Of the first all can be used.
    assert costs.tolist() == pytest.approx([0, -0.5], abs=1e-4)


def test_of_a_mix_without_gpus_every_gpu_is_a_fragment() -> None:
    weigher = _weigher([[0, 0], [0, 4]], {(1, 0): 1})
    costs = weigher.costs(np.array([1, 1], dtype=np.int64))
    assert costs.tolist() == pytest.approx([-1, -1], abs=1e-4)
    assert costs.argmin() == 1  # equal but for how full the host is
