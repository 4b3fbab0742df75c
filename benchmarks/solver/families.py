"""Families of joint problems for the benchmarks: fleets and ensembles of any size, by seed."""

from __future__ import annotations

import random
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.placement import Occupant
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.testing.problems import OTHER_PROJECT, Host, request, statement, terrain

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.terrain import Terrain

GENERATIONS = ((32, 128), (48, 192), (64, 256), (96, 512))
"""VCPU and GiB of the four kinds of hosts."""


def fleet(hosts: int, *, load: float, seed: int) -> Terrain:
    """Racks of 25 in zones of at most 14 racks, four generations, loaded unevenly."""
    dice = random.Random(seed)
    racks = max(3, hosts // 25)
    zones = max(3, racks // 14)
    names = [f"host-{i:05}" for i in range(hosts)]
    topology = Topology.build(
        {"location": ("zone", "rack"), "power": ("feed",)},
        [
            *(Domain(f"az{z}", "zone") for z in range(zones)),
            *(Domain(f"rack{r:03}", "rack", parent=f"az{r % zones}") for r in range(racks)),
            *(Domain(f"feed{f}", "feed", "power") for f in range(2 * racks)),
        ],
        [
            *(Attachment(name, f"rack{i % racks:03}") for i, name in enumerate(names)),
            *(Attachment(name, f"feed{i % (2 * racks)}", "power") for i, name in enumerate(names)),
        ],
    )
    return terrain([_host(dice, name, i % racks, load) for i, name in enumerate(names)], topology)


def _host(dice: random.Random, name: str, rack: int, load: float) -> Host:
    cores, memory = GENERATIONS[rack % len(GENERATIONS)]
    fill = min(1.0, max(0.0, dice.gauss(load, 0.25)))
    used = {"VCPU": int(cores * fill), "MEMORY_MB": int(memory * fill)}
    busy = used["VCPU"] > 0
    traits = {"HW_CPU_X86_AVX2"} if rack % 4 else set()
    return Host(
        name,
        {"VCPU": cores, "MEMORY_MB": memory},
        used,
        traits=frozenset(traits | ({"CUSTOM_SSD"} if rack % 3 == 0 else set())),
        occupants=(Occupant(f"load-{name}", OTHER_PROJECT),) if busy else (),
    )


def mixed(members: int) -> EnsembleRequest:
    """Four tiers: spread front ends, paired workers and stores, a quorum and a cache."""
    part = members // 6
    return request(
        {
            "web": (members - 5 * part, {"VCPU": 2, "MEMORY_MB": 4}),
            "app": (2 * part, {"VCPU": 4, "MEMORY_MB": 8}),
            "db": (2 * part, {"VCPU": 16, "MEMORY_MB": 64}),
            "cache": (part, {"VCPU": 8, "MEMORY_MB": 64}),
        },
        [
            statement("web-racks", "spread", "web", level="rack", min_domains=3, max_skew=2),
            statement("web-apart", "anti-affinity", "web"),
            statement("pairs", "proximity", "app", "db", zip_=True, level="rack"),
            statement("db-ha", "survive", "db", level="zone", keep=max(1, part // 2)),
            statement("db-apart", "anti-affinity", "db", level="rack", max_per_domain=2),
            statement("cache-feeds", "separation", "cache", level="feed", tree="power"),
        ],
    )


def spread(members: int) -> EnsembleRequest:
    """One role, one per host, even over zones."""
    return request(
        {"n": (members, {"VCPU": 8, "MEMORY_MB": 16})},
        [
            statement("apart", "anti-affinity", "n"),
            statement("zones", "spread", "n", level="zone", max_skew=1),
        ],
    )


def exclusive(members: int) -> EnsembleRequest:
    """Hosts of our own for half of the members, kept in few racks."""
    half = members // 2
    return request(
        {"quiet": (half, {"VCPU": 4, "MEMORY_MB": 8}), "other": (members - half, {"VCPU": 4})},
        [
            statement("alone", "exclusive", "quiet", against="others"),
            statement("quiet-few", "anti-affinity", "quiet", max_per_domain=8),
        ],
    )


def proximity(members: int) -> EnsembleRequest:
    """Racks full: tens that must share a rack, in which no two share a host."""
    teams = max(1, members // 10)
    roles = {f"team{t}": (members // teams, {"VCPU": 8, "MEMORY_MB": 16}) for t in range(teams)}
    policies = []
    for t in range(teams):
        policies.append(statement(f"near{t}", "proximity", f"team{t}", level="rack"))
        policies.append(statement(f"apart{t}", "anti-affinity", f"team{t}"))
    return request(roles, policies)


def infeasible(members: int) -> EnsembleRequest:
    """The mixed ensemble, asked to survive the loss of more zones than there are."""
    found = mixed(members)
    policies = [
        statement("db-ha", "survive", "db", level="zone", lose=2, keep=members // 3 - 1)
        if one.name == "db-ha"
        else one
        for one in found.policies
    ]
    return request(
        {
            role.name: (sum(m.role == role.name for m in found.members), role.resources)
            for role in found.roles
        },
        policies,
    )


FAMILIES: MappingProxyType[str, Callable[[int], EnsembleRequest]] = MappingProxyType(
    {
        "mixed": mixed,
        "spread": spread,
        "exclusive": exclusive,
        "proximity": proximity,
        "infeasible": infeasible,
    }
)


def instance(
    family: str, members: int, hosts: int, *, load: float = 0.6, seed: int = 0
) -> BuiltProblem:
    """One problem of a family."""
    return build_on_terrain(FAMILIES[family](members), fleet(hosts, load=load, seed=seed))
