"""How much room counts beside the objective, own tastes of workers, and full hosts."""

from dataclasses import replace

from tests.engine.test_room import asked, provider, snapshot

from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND
from moorage.domain.request_mix import RequestMix, Shape, shape
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.engine.joint.build import build
from moorage.engine.joint.fleet_room import with_room
from moorage.engine.state.snapshot import Snapshot
from moorage.solver.greedy import Greedy

NOWHERE = shape({"CUSTOM_NONE": 1})
"""A shape for which no host has room, so that no placement harms it."""


def placed(
    request: EnsembleRequest, fleet: Snapshot, one: Shape, scatter: int | None = None
) -> list[str]:
    problem = with_room(build(request, fleet), fleet, RequestMix(((one, 1),))).problem
    hosts = Greedy(scatter=scatter).solve(problem, time_limit=20 * SECOND, seed=0).hosts
    assert hosts is not None
    return [problem.hosts[row] for row in hosts.tolist()]


def test_no_harm_outweighs_a_host_of_the_objective() -> None:
    """All that a hundred hosts have room for is on `rare`; members are to be spread."""
    rare = frozenset({"CUSTOM_RARE"})
    fleet = snapshot(
        provider("plain", {"VCPU": 8}),
        provider("rare", {"VCPU": 4}, traits=rare),
        *(provider(f"full{n}", {"VCPU": 1}) for n in range(98)),
    )
    needed = {"web": (2, {"VCPU": 4})}
    got = placed(asked(needed, Objective.SPREAD), fleet, shape({"VCPU": 4}, [rare]))
    assert sorted(got) == ["plain", "rare"]


def test_no_harm_outweighs_a_percent_of_fill() -> None:
    fleet = snapshot(
        provider("gpu", {"VCPU": 100, "VGPU": 1}),
        provider("plain", {"VCPU": 100}, used={"x": {"VCPU": 1}}),
    )
    scarce = shape({"VCPU": 100, "VGPU": 1})
    needed = {"web": (1, {"VCPU": 10})}
    assert placed(asked(needed, Objective.BALANCE), fleet, scarce) == ["gpu"]
    assert placed(asked(needed, Objective.ROOM), fleet, scarce) == ["plain"]


def test_own_tastes_do_not_outweigh_harm() -> None:
    fleet = snapshot(provider("gpu", {"VCPU": 16, "VGPU": 4}), provider("plain", {"VCPU": 16}))
    for objective in (Objective.SPREAD, Objective.ROOM):
        request = asked({"web": (1, {"VCPU": 4})}, objective)
        scarce = shape({"VCPU": 4, "VGPU": 1})
        assert {placed(request, fleet, scarce, n)[0] for n in range(20)} == {"plain"}
        assert len({placed(request, fleet, NOWHERE, n)[0] for n in range(20)}) == 2


def test_of_hosts_that_harm_as_much_the_fullest_is_taken() -> None:
    fleet = snapshot(
        provider("a", {"VCPU": 16}, used={"x": {"VCPU": 4}}),
        provider("b", {"VCPU": 16}, used={"y": {"VCPU": 9}}),
        provider("c", {"VCPU": 16}, used={"z": {"VCPU": 2}}),
    )
    for objective in (Objective.SPREAD, Objective.ROOM):
        assert placed(asked({"web": (1, {"VCPU": 4})}, objective), fleet, NOWHERE) == ["b"]
    request = asked({"web": (4, {"VCPU": 2})}, Objective.PACK)
    on = {MemberName("web", n): host for n, host in enumerate("abc")}
    assert placed(replace(request, fixed=on), fleet, NOWHERE)[3] == "b"
