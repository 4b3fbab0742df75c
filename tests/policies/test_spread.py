"""Which domains a skew is measured over."""

from typing import Any

import numpy as np
import pytest

from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.cost import satisfies
from moorage.engine.joint.verify import verify
from moorage.solver.exhaustive import every_placement
from moorage.testing.problems import Host, request, statement, terrain


def built(*policies: tuple[str, dict[str, Any]], weight: int | None = None) -> BuiltProblem:
    """Four members over racks r0 to r2 of one host each, evenly; and what else is stated."""
    racks = ("r0", "r1", "r2")
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain(rack, "rack") for rack in racks],
        [Attachment(f"h{i}", rack) for i, rack in enumerate(racks)],
    )
    fleet = terrain([Host(f"h{i}", {"VCPU": 9}) for i in range(3)], topology)
    stated = [
        statement(type_, type_, "a", weight=None if type_ == "spread" else weight, **parameters)
        for type_, parameters in policies
    ]
    return build_on_terrain(request({"a": (4, {"VCPU": 1})}, stated), fleet)


def ways(made: BuiltProblem) -> set[str]:
    """How many members stand on each host, over all that is granted; meanings agree with it."""
    rows = every_placement(made.problem)
    found = rows[satisfies(made.problem, rows)]
    for one in found[:5]:
        verify(made, one)
    return {" ".join(map(str, np.bincount(one, minlength=3))) for one in found}


EVEN: tuple[str, dict[str, Any]] = ("spread", {"level": "rack", "max_skew": 0})
COUNTED: tuple[str, dict[str, Any]] = (
    "spread",
    {"level": "rack", "max_skew": 0, "fenced_domains": "count"},
)


@pytest.mark.parametrize(
    "other", [("fence", {"domains": ["r0", "r1"]}), ("ban", {"domains": ["r2"]})]
)
def test_a_domain_that_the_request_fences_off_or_bans_does_not_count(
    other: tuple[str, dict[str, Any]],
) -> None:
    assert ways(built(EVEN, other)) == {"2 2 0"}


def test_it_counts_where_that_is_asked_for() -> None:
    assert not ways(built(COUNTED, ("ban", {"domains": ["r2"]})))


def test_a_preferred_ban_closes_no_domain() -> None:
    assert not ways(built(EVEN, ("ban", {"domains": ["r2"]}), weight=1))
