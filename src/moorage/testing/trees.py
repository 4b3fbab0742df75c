"""Small fleets with provider trees for tests: written down, or drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.ensembles import MemberKind, Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.providers import SHARING_TRAIT, Inventory, ResourceProvider
from moorage.domain.request_groups import Group
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.domain.topology import EMPTY
from moorage.engine.devices.host_trees import Devices, classes_of
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.terrain import Terrain
from moorage.engine.state.snapshot import ProviderState, Snapshot
from moorage.testing.problems import PARAMETERS, random_policy, random_topology

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.topology import Topology
    from moorage.engine.joint.build import BuiltProblem

Needed: TypeAlias = "tuple[Role, int]"
"""A role, and how many members of it."""

PROJECT = "0123456789abcdef0123456789abcdef"


@dataclass(frozen=True)
class Node:
    """A provider: where it stands, and what is free of its classes."""

    name: str
    host: str | None
    """None for one that only shares."""
    free: Mapping[str, int]
    parent: str | None = None
    traits: frozenset[str] = frozenset()
    lends_to: tuple[str, ...] = ()
    """Hosts, or pools, of other trees that it shares with."""
    max_unit: int = 1_000


def forest(nodes: Sequence[Node], roles: Sequence[Role]) -> Terrain:
    """Hosts in the order of their first node; whoever has no parent is its host's root."""
    hosts = tuple(dict.fromkeys(one.host for one in nodes if one.host is not None))
    classes = classes_of(roles)
    position = {one.name: at for at, one in enumerate(nodes)}
    free = np.array(
        [[one.free.get(name, 0) for name in classes] for one in nodes], dtype=np.int64
    ).reshape(len(nodes), len(classes))
    has = np.array(
        [[name in one.free for name in classes] for one in nodes], dtype=np.bool_
    ).reshape(free.shape)
    pairs = sorted(
        (hosts.index(host), position[one.name]) for one in nodes for host in one.lends_to
    )
    traits = sorted({trait for one in nodes for trait in one.traits})
    parents = np.array([-1 if n.parent is None else position[n.parent] for n in nodes])
    devices = Devices.stated(
        uuids=tuple(one.name for one in nodes),
        classes=classes,
        links={
            "host": np.array([-1 if n.host is None else hosts.index(n.host) for n in nodes]),
            "parent": parents,
            "borrower": np.array([host for host, _ in pairs], dtype=np.int64),
            "lender": np.array([at for _, at in pairs], dtype=np.int64),
        },
        columns={
            "capacity": free,
            "free": free,
            "min_unit": has.astype(np.int64),
            "max_unit": np.where(has, np.array([[one.max_unit] for one in nodes]), 0),
            "step_size": np.ones_like(free),
        },
        traits={
            trait: np.array([trait in one.traits for one in nodes], dtype=np.bool_)
            for trait in traits
        },
        aggregates={},
        computing=np.zeros(len(nodes), dtype=np.bool_),
    )
    shape = (len(hosts), len(classes))
    bare = Terrain(
        uuids=hosts,
        names=hosts,
        classes=classes,
        capacity=np.zeros(shape, dtype=np.int64),
        free=np.zeros(shape, dtype=np.int64),
        min_unit=np.zeros(shape, dtype=np.int64),
        max_unit=np.zeros(shape, dtype=np.int64),
        step_size=np.ones(shape, dtype=np.int64),
        traits={},
        aggregates={},
        topology=EMPTY,
        levels={},
        occupants_of=lambda _row: (),
    )
    return bare.with_devices(devices)


def asked(roles: Sequence[Needed], objective: Objective = Objective.SPREAD) -> EnsembleRequest:
    """A request for so many members of each role."""
    return EnsembleRequest(
        project_id=PROJECT,
        roles=tuple(role for role, _ in roles),
        members=tuple(MemberName(r.name, i) for r, n in roles for i in range(n)),
        policies=(),
        period=Period(0),
        objective=objective,
    )


def edge_host(name: str, *, vcpu: int = 16, vfs: int = 8) -> tuple[Node, ...]:
    """Two NUMA nodes; a physical function on physnet A below the first, on B below the second."""
    return (
        Node(name, name, {"MEMORY_MB": 65_536}),
        *(
            node
            for numa, physnet in (("0", "A"), ("1", "B"))
            for node in (
                Node(f"{name}-numa{numa}", name, {"VCPU": vcpu}, name),
                Node(
                    f"{name}-pf{numa}",
                    name,
                    {"SRIOV_NET_VF": vfs},
                    f"{name}-numa{numa}",
                    frozenset({f"CUSTOM_PHYSNET_{physnet}"}),
                ),
            )
        ),
    )


def vf(name: str, physnet: str, count: int = 2, *, beside: bool = False) -> Group:
    """Virtual functions on a physical network."""
    return Group(
        name,
        {"SRIOV_NET_VF": count},
        required=(frozenset({f"CUSTOM_PHYSNET_{physnet}"}),),
        beside=beside,
    )


# --- drawn from a seed -----------------------------------------------------------------------


def random_forest(seed: int) -> tuple[list[Node], list[Needed]]:
    """At most three hosts of at most five providers, one that shares now and then, few members."""
    dice = random.Random(seed)  # noqa: S311 - a test's draw
    nodes: list[Node] = []
    hosts = [f"h{n}" for n in range(dice.randint(1, 3))]
    for host in hosts:
        nodes.append(Node(host, host, _free(dice, ("VCPU", "DISK")), traits=_traits(dice)))
        for n in range(dice.randint(0, 2)):
            numa = f"{host}n{n}"
            nodes.append(Node(numa, host, _free(dice, ("VCPU", "VF")), host, _traits(dice)))
            if dice.random() < 0.6:  # noqa: PLR2004 - most have a device below
                unit = dice.choice((1, 2, 9))
                nodes.append(
                    Node(f"{numa}f", host, _free(dice, ("VF",)), numa, _traits(dice), (), unit)
                )
    for n in range(dice.choice((0, 0, 1, 2))):
        lends = tuple(host for host in hosts if dice.random() < 0.8)  # noqa: PLR2004 - most
        nodes.append(
            Node(f"pool{n}", None, {"DISK": dice.randint(1, 5)}, None, _traits(dice), lends)
        )
    names = ("a", "b")[: dice.randint(1, 2)]
    roles = [(_role(dice, name), dice.randint(1, 2)) for name in names]
    return nodes, roles


def _free(dice: random.Random, classes: Sequence[str]) -> Mapping[str, int]:
    return {name: dice.randint(0, 4) for name in classes if dice.random() < 0.8}  # noqa: PLR2004 - most


def _traits(dice: random.Random) -> frozenset[str]:
    return frozenset(t for t in ("T", "U") if dice.random() < 0.4)  # noqa: PLR2004 - some


def _role(dice: random.Random, name: str) -> Role:
    groups = tuple(
        Group(
            f"g{n}",
            MappingProxyType({dice.choice(("VF", "VF", "VCPU", "DISK")): dice.randint(1, 2)}),
            required=(_some(dice),) if dice.random() < 0.4 else (),  # noqa: PLR2004 - some
            beside=dice.random() < 0.3,  # noqa: PLR2004 - some
        )
        for n in range(dice.randint(0, 2))
    )
    names = frozenset(one.name for one in groups)
    own = {n: dice.randint(1, 2) for n in ("VCPU", "DISK") if dice.random() < 0.6}  # noqa: PLR2004 - most
    return Role(
        name,
        own if own or groups else {"VCPU": 1},
        required=(_some(dice),) if own and dice.random() < 0.2 else (),  # noqa: PLR2004 - few
        groups=groups,
        same_subtree=(names,) if len(names) > 1 and dice.random() < 0.5 else (),  # noqa: PLR2004 - half
        isolate=dice.random() < 0.3,  # noqa: PLR2004 - some
    )


def _some(dice: random.Random) -> frozenset[str]:
    return frozenset({dice.choice(("T", "U"))})


def random_members(seed: int) -> tuple[list[Node], EnsembleRequest, Topology]:
    """Members of all kinds that hosts and pools can serve, some with an alternative, in racks."""
    nodes, needed = random_forest(seed)
    dice = random.Random(seed)  # noqa: S311 - as above
    if all(one.host for one in nodes):
        nodes.append(Node("pool0", None, {"DISK": 3}, lends_to=("h0",)))
    pools = [one.name for one in nodes if one.host is None]
    every = {host for one in nodes for host in one.lends_to}.union(pools)
    common = dice.random() < 0.5  # noqa: PLR2004 - half are in one aggregate, so share with pools
    nodes = [
        replace(
            one,
            lends_to=tuple(sorted(every - {one.name})) if common and not one.host else one.lends_to,
            free={name: amount + dice.randint(0, 3) for name, amount in one.free.items()},
        )
        for one in nodes
    ]
    wanted = [(_of_any_kind(dice, role), count) for role, count in needed]
    wanted.append((_of_one_provider(dice, "c"), 1))
    roles = [role for role, _ in wanted]
    hosts = dict.fromkeys(one.host for one in nodes if one.host is not None)
    known = {**PARAMETERS, "fence": _domains, "ban": _domains}
    policies = (
        random_policy(dice, f"p{i}", roles, known) for i in range(dice.choice((0, 1, 1, 2)))
    )
    request = replace(
        asked(wanted),
        policies=tuple(policies),
        objective=dice.choice((Objective.SPREAD, Objective.PACK)),
        first_choices=dice.random() < 0.6,  # noqa: PLR2004 - most
    )
    return nodes, request, random_topology(dice, [*hosts, *pools])


def _of_any_kind(dice: random.Random, role: Role) -> Role:
    if dice.random() < 0.5:  # noqa: PLR2004 - half
        role = _of_one_provider(dice, role.name)
    if dice.random() < 0.3:  # noqa: PLR2004 - some
        other = _of_one_provider if role.of_nova else _role
        role = replace(role, alternatives=(other(dice, role.name),))
    return role


def _of_one_provider(dice: random.Random, name: str) -> Role:
    kind = dice.choice((MemberKind.VOLUME, MemberKind.PORT))
    pooled = kind == MemberKind.VOLUME or dice.random() < 0.3  # noqa: PLR2004 - mostly of devices
    classes = dice.choice((("DISK",), ("DISK",), ("VF",)) if pooled else (("VF",), ("VF", "VCPU")))
    return Role(
        name,
        MappingProxyType({one: dice.randint(1, 2) for one in classes}),
        kind=kind,
        required=(_some(dice),) if dice.random() < 0.2 else (),  # noqa: PLR2004 - few
        forbidden=_some(dice) if dice.random() < 0.2 else frozenset(),  # noqa: PLR2004 - few
    )


def _domains(dice: random.Random) -> Mapping[str, object]:
    return {"domains": dice.sample(["r0", "r1", "z0", "h0", "pool0"], k=2)}


def stated(nodes: Sequence[Node], roles: Sequence[Needed]) -> BuiltProblem:
    """The joint problem of placing so many members of each role on these trees."""
    return build_on_terrain(asked(roles), forest(nodes, [role for role, _ in roles]))


def snapshot(nodes: Sequence[Node], topology: Topology = EMPTY) -> Snapshot:
    """The same providers as a ledger would show them, every one with its own aggregate.

    Sharing is by aggregates: a lender's has the roots of the hosts it lends to.
    """
    states = []
    by_name = {one.name: one for one in nodes}
    for one in nodes:
        root = one
        while root.parent is not None:
            root = by_name[root.parent]
        place = one.host or one.name
        lenders = [other.name for other in nodes if one is root and place in other.lends_to]
        provider = ResourceProvider(
            uuid=one.name,
            name=one.name,
            parent_uuid=one.parent,
            root_uuid=root.name,
            inventories=tuple(
                Inventory(name, amount, max_unit=one.max_unit)
                for name, amount in one.free.items()
                if amount
            ),
            traits=one.traits | ({SHARING_TRAIT} if one.host is None else frozenset[str]()),
            aggregates=frozenset({*lenders, *([one.name] if one.host is None else [])}),
        )
        states.append(ProviderState(provider, (), ()))
    return Snapshot.empty().with_states(states, topology=topology)
