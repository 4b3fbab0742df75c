"""Members of every kind under the policies about places, against a judge that has no engine.

The judge reads the fleet as it is written down here: where a server is that offers slices, what a
pool lends, who is a guest, what another ensemble keeps to itself. It asks nothing of a snapshot, a
terrain or a policy.
"""

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pytest

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.ensembles import Ensemble, Member, MemberKind, PolicyStatement, Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND, Period
from moorage.domain.placement import Occupant, Place
from moorage.domain.providers import SHARING_TRAIT, Inventory, ResourceProvider
from moorage.domain.requests import EnsembleRequest
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.joint.build import BuiltProblem, build
from moorage.engine.joint.instance import dumps_request, loads_request
from moorage.engine.joint.problem import Verdict
from moorage.engine.joint.proved_solve import solve
from moorage.engine.joint.verify import places, verify
from moorage.engine.state.snapshot import ProviderState, Snapshot
from moorage.solver.cpsat import CpSat
from moorage.testing.problems import OTHER_PROJECT, PROJECT, statement
from moorage.usecases.decide.closed_hosts import closed_hosts

LIMIT = 20 * SECOND
TRAITS = ("CUSTOM_OLD", "CUSTOM_FAST")
AGGREGATES = ("agg-1", "agg-2")
KEEPER = "keeper"
RACKS = {"r1": "z1", "r2": "z1", "r3": "z2"}


@dataclass(frozen=True)
class Thing:
    """A provider of the fleet as it is written down."""

    name: str
    has: Mapping[str, int]
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    rack: str | None = None
    below: str | None = None
    """The host that it is a device of."""
    lends: bool = False
    on: str | None = None
    """What a server offers: the host on which the server is, empty if it is on none."""
    guests: Mapping[str, str] = field(default_factory=dict)
    """Consumer -> project, of one unit of each class."""
    disabled: bool = False
    away: bool = False
    """Whether it is planned to be away."""


@dataclass(frozen=True)
class Keeper:
    """Another ensemble of one member, which keeps its domain to itself."""

    provider: str
    project: str
    against: str
    level: str

    def forbids(self, role: Role) -> bool:
        if self.against == "other_projects":
            return self.project != PROJECT
        return self.against == "others" or self.against.removeprefix("tag:") in role.tags


@dataclass(frozen=True)
class Option:
    """One way to place a member: its location, and who gives what."""

    location: str
    row: str
    """The host, pool or offering server on which it is."""
    takes: tuple[tuple[str, str, int], ...]
    kind: str


class Judge:
    """All placements of a request, tried one by one on the fleet as it is written down."""

    def __init__(
        self, things: Sequence[Thing], request: EnsembleRequest, keeper: Keeper | None
    ) -> None:
        self.things = {one.name: one for one in things}
        self.request, self.keeper = request, keeper
        self.options = {role.name: tuple(self._of_role(role)) for role in request.roles}

    def location(self, name: str) -> str | None:
        one = self.things[name]
        return (one.on or None) if one.on is not None else one.below or one.name

    def placeable(self) -> bool:
        members = self.request.members
        every = itertools.product(*(self.options[one.role] for one in members))
        return any(self.accepts(dict(zip(members, some, strict=True))) for some in every)

    def accepts(self, placed: Mapping[MemberName, Option]) -> bool:
        taken: Counter[tuple[str, str]] = Counter()
        for option in placed.values():
            for giver, name, amount in option.takes:
                taken[giver, name] += amount
        return all(n <= self._free(*key) for key, n in taken.items()) and all(
            self._holds(one, placed) for one in self.request.policies if one.required
        )

    def _free(self, giver: str, name: str) -> int:
        one = self.things[giver]
        if self.things[one.below or giver].away:
            return 0
        kept = self.keeper is not None and self.keeper.provider == giver
        return one.has[name] - len(one.guests) - kept

    # --- what may give what ------------------------------------------------------------------

    def _of_role(self, role: Role) -> Iterator[Option]:
        for choice in role.choices:
            for one in self._of_choice(choice):
                host = self.things[one.location]
                if not (host.disabled or host.away or self._kept_from(role, one)):
                    yield one

    def _kept_from(self, role: Role, one: Option) -> bool:
        """Whether the keeper's domain has the member, or a provider that it takes from."""
        keeper = self.keeper
        if keeper is None or not keeper.forbids(role):
            return False
        used = {one.row, *(giver for giver, _, _ in one.takes)}
        kept = self._domain_of(keeper.provider, keeper.level)
        return kept is not None and kept in {self._domain_of(name, keeper.level) for name in used}

    def _domain_of(self, name: str, level: str) -> str | None:
        location = self.location(name)
        row = self.things[name].below or name
        return None if location is None else self._domain(location, row, level)

    def _of_choice(self, role: Role) -> Iterator[Option]:
        for one in self.things.values():
            if role.is_slice:
                if one.on and self._right(role, [one]) and role.resources.keys() <= one.has.keys():
                    takes = tuple((one.name, n, amount) for n, amount in role.resources.items())
                    yield Option(one.on, one.name, takes, role.kind)
            elif role.of_one_provider:
                whole = one.on is None and role.resources.keys() <= one.has.keys()
                computes = "VCPU" in one.has and role.kind == MemberKind.VOLUME
                if whole and not computes and self._right(role, [one]):
                    at = one.below or one.name
                    takes = tuple((one.name, n, amount) for n, amount in role.resources.items())
                    yield Option(at, at, takes, role.kind)
            elif one.on is None and one.below is None and not one.lends:
                yield from self._of_host(role, one)

    def _of_host(self, role: Role, host: Thing) -> Iterator[Option]:
        reach = [
            one
            for one in self.things.values()
            if (one.on is None and host.name in {one.name, one.below})
            or (one.lends and one.aggregates & host.aggregates)
        ]
        wants = list(role.resources.items())
        for givers in itertools.product(reach, repeat=len(wants)):
            takes = tuple((g.name, *want) for g, want in zip(givers, wants, strict=True))
            if all(name in self.things[g].has for g, name, _ in takes) and self._right(
                role, givers
            ):
                yield Option(host.name, host.name, takes, role.kind)

    @staticmethod
    def _right(role: Role, givers: Sequence[Thing]) -> bool:
        """The members' own traits are those of who gives the resources."""
        traits = frozenset().union(*(one.traits for one in givers))
        return all(traits & any_of for any_of in role.required) and not traits & role.forbidden

    # --- what the policies mean --------------------------------------------------------------

    def _holds(self, policy: PolicyStatement, placed: Mapping[MemberName, Option]) -> bool:
        names = [str(one) for one in policy.members]
        edge = [option for m, option in placed.items() if "*" in names or m.role in names]
        told = policy.parameters
        if policy.type in {"fence", "ban"}:
            domains, traits = (_words(told.get(name)) for name in ("domains", "traits"))
            return all(self._inside(one, policy.type, domains, traits) for one in edge)
        level = str(told.get("level", "host"))
        at = [self._domain(one.location, one.row, level) for one in edge]
        if policy.type == "exclusive":
            own = [one for one in at if one is not None]
            alone = not self._foreign(level) & set(own)
            return alone and (level == "server" or len(own) == len(at))
        if None in at:
            return False
        counts = Counter(at)
        if policy.type == "affinity":
            return len(counts) <= 1
        if policy.type == "anti-affinity":
            return max(counts.values(), default=0) <= int(str(told.get("max_per_domain", 1)))
        assert policy.type == "spread"
        return len(counts) >= int(str(told["min_domains"]))

    def _inside(self, one: Option, kind: str, names: set[str], traits: set[str]) -> bool:
        has, named = self.things[one.location].traits, self._named(one, names)
        if kind == "ban":
            return not named and not has & traits
        return (named or not names) and has >= traits

    def _named(self, one: Option, names: Iterable[str]) -> bool:
        host = self.things[one.location]
        rack = host.rack or ""
        return bool(
            {one.row, one.location, rack, RACKS.get(rack, ""), *host.aggregates} & set(names)
        )

    def _domain(self, location: str, row: str, level: str) -> str | None:
        rack = self.things[location].rack
        if level == "server":
            return row if self.things[row].on is not None else None
        if level == "host":
            return location
        return rack if level == "rack" or rack is None else RACKS[rack]

    def _foreign(self, level: str) -> set[str | None]:
        """Domains with a consumer of another project."""
        found: set[str | None] = set()
        for one in self.things.values():
            kept = self.keeper is not None and self.keeper.provider == one.name
            keepers = [self.keeper.project] if self.keeper is not None and kept else []
            if OTHER_PROJECT in {*one.guests.values(), *keepers}:
                found.add(self._domain_of(one.name, level))
        return found - {None}


def _words(value: object) -> set[str]:
    return set(value) if isinstance(value, list) else set()


# --- drawn from a seed -------------------------------------------------------------------------


def draw(seed: int) -> tuple[list[Thing], EnsembleRequest, Keeper | None]:
    dice = random.Random(seed)
    hosts = [
        Thing(
            f"h{n}",
            {"VCPU": dice.randint(2, 4)} if n or dice.random() < 0.7 else {"CUSTOM_GOLD": 1},
            _some(dice, TRAITS),
            _some(dice, AGGREGATES),
            dice.choice((*RACKS, None)),
            disabled=dice.random() < 0.08,
            away=dice.random() < 0.08,
        )
        for n in range(dice.randint(2, 4))
    ]
    things = [replace(one, guests=_guests(dice, one.name, free="VCPU" in one.has)) for one in hosts]
    things += [
        Thing(f"{one.name}-nic", {"CUSTOM_BW": 2}, _some(dice, TRAITS), below=one.name)
        for one in hosts
        if dice.random() < 0.6
    ]
    for n in range(dice.randint(1, 2)):
        pool = f"p{n}"
        guests = _guests(dice, pool, free=True)
        shared = _some(dice, AGGREGATES)
        traits, rack = _some(dice, TRAITS), dice.choice((*RACKS, None))
        things.append(Thing(pool, {"DISK_GB": 3}, traits, shared, rack, lends=True, guests=guests))
    for n in range(dice.randint(1, 3)):
        host = dice.choice(hosts).name if dice.random() < 0.9 else ""
        guests = _guests(dice, f"s{n}", free=True)
        things.append(
            Thing(
                f"s{n}",
                {"CUSTOM_SES": 3},
                _some(dice, TRAITS),
                _some(dice, AGGREGATES) if dice.random() < 0.3 else frozenset(),
                on=host,
                guests=guests,
            )
        )
    roles = [_role(dice, name) for name in ("a", "b")[: dice.randint(1, 2)]]
    members = tuple(MemberName(role.name, i) for role in roles for i in range(dice.randint(1, 2)))
    policies = tuple(_policy(dice, f"q{i}", roles) for i in range(dice.choice((1, 1, 2))))
    keeper = None
    if dice.random() < 0.5:
        pools = [one for one in things if one.lends]
        keeper = Keeper(
            dice.choice([*things, *pools * 2]).name,
            dice.choice((PROJECT, OTHER_PROJECT, OTHER_PROJECT)),
            dice.choice(("other_projects", "other_projects", "others", "tag:t")),
            dice.choice(("host", "host", "rack", "server")),
        )
    request = EnsembleRequest(
        project_id=PROJECT,
        roles=tuple(roles),
        members=members,
        policies=policies,
        period=Period(0),
    )
    return things, request, keeper


def _some(dice: random.Random, names: Sequence[str]) -> frozenset[str]:
    return frozenset(one for one in names if dice.random() < 0.5)


def _guests(dice: random.Random, name: str, *, free: bool) -> dict[str, str]:
    if not free or dice.random() < 0.6:
        return {}
    return {f"guest-{name}": dice.choice((PROJECT, OTHER_PROJECT))}


_OF_KIND: Mapping[str, tuple[Mapping[str, int], ...]] = {
    MemberKind.SERVER: ({"VCPU": 1}, {"VCPU": 1, "DISK_GB": 1}, {"VCPU": 1, "DISK_GB": 1}),
    MemberKind.SLICE: ({"CUSTOM_SES": 1}, {"CUSTOM_SES": 2}),
    MemberKind.VOLUME: ({"DISK_GB": 1}, {"DISK_GB": 2}),
    MemberKind.PORT: ({"CUSTOM_BW": 1},),
    MemberKind.BAREMETAL: ({"CUSTOM_GOLD": 1},),
}


def _role(dice: random.Random, name: str) -> Role:
    first = _choice(dice, name)
    tags = _some(dice, ("t",))
    if dice.random() < 0.25:
        return replace(first, tags=tags, alternatives=(_choice(dice, name),))
    return replace(first, tags=tags)


def _choice(dice: random.Random, name: str) -> Role:
    kind = dice.choice((*_OF_KIND, *[MemberKind.SLICE, MemberKind.SERVER] * 2))
    odd = dice.random()
    trait = frozenset({dice.choice(TRAITS)})
    return Role(
        name,
        MappingProxyType(dict(dice.choice(_OF_KIND[kind]))),
        kind=kind,
        required=(trait,) if odd < 0.1 else (),
        forbidden=trait if 0.1 < odd < 0.2 else frozenset(),
    )


def _policy(dice: random.Random, name: str, roles: Sequence[Role]) -> PolicyStatement:
    over = dice.choice((*(role.name for role in roles), "*"))
    kind = dice.choice(("fence", "ban", "ban", "affinity", "anti-affinity", "spread", "exclusive"))
    level = dice.choice(("host", "rack", "zone", "server"))
    told: dict[str, Any] = {"level": level}
    if kind in {"fence", "ban"}:
        named = ["h0", "h1", "p0", "s0", "r1", "r2", "z1", *AGGREGATES]
        some = dice.random()
        told = {"domains": dice.sample(named, k=dice.randint(1, 3))} if some < 0.6 else {}
        if some > 0.5:
            told["traits"] = dice.sample(TRAITS, k=dice.choice((1, 1, 2)))
    elif kind == "spread":
        told["min_domains"] = dice.randint(1, 2)
    elif kind == "anti-affinity":
        told["max_per_domain"] = dice.randint(1, 2)
    return statement(name, kind, over, **told)


def fleet(things: Sequence[Thing], keeper: Keeper | None) -> Snapshot:
    """The fleet as a ledger would show it; a thing's UUID is its name."""
    states = []
    vms = {f"vm-{one.name}": one.on for one in things if one.on}
    away = {one.name for one in things if one.away}
    for one in things:
        marks = {SHARING_TRAIT: one.lends, "COMPUTE_STATUS_DISABLED": one.disabled}
        kept = keeper is not None and keeper.provider == one.name
        keepers = {KEEPER: keeper.project} if keeper is not None and kept else {}
        provider = ResourceProvider(
            *(one.name, one.name, one.below, one.below or one.name),
            inventories=tuple(Inventory(name, n) for name, n in one.has.items()),
            traits=one.traits | {trait for trait, has in marks.items() if has},
            aggregates=one.aggregates,
            offered_by=None if one.on is None else f"vm-{one.name}",
            open_to=None if one.on is None else frozenset({PROJECT}),
            owner=PROJECT,
        )
        there = {vm: PROJECT for vm, host in vms.items() if host == one.name}
        # The servers themselves take nothing that matters here.
        bookings = [
            *(
                _booking(guest, one.name, dict.fromkeys(one.has, 1))
                for guest in (*one.guests, *keepers)
            ),
            *(_booking(vm, one.name, {"CUSTOM_NOTHING": 1}) for vm in there),
        ]
        every = {**one.guests, **there, **keepers}
        occupants = tuple(Occupant(*each) for each in every.items())
        down = (Period(0),) if (one.below or one.name) in away else ()
        states.append(ProviderState(provider, tuple(bookings), occupants, down))
    topology = Topology.build(
        {"location": ("zone", "rack")},
        [
            *(Domain(zone, "zone") for zone in ("z1", "z2")),
            *(Domain(rack, "rack", parent=zone) for rack, zone in RACKS.items()),
        ],
        [Attachment(one.name, one.rack) for one in things if one.rack],
    )
    return Snapshot.empty().with_states(states, topology=topology, now=0)


def _booking(consumer: str, provider: str, amounts: Mapping[str, int]) -> Booking:
    return Booking(consumer, provider, amounts, Period(0), BookingState.ALLOCATED)


def option(judge: Judge, place: Place, role: Role) -> Option:
    """The place that the engine gave, as the judge's words have it."""
    kind = role.choices[place.choice].kind
    takes = tuple((g, n, a) for g, amounts in place.allocations.items() for n, a in amounts.items())
    location = judge.location(place.host)
    assert location is not None
    return Option(location, place.host, takes, kind)


def check(seed: int) -> str:
    things, request, keeper = draw(seed)
    judge = Judge(things, request, keeper)
    snapshot = fleet(things, keeper)
    others = [] if keeper is None else [_ensemble(keeper)]
    newcomer = Ensemble(
        "new",
        PROJECT,
        "ann",
        "new",
        request.roles,
        tuple(Member(m, str(m)) for m in request.members),
    )
    closed = closed_hosts(others, snapshot, newcomer, request.period)
    built = build(request, snapshot, closed=closed)
    found = solve(CpSat(), built.problem, time_limit=LIMIT, seed=0)
    assert found.verdict is not Verdict.UNKNOWN, seed
    assert (found.verdict is Verdict.FEASIBLE) == judge.placeable(), seed
    if found.hosts is None:
        return "none"
    verify(built, found.hosts)
    for one in (built, loads_request(dumps_request(built))):
        _check_places(judge, one, found.hosts.tolist(), seed)
    return "placed"


def _ensemble(keeper: Keeper) -> Ensemble:
    alone = statement("alone", "exclusive", "k", level=keeper.level, against=keeper.against)
    role = Role("k", MappingProxyType({"ANY": 1}))
    member = Member(MemberName("k", 0), KEEPER)
    return Ensemble("other", keeper.project, "bob", "kept", (role,), (member,), (alone,))


def _check_places(judge: Judge, built: BuiltProblem, rows: list[int], seed: int) -> None:
    given = places(built, rows)
    roles = {role.name: role for role in built.request.roles}
    placed = {m: option(judge, place, roles[m.role]) for m, place in given.items()}
    for member, one in placed.items():
        right = {(each.location, frozenset(each.takes)) for each in judge.options[member.role]}
        assert (one.location, frozenset(one.takes)) in right, (seed, member, one)
    assert judge.accepts(placed), (seed, placed)


NIGHTLY = [
    pytest.param(range(first, first + 1000), marks=pytest.mark.nightly)
    for first in range(400, 8_400, 1000)
]


@pytest.mark.parametrize("seeds", [range(400), *NIGHTLY], ids=str)
def test_every_kind_is_judged_by_where_it_is(seeds: range) -> None:
    counts = Counter(check(seed) for seed in seeds)
    assert min(counts["none"], counts["placed"]) > len(seeds) / 5, counts
