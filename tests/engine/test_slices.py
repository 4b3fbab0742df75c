"""Slices: placed on servers that offer them, and judged where the server is."""

from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.bookings import Booking, BookingState
from moorage.domain.ensembles import MemberKind, PolicyStatement, Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND, Period
from moorage.domain.placement import Occupant
from moorage.domain.providers import Inventory, ResourceProvider
from moorage.domain.requests import EnsembleRequest
from moorage.domain.shares import Share
from moorage.domain.topology import DEFAULT_TREE, HOST, SERVER, Attachment, Domain, Level, Topology
from moorage.engine.explain.element_facts import policy_rejections
from moorage.engine.joint.build import BuiltProblem, build
from moorage.engine.joint.instance import dumps_request, loads_request
from moorage.engine.joint.terrain import cut_terrain
from moorage.engine.joint.verify import places
from moorage.engine.state.snapshot import ProviderState, Snapshot
from moorage.solver.cpsat import CpSat
from moorage.testing.problems import OTHER_PROJECT, PROJECT, random_built, statement

RACK = Level(DEFAULT_TREE, "rack")
SLICE = Role("s", {"CUSTOM_SESSION": 1}, kind=MemberKind.SLICE)


def state(
    name: str,
    *consumers: str,
    offered_by: str | None = None,
    resource: str = "VCPU",
    total: int = 8,
    open_to: frozenset[str] | None = frozenset({PROJECT}),
) -> ProviderState:
    """A host, or what a server offers. A guest is of another project."""
    if offered_by is not None:
        resource = "CUSTOM_SESSION"
    provider = ResourceProvider(
        *(name, name, None, name),
        inventories=(Inventory(resource, total),),
        offered_by=offered_by,
        open_to=open_to,
        owner=OTHER_PROJECT if (offered_by or "").startswith("guest") else PROJECT,
    )
    bookings = tuple(
        Booking(one, name, {resource: 1}, Period(0), BookingState.ALLOCATED) for one in consumers
    )
    projects = {one: OTHER_PROJECT if one.startswith("guest") else PROJECT for one in consumers}
    occupants = tuple(Occupant(*one) for one in projects.items())
    return ProviderState(provider, bookings, occupants)


def fleet(*states: ProviderState) -> Snapshot:
    """Hosts h1 and h2 in rack r1, h3 in r2, unless others are given."""
    topology = Topology.build(
        {"location": ("rack",)},
        [Domain("r1", "rack"), Domain("r2", "rack")],
        [Attachment("h1", "r1"), Attachment("h2", "r1"), Attachment("h3", "r2")],
    )
    hosts = {one: state(one) for one in ("h1", "h2", "h3")}
    hosts |= {one.provider.name: one for one in states}
    return Snapshot.empty().with_states(hosts.values(), topology=topology, now=0)


def request(
    *roles: Role, count: int = 1, policies: Iterable[PolicyStatement] = (), fixed: str = ""
) -> EnsembleRequest:
    members = tuple(MemberName(role.name, i) for role in roles for i in range(count))
    return EnsembleRequest(
        project_id=PROJECT,
        roles=roles,
        members=members,
        policies=tuple(policies),
        period=Period(0),
        fixed=MappingProxyType({members[0]: fixed} if fixed else {}),
    )


def allowed(built: BuiltProblem) -> set[str]:
    return {built.terrain.names[row] for row in np.flatnonzero(built.problem.allowed[0])}


def placed(built: BuiltProblem) -> set[str]:
    found = CpSat().solve(built.problem, time_limit=SECOND, seed=0)
    return set() if found.hosts is None else {p.host for p in places(built, found.hosts).values()}


def test_servers_are_rows_only_for_slices() -> None:
    found = fleet(state("h1", "vm"), state("offer", offered_by="vm"))
    assert cut_terrain(found, request(Role("web", {"VCPU": 1}))).names == ("h1", "h2", "h3")
    sliced = cut_terrain(found, request(SLICE))
    assert sliced.names == ("h1", "h2", "h3", "offer")
    assert sliced.offering.tolist() == [False, False, False, True]
    standing = cut_terrain(found, request(Role("web", {"VCPU": 1}), fixed="offer"))
    assert standing.names == sliced.names


def test_each_kind_has_its_own_places() -> None:
    offer = state("offer", offered_by="vm")
    inventories = (*offer.provider.inventories, Inventory("VCPU", 8))
    both = replace(offer, provider=replace(offer.provider, inventories=inventories))
    found = fleet(state("h1", "vm"), both, state("h2", resource="CUSTOM_SESSION"))
    assert allowed(build(request(SLICE), found)) == {"offer"}
    assert allowed(build(request(Role("web", {"VCPU": 1})), found)) == {"h1", "h3"}


def test_every_policy_sees_where_the_server_is_and_follows_it() -> None:
    states = [state("h1", "vm1"), state("h3", "vm2")]
    offers = [state("o1", offered_by="vm1"), state("o2", offered_by="vm2")]
    racks = [statement("racks", "spread", "s", level="rack", min_domains=2)]
    asked = request(SLICE, count=2, policies=racks)
    found = fleet(*states, *offers)
    assert placed(build(asked, found)) == {"o1", "o2"}
    moved = found.with_states([state("h3"), state("h2", "vm2")])
    assert placed(build(asked, moved)) == set()
    terrain = cut_terrain(moved, asked)
    domains = {level: terrain.domains(level)[-2:].tolist() for level in (RACK, Level("", HOST))}
    assert domains == {RACK: [0, 0], Level("", HOST): [0, 1]}
    assert terrain.domain_name(Level("", HOST), 1) == "h2"


def test_a_slice_that_stands_is_judged_where_its_server_has_gone() -> None:
    fenced = [statement("fence", "fence", "s", domains=["r1"])]
    asked = request(SLICE, count=2, policies=fenced, fixed="o1")
    found = fleet(state("h1", "vm1"), state("o1", offered_by="vm1"))
    assert placed(build(asked, found)) == {"o1"}
    moved = found.with_states([state("h1"), state("h3", "vm1")])
    assert set(build(replace(asked, restated=frozenset({"fence"})), moved).standing) == set()
    assert "fence" in build(asked, moved).standing


def test_fences_and_bans_are_about_the_host_of_the_server() -> None:
    """By its traits, aggregates and name; a server's provider has its own name, and no more."""
    h1, h3, offer = state("h1", "vm1"), state("h3", "vm2"), state("o1", offered_by="vm1")
    old = replace(h1.provider, traits=frozenset({"OLD"}), aggregates=frozenset({"agg"}))
    odd = replace(offer.provider, traits=frozenset({"NEW"}), aggregates=frozenset({"own"}))
    found = fleet(
        replace(h1, provider=old), h3, replace(offer, provider=odd), state("o2", offered_by="vm2")
    )
    every: tuple[tuple[dict[str, Any], str], ...] = (
        ({"traits": ["OLD"]}, "o1"),
        ({"traits": ["NEW"]}, ""),
        ({"domains": ["agg"]}, "o1"),
        ({"domains": ["own"]}, ""),
        ({"domains": ["h1"]}, "o1"),
        ({"domains": ["o1"]}, "o1"),
        ({"domains": ["r1"], "traits": ["OLD"]}, "o1"),
        ({"domains": ["r2"], "traits": ["OLD"]}, ""),
    )
    for named, there in every:
        fence = statement("fence", "fence", "s", **named)
        assert placed(build(request(SLICE, policies=[fence]), found)) == {there} - {""}, named
        # A ban is of any one of what it names.
        rest = {"o1", "o2"} - {there} if len(named) == 1 else set()
        asked = request(SLICE, count=8 * len(rest) or 1, policies=[replace(fence, type="ban")])
        if rest or there == "":
            assert placed(build(asked, found)) == rest, named


def test_a_slice_of_a_slice_is_on_the_same_host() -> None:
    found = fleet(
        state("h3", "vm"), state("o1", "inner", offered_by="vm"), state("o2", offered_by="inner")
    )
    terrain = cut_terrain(found, request(SLICE))
    assert terrain.domains(Level("", HOST)).tolist() == [0, 1, 2, 2, 2]
    assert terrain.domains(Level("", SERVER)).tolist() == [-1, -1, -1, 3, 4]
    assert terrain.domains(RACK).tolist() == [0, 0, 1, 1, 1]


def test_servers_without_a_place_are_told_and_not_used() -> None:
    built = build(request(SLICE), fleet(state("offer", offered_by="vm")))
    assert allowed(built) == set()
    assert built.considered == 1
    assert built.rejected == {"no-location": 1}


@given(seed=st.integers(0, 10**6))
def test_no_reason_rejects_more_than_are_considered(seed: int) -> None:
    built = random_built(seed, policies=4, servers=3)
    found = {**built.rejected, **policy_rejections(built)}
    assert max(found.values(), default=0) <= built.considered


def test_a_role_may_name_its_server() -> None:
    """By the server's id, or by that of its provider."""
    offers = [state(f"server:{one}", offered_by=one) for one in ("vm1", "vm2")]
    found = fleet(state("h1", "vm1", "vm2"), *offers)
    for name in ("server:vm2", "vm2"):
        built = build(request(replace(SLICE, on_server=name)), found)
        assert allowed(built) == {"server:vm2"}, name
        assert built.rejected == {"on-server": 1}


def test_a_foreign_slice_keeps_exclusive_members_from_its_host() -> None:
    alone = [statement("alone", "exclusive", "*")]
    found = fleet(state("h1", "vm"), state("offer", "guest", offered_by="vm"))
    web = Role("web", {"VCPU": 1})
    assert placed(build(request(web, count=3, policies=alone), found)) == {"h2", "h3"}
    # A snapshot that is kept in mind knows of who has come since.
    empty = found.with_states([state("offer", offered_by="vm")])
    assert placed(build(request(web, count=3, policies=alone), empty)) == {"h1", "h2", "h3"}


def test_a_foreign_server_keeps_exclusive_slices_from_its_host() -> None:
    offers = [state("o1", offered_by="vm1"), state("o2", "guest", offered_by="vm2")]
    mine = [state("h1", "vm1"), state("h2", "vm2")]
    host = [statement("alone", "exclusive", "*")]
    server = [statement("alone", "exclusive", "*", level="server")]
    found = fleet(*mine, *offers)
    assert placed(build(request(SLICE, policies=host), found)) == {"o1"}
    assert placed(build(request(SLICE, policies=server), found)) == {"o1"}
    beside = found.with_states([state("h1", "vm1", "guest2")])
    assert placed(build(request(SLICE, policies=host), beside)) == set()
    assert placed(build(request(SLICE, policies=server), beside)) == {"o1"}


def test_servers_of_others_are_as_if_there_were_none() -> None:
    theirs = state("offer", offered_by="guest", open_to=frozenset({OTHER_PROJECT}))
    found = fleet(state("h1", "guest"), theirs)
    built = build(request(SLICE), found)
    assert (built.considered, built.rejected, allowed(built)) == (0, {}, set())
    standing = build(request(SLICE, fixed="offer"), found)
    assert standing.terrain.names[-1] == "offer"


def test_servers_are_there_for_those_they_are_shared_with() -> None:
    theirs = state("offer", offered_by="guest", open_to=frozenset({OTHER_PROJECT}))
    found = fleet(state("h1", "guest"), theirs)
    for open_to in (frozenset({OTHER_PROJECT, PROJECT}), None):
        shared = found.with_states([state("offer", offered_by="guest", open_to=open_to)])
        for named in ({"servers_of": frozenset({OTHER_PROJECT})}, {"on_server": "offer"}):
            role = replace(SLICE, **named)
            assert placed(build(request(role), shared)) == {"offer"}, named
            assert allowed(build(request(role), found)) == set(), named
        built = build(request(SLICE), shared)
        assert (allowed(built), built.rejected) == (set(), {"unnamed-project": 1})


def test_what_an_operator_offers_is_named_as_such() -> None:
    theirs = state("offer", offered_by="guest", open_to=None)
    vouched = replace(theirs, provider=replace(theirs.provider, by_operator=True))
    role = replace(SLICE, servers_of=frozenset({"operators"}))
    for offer, there in ((theirs, set[str]()), (vouched, {"offer"})):
        built = build(request(role), fleet(state("h1", "guest"), offer))
        for one in (built, loads_request(dumps_request(built))):
            assert allowed(one) == there
    assert allowed(build(request(SLICE), fleet(state("h1", "guest"), vouched))) == set()


def test_standing_where_one_may_not_be_any_more_opens_nothing() -> None:
    theirs = state("offer", offered_by="guest", open_to=frozenset({OTHER_PROJECT}))
    found = fleet(state("h1", "guest"), theirs)
    built = build(request(SLICE, count=2, fixed="offer"), found)
    assert (built.considered, allowed(built)) == (0, set())


def test_a_role_of_another_project_has_its_servers() -> None:
    offers = [
        state("mine", offered_by="vm"),
        state("theirs", offered_by="guest", open_to=frozenset({OTHER_PROJECT})),
    ]
    found = fleet(state("h1", "vm", "guest"), *offers)
    other = replace(SLICE, name="t", share=Share("", OTHER_PROJECT))
    either = replace(other, name="u", alternatives=(Role("u", {"CUSTOM_NONE": 1}), SLICE))
    first = build(request(SLICE, other, either), found)
    for built in (first, loads_request(dumps_request(first))):
        names, roles = built.terrain.names, built.problem.roles
        masks = zip(roles, built.problem.allowed[:, : len(names)], strict=True)
        places = {role: [names[row] for row in np.flatnonzero(mask)] for role, mask in masks}
        theirs = {"t": ["theirs"], "u|0": ["theirs"], "u|1": [], "u|2": ["theirs"]}
        assert places == {"s": ["mine"], **theirs}
