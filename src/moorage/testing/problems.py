"""Small joint problems made from seeds, and terrains made by hand.

The same seed gives the same request, terrain and problem on every machine, so a failure is
told by one number.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.ensembles import (
    EXCLUDING,
    ISOLATING,
    MemberKind,
    PolicyStatement,
    Role,
    Selector,
)
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.placement import Occupant
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.domain.resources import MAX_AMOUNT
from moorage.domain.topology import HOST, SERVER, Attachment, Domain, Topology
from moorage.engine.joint.build import BuiltProblem, build_on_terrain
from moorage.engine.joint.terrain import Terrain, level_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PROJECT = "11111111-1111-4111-8111-111111111111"
OTHER_PROJECT = "22222222-2222-4222-8222-222222222222"
LEVELS = ("host", "rack", "zone")
RandomParameters: TypeAlias = "Callable[[random.Random], Mapping[str, object]]"
"""Makes a policy's parameters for a random problem."""


@dataclass(frozen=True)
class Host:
    """One host of a hand-made terrain; `used` is booked already."""

    name: str
    capacity: Mapping[str, int]
    used: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    occupants: tuple[Occupant, ...] = ()
    max_unit: int = MAX_AMOUNT
    step_size: int = 1
    standing_on: str | None = None
    """The host of a server that offers slices, `""` if it is on none; None: this is a host."""


def terrain(hosts: Sequence[Host], topology: Topology, *, classes: tuple[str, ...] = ()) -> Terrain:
    """A terrain with these hosts; a host's UUID is its name.

    `classes` are resource classes to know of even if no host has them.
    """
    classes = tuple(sorted({name for host in hosts for name in host.capacity} | {*classes}))
    shape = (len(hosts), len(classes))
    capacity = np.array(
        [[host.capacity.get(name, 0) for name in classes] for host in hosts], dtype=np.int64
    ).reshape(shape)
    used = np.array(
        [[host.used.get(name, 0) for name in classes] for host in hosts], dtype=np.int64
    ).reshape(shape)
    names = tuple(host.name for host in hosts)
    standing_on = None
    if any(host.standing_on is not None for host in hosts):
        row_of = {name: row for row, name in enumerate(names)} | {"": -1}
        on = (host.name if host.standing_on is None else host.standing_on for host in hosts)
        standing_on = np.array([row_of[name] for name in on], dtype=np.int64)
    return Terrain(
        uuids=names,
        names=names,
        classes=classes,
        capacity=capacity,
        free=capacity - used,
        min_unit=np.ones_like(capacity),
        max_unit=np.where(capacity > 0, [[host.max_unit] for host in hosts], 0).reshape(shape),
        step_size=np.ones_like(capacity) * np.array([[h.step_size] for h in hosts]).reshape(-1, 1),
        traits=_masks([host.traits for host in hosts]),
        aggregates=_masks([host.aggregates for host in hosts]),
        topology=topology,
        levels=level_columns(topology, names, standing_on),
        occupants_of=lambda row: hosts[row].occupants,
        standing_on=standing_on,
    )


def _masks(sets: Sequence[frozenset[str]]) -> dict[str, np.typing.NDArray[np.bool_]]:
    names = sorted({name for one in sets for name in one})
    return {name: np.array([name in one for one in sets], dtype=np.bool_) for name in names}


def request(
    roles: Mapping[str, tuple[int, Mapping[str, int]]],
    policies: Sequence[PolicyStatement] = (),
    *,
    objective: Objective = Objective.SPREAD,
    fixed: Mapping[MemberName, str] | None = None,
) -> EnsembleRequest:
    """A request of plain roles: name -> (count, resources)."""
    return EnsembleRequest(
        project_id=PROJECT,
        roles=tuple(Role(name, resources) for name, (_, resources) in roles.items()),
        members=tuple(
            MemberName(name, i) for name, (count, _) in roles.items() for i in range(count)
        ),
        policies=tuple(policies),
        period=Period(0),
        objective=objective,
        fixed=MappingProxyType(dict(fixed or {})),
    )


def statement(
    name: str,
    type_: str,
    *members: str,
    weight: int | None = None,
    zip_: bool = False,
    **parameters: object,
) -> PolicyStatement:
    """A policy over selectors, such as `statement("ha", "survive", "db", keep=2)`."""
    return PolicyStatement(
        name=name,
        type=type_,
        members=tuple(Selector.parse(text) for text in members),
        zip=zip_,
        weight=weight,
        parameters=MappingProxyType(parameters),
    )


def story_a(
    *, fixed: Mapping[MemberName, str] | None = None, db: int = 3, keep: int = 2
) -> BuiltProblem:
    """The shop of story A on three racks of three hosts, r3 with 8, 6 and 6 VCPU free."""
    return build_on_terrain(shop(fixed=fixed, db=db, keep=keep), three_racks())


def three_racks() -> Terrain:
    """Story A's fleet: h1..h9 with 16 VCPU each, and foreign load in r3."""
    names = [f"h{i}" for i in range(1, 10)]
    used = {"h7": 8, "h8": 10, "h9": 10}
    topology = Topology.build(
        {"location": ("zone", "rack")},
        [Domain("az1", "zone"), *(Domain(r, "rack", parent="az1") for r in ("r1", "r2", "r3"))],
        [Attachment(name, f"r{1 + i // 3}") for i, name in enumerate(names)],
    )
    hosts = [
        Host(
            name,
            {"VCPU": 16},
            {"VCPU": used.get(name, 0)},
            occupants=(Occupant(f"load-{name}", OTHER_PROJECT),) if name in used else (),
        )
        for name in names
    ]
    return terrain(hosts, topology)


def shop(
    *, fixed: Mapping[MemberName, str] | None = None, db: int = 3, keep: int = 2
) -> EnsembleRequest:
    """Story A's ensemble as a request."""
    found = request(
        {"web": (3, {"VCPU": 1}), "app": (3, {"VCPU": 2}), "db": (db, {"VCPU": 8})},
        [
            statement("db-ha", "survive", "db", level="rack", lose=1, keep=keep),
            statement("web-apart", "anti-affinity", "web"),
            statement("web-racks", "spread", "web", level="rack", min_domains=2, max_skew=1),
            statement("pair", "proximity", "app", "db", zip_=True, level="rack"),
        ],
        fixed=fixed,
    )
    roles = {"web": "m1.small", "app": "m1.medium", "db": "m1.xlarge"}
    named = tuple(Role(role.name, role.resources, flavor=roles[role.name]) for role in found.roles)
    return EnsembleRequest(
        project_id=found.project_id,
        roles=named,
        members=found.members,
        policies=found.policies,
        period=found.period,
        fixed=found.fixed,
    )


# --- random ones ---------------------------------------------------------------------------


def random_built(  # noqa: PLR0913 - what a random problem may have, by keyword
    seed: int,
    *,
    hosts: int = 5,
    members: int = 5,
    policies: int = 4,
    fixed: float = 0.12,
    partial: bool = False,
    servers: int = 0,
    parameters: Mapping[str, RandomParameters] | None = None,
) -> BuiltProblem:
    """A small problem with any policies, strengths, objective, fixed members and odd hosts.

    With `partial` the trees have gaps: racks without a zone, hosts in a zone without a rack,
    hosts that stand nowhere. With `servers` there are so many that offer slices, and roles of
    slices. `parameters` says which policies there are, `PARAMETERS` by default.
    """
    known = PARAMETERS if parameters is None else parameters
    dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
    count = dice.randint(1, hosts)
    names = [f"h{i}" for i in range(count)]
    topology = _partial_topology(dice, count) if partial else random_topology(dice, names)
    rows = [_random_host(dice, name) for name in names]
    fleet = terrain(rows, topology)
    request = _random_request(dice, fleet, members, policies, fixed, known)
    if servers:
        rows += [_random_server(dice, f"s{i}", count) for i in range(servers)]
        fleet = terrain(rows, topology)
        request = _with_slices(dice, request, rows)
    return build_on_terrain(request, fleet)


def _random_server(dice: random.Random, name: str, hosts: int) -> Host:
    nowhere = dice.random() < 0.1  # noqa: PLR2004 - now and then its server has no host
    standing_on = "" if nowhere else f"h{dice.randrange(hosts)}"
    return replace(_random_host(dice, name), standing_on=standing_on)


def _with_slices(
    dice: random.Random, request: EnsembleRequest, rows: Sequence[Host]
) -> EnsembleRequest:
    """The request with some roles of slices, and some policies at the level of their servers."""
    servers = [one.name for one in rows if one.standing_on is not None]
    hosts = [one.name for one in rows if one.standing_on is None]
    roles = tuple(
        replace(
            role,
            kind=MemberKind.SLICE,
            on_server=dice.choice(servers) if dice.random() < 0.1 else None,  # noqa: PLR2004
        )
        if dice.random() < 0.6  # noqa: PLR2004 - mostly slices
        else role
        for role in request.roles
    )
    slices = {role.name for role in roles if role.is_slice}
    policies = [
        replace(
            one,
            parameters=MappingProxyType(
                {
                    name: SERVER if value == HOST and dice.random() < 0.5 else value  # noqa: PLR2004
                    for name, value in one.parameters.items()
                }
            ),
        )
        for one in request.policies
    ]
    fixed = {name: dice.choice(servers if name.role in slices else hosts) for name in request.fixed}
    return replace(request, roles=roles, policies=tuple(policies), fixed=MappingProxyType(fixed))


def random_topology(dice: random.Random, names: Sequence[str]) -> Topology:
    """Racks in zones, and feeds, for hosts of these names."""
    racks, zones = dice.randint(1, 3), dice.randint(1, 2)
    return Topology.build(
        {"location": ("zone", "rack"), "power": ("feed",)},
        [
            *(Domain(f"z{i}", "zone") for i in range(zones)),
            *(Domain(f"r{i}", "rack", parent=f"z{i % zones}") for i in range(racks)),
            *(Domain(f"f{i}", "feed", "power") for i in range(2)),
        ],
        [
            *(
                Attachment(name, f"r{dice.randrange(racks)}")
                for name in names
                if dice.random() < 0.93  # noqa: PLR2004 - now and then a host stands in no rack
            ),
            *(Attachment(name, f"f{dice.randrange(2)}", "power") for name in names),
        ],
    )


def _partial_topology(dice: random.Random, count: int) -> Topology:
    parents = {f"r{i}": dice.choice(("z0", "z1", None)) for i in range(3)}
    return Topology.build(
        {"location": ("zone", "rack"), "power": ("feed",)},
        [
            *(Domain(zone, "zone") for zone in ("z0", "z1")),
            *(Domain(rack, "rack", parent=zone) for rack, zone in parents.items()),
            *(Domain(f"f{i}", "feed", "power") for i in range(2)),
        ],
        [
            Attachment(f"h{i}", domain, tree)
            for i in range(count)
            for tree, places in (
                ("location", (*parents, *parents, "z0", "z1", None)),
                ("power", ("f0", "f1", None)),
            )
            if (domain := dice.choice(places)) is not None
        ],
    )


def _random_host(dice: random.Random, name: str) -> Host:
    capacity = {"MEMORY_MB": dice.choice((4, 8)), "VCPU": dice.choice((2, 4, 6))}
    occupants = []
    if dice.random() < 0.4:  # noqa: PLR2004 - some hosts are in use
        project = dice.choice((PROJECT, OTHER_PROJECT))
        tags = frozenset({"noisy"}) if dice.random() < 0.5 else frozenset[str]()  # noqa: PLR2004
        occupants.append(Occupant(f"c-{name}", project, tags))
    return Host(
        name,
        capacity,
        {key: dice.randint(0, value) // 2 for key, value in capacity.items()},
        traits=frozenset(t for t in ("CUSTOM_A", "CUSTOM_B") if dice.random() < 0.6),  # noqa: PLR2004
        aggregates=frozenset(a for a in ("agg-1", "agg-2") if dice.random() < 0.5),  # noqa: PLR2004
        occupants=tuple(occupants),
        step_size=dice.choice((1, 1, 1, 1, 1, 2)),
    )


def _random_request(
    dice: random.Random,
    fleet: Terrain,
    members: int,
    policies: int,
    fixed: float,
    known: Mapping[str, RandomParameters],
) -> EnsembleRequest:
    names: list[MemberName] = []
    roles = []
    for role in ("a", "b", "c")[: dice.randint(1, 3)]:
        count = dice.randint(1, 3)
        names += [MemberName(role, i) for i in range(count)]
        roles.append(_random_role(dice, role))
    names = names[:members]
    roles = [role for role in roles if any(name.role == role.name for name in names)]
    stand = {name: dice.choice(fleet.uuids) for name in names if dice.random() < fixed}
    count = dice.randint(0, policies)
    return EnsembleRequest(
        project_id=PROJECT,
        roles=tuple(roles),
        members=tuple(names),
        policies=tuple(random_policy(dice, f"p{i}", roles, known) for i in range(count)),
        period=Period(0),
        objective=dice.choice(tuple(Objective)),
        fixed=MappingProxyType(stand),
    )


def _random_role(dice: random.Random, name: str) -> Role:
    resources = {"VCPU": dice.choice((1, 1, 2, 3))}
    if dice.random() < 0.4:  # noqa: PLR2004 - some ask for two classes
        resources["MEMORY_MB"] = dice.choice((1, 2, 4))
    odd = dice.random()
    trait = frozenset({"CUSTOM_A"})
    return Role(
        name,
        MappingProxyType(dict(sorted(resources.items()))),
        required=(trait,) if odd < 0.1 else (),  # noqa: PLR2004
        forbidden=trait if 0.1 < odd < 0.2 else frozenset(),  # noqa: PLR2004
        member_of=(frozenset({"agg-1"}),) if 0.2 < odd < 0.25 else (),  # noqa: PLR2004
        tags=frozenset({"t"}) if dice.random() < 0.5 else frozenset(),  # noqa: PLR2004
    )


def random_policy(
    dice: random.Random, name: str, roles: list[Role], known: Mapping[str, RandomParameters]
) -> PolicyStatement:
    """A policy of a type of `known` over some of the roles."""
    words = [*(role.name for role in roles), "*", "tag:t", f"{roles[0].name}[0]"]
    chosen = dice.sample(words, k=min(len(words), dice.choice((1, 1, 2))))
    type_ = dice.choice(sorted(known.keys() - {ISOLATING}) or sorted(known))
    zipped = len(chosen) > 1 and dice.random() < 0.4  # noqa: PLR2004
    weight = dice.choice((None, None, 1, 2, 5))
    parameters = dict(known[type_](dice))
    if parameters.get("between") == "roles" and parameters.get("level") == "rack" and roles[1:]:
        # Without another throw: what a seed gives otherwise stays the same.
        parameters["between"] = [[roles[0].name], [role.name for role in roles[1:]]]
    if type_ == "proximity" and parameters.get("level") == "rack" and roles[1:]:
        parameters["between"] = [[roles[0].name], [role.name for role in roles[1:]]]
        chosen, zipped = [role.name for role in roles], False
    if type_ == EXCLUDING and name == "p1":
        # The same said otherwise.
        type_, parameters = ISOLATING, _isolating(parameters)
    return PolicyStatement(
        name=name,
        type=type_,
        members=tuple(Selector.parse(text) for text in chosen),
        zip=zipped,
        weight=weight,
        parameters=MappingProxyType(parameters),
    )


def _excluding(dice: random.Random) -> dict[str, object]:
    return {
        **random_level(dice),
        "against": dice.choice(("others", "other_projects", "tag:noisy")),
    }


def _isolating(excluding: Mapping[str, object]) -> dict[str, object]:
    """What `isolate` says instead of `exclusive`."""
    return {("at" if name == "level" else name): one for name, one in excluding.items()}


def random_level(dice: random.Random) -> dict[str, object]:
    """The parameters `level` and `tree` of a policy that has them."""
    level = dice.choice((*LEVELS, "feed"))
    return {"level": level, "tree": "power"} if level == "feed" else {"level": level}


def _spread(dice: random.Random) -> dict[str, object]:
    found: dict[str, object] = random_level(dice)
    which = dice.choice(("min", "skew", "both"))
    if which != "skew":
        found["min_domains"] = dice.randint(1, 3)
    if which != "min":
        found["max_skew"] = dice.randint(0, 2)
        # The odd value without another throw: what a seed gives otherwise stays the same.
        found |= {"fenced_domains": "count"} if found.get("min_domains") == 1 else {}
    return found


def _named(dice: random.Random) -> dict[str, object]:
    found: dict[str, object] = {}
    if dice.random() < 0.7:  # noqa: PLR2004
        found["domains"] = dice.sample(["r0", "r1", "z0", "h0", "f1", "agg-1", "agg-2"], k=2)
    if not found or dice.random() < 0.3:  # noqa: PLR2004
        found["traits"] = dice.sample(["CUSTOM_A", "CUSTOM_B"], k=dice.randint(1, 2))
    return found


PARAMETERS: Mapping[str, RandomParameters] = MappingProxyType(
    {
        "affinity": random_level,
        "anti-affinity": lambda dice: {
            **random_level(dice),
            "max_per_domain": dice.choice((1, 1, 2)),
        },
        "spread": _spread,
        "proximity": lambda dice: dice.choice(
            (random_level(dice), {"max_distance": dice.randint(0, 3)})
        ),
        "separation": lambda dice: {
            **dice.choice((random_level(dice), {"min_distance": dice.randint(1, 3)})),
            "between": dice.choice(("members", "roles")),
        },
        "survive": lambda dice: {
            **random_level(dice),
            "keep": dice.randint(1, 2),
            "lose": dice.choice((1, 1, 2)),
        },
        "exclusive": _excluding,
        "isolate": lambda dice: _isolating(_excluding(dice)),
        "fence": _named,
        "ban": _named,
    }
)
