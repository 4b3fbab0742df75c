"""The judge of placements: it reads every policy as the reference does."""

from types import MappingProxyType

import numpy as np
import pytest
from benchmarks.joint.checker import faults, hops
from benchmarks.joint.fleet import Fleet

from moorage.domain.ensembles import PolicyStatement, Role, Selector
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.requests import EnsembleRequest
from moorage.policies import discover
from moorage.policies.contract import OUTSIDE, Example
from moorage.testing.problems import PROJECT


def reference(foreign: tuple[str, ...] = ()) -> Fleet:
    """The fleet of the reference's examples: racks r1 and r2 in zone z1, r3 in z2."""
    names = tuple(f"r{rack}/h{host}" for rack in (1, 2, 3) for host in (1, 2, 3))
    nobody = np.zeros(9, dtype=np.bool_)
    return Fleet(
        names=names,
        classes=("VCPU",),
        capacity=np.full((9, 1), 8),
        used=np.zeros((9, 1), dtype=np.int64),
        domains={"zone": np.repeat([0, 0, 1], 3), "rack": np.repeat([0, 1, 2], 3)},
        called={"zone": ("z1", "z2"), "rack": ("r1", "r2", "r3")},
        trees={"location": ("zone", "rack")},
        traits={},
        strangers=np.isin(names, foreign),
        relatives=nobody,
        closed=nobody,
    )


def asked(count: int, *policies: tuple[str, dict[str, object]], cores: int = 1) -> EnsembleRequest:
    """So many members of one role under these policies."""
    return EnsembleRequest(
        project_id=PROJECT,
        roles=(Role("n", MappingProxyType({"VCPU": cores})),),
        members=tuple(MemberName("n", index) for index in range(count)),
        policies=tuple(
            PolicyStatement(
                f"p{number}", kind, (Selector(role="n"),), parameters=MappingProxyType(parameters)
            )
            for number, (kind, parameters) in enumerate(policies)
        ),
        period=Period(0),
    )


def on(fleet: Fleet, *hosts: str) -> dict[MemberName, int]:
    return {MemberName("n", index): fleet.row_of[host] for index, host in enumerate(hosts)}


@pytest.mark.parametrize(
    ("kind", "example"),
    [
        pytest.param(kind, example, id=f"{kind}: {example.title}")
        for kind, policy in discover().items()
        for example in policy.examples
        # Tags of consumers, and hosts in no domain, are not part of the measured fleets.
        if not str(example.parameters.get("against", "")).startswith("tag:")
        and OUTSIDE not in example.hosts
    ],
)
def test_it_agrees_with_the_example_of_the_reference(kind: str, example: Example) -> None:
    fleet = reference(example.foreign)
    request = asked(len(example.hosts), (kind, dict(example.parameters)))
    assert (not faults(fleet, request, on(fleet, *example.hosts))) is example.good


def test_capacity_and_closed_hosts_and_missing_members_are_faults() -> None:
    fleet = reference()
    request = asked(2, cores=5)
    assert faults(fleet, request, on(fleet, "r1/h1", "r1/h2")) == []
    assert faults(fleet, request, on(fleet, "r1/h1", "r1/h1")) == ["r1/h1 is overfull"]
    assert faults(fleet, request, on(fleet, "r1/h1")) == ["n[1] has no host"]
    fleet.closed[0] = True
    assert faults(fleet, request, on(fleet, "r1/h1", "r1/h2")) == [
        "n[0] on a host that is kept by others"
    ]


def test_a_fence_takes_its_domains_out_of_the_skew() -> None:
    fleet = reference()
    even = ("spread", {"level": "rack", "max_skew": 0})
    assert faults(fleet, asked(2, even), on(fleet, "r1/h1", "r2/h1")) == ["p0: skew 1"]
    fenced = asked(2, even, ("fence", {"domains": ["z1"]}))
    assert faults(fleet, fenced, on(fleet, "r1/h1", "r2/h1")) == []


def test_hops_are_counted_at_every_level() -> None:
    fleet = reference()
    assert hops(fleet, ["n"], on(fleet, "r1/h1", "r1/h1")) == 0
    assert hops(fleet, ["n"], on(fleet, "r1/h1", "r1/h2")) == 1
    assert hops(fleet, ["n"], on(fleet, "r1/h1", "r2/h1")) == 2
    assert hops(fleet, ["n"], on(fleet, "r1/h1", "r3/h1")) == 3
