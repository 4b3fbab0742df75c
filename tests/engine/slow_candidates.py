"""Allocation candidates by a slow reading of the rules, and random fleets and queries for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from hypothesis import strategies as st

from moorage.domain.bookings import Booking
from moorage.domain.period import Period
from moorage.domain.providers import SHARING_TRAIT, Inventory, ResourceProvider
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.enumerate import candidates
from moorage.engine.candidates.query import CandidateQuery, Rules
from moorage.engine.state.snapshot import ProviderState, Snapshot


@dataclass(frozen=True)
class Node:
    """A provider in short: names stand for UUIDs."""

    name: str
    parent: str | None = None
    has: dict[str, int] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    used: dict[str, int] = field(default_factory=dict)
    max_unit: int = 1000


def fleet(nodes: Sequence[Node], before: Snapshot | None = None) -> Snapshot:
    """The fleet of these nodes, perhaps as it became of another one with no other names."""
    roots: dict[str, str] = {}
    for node in nodes:
        roots[node.name] = roots[node.parent] if node.parent else node.name
    return (before or Snapshot.empty()).with_states(
        [
            ProviderState(
                ResourceProvider(
                    uuid=node.name,
                    name=node.name,
                    parent_uuid=node.parent,
                    root_uuid=roots[node.name],
                    inventories=tuple(
                        Inventory(name, total, max_unit=node.max_unit)
                        for name, total in node.has.items()
                    ),
                    traits=node.traits,
                    aggregates=node.aggregates,
                ),
                tuple(
                    Booking(f"c-{node.name}-{name}", node.name, {name: used}, Period(0))
                    for name, used in node.used.items()
                ),
            )
            for node in nodes
        ],
        revision=1,
    )


Shown = tuple[frozenset[tuple[str, str, int]], frozenset[tuple[str, frozenset[str]]]]


def shown(snapshot: Snapshot, query: CandidateQuery) -> list[Shown]:
    return [
        (
            frozenset(
                (snapshot.uuids[row], name, amount)
                for row, amounts in one.allocations
                for name, amount in amounts.items()
            ),
            frozenset(
                (suffix, frozenset(snapshot.uuids[row] for row in rows))
                for suffix, rows in one.mappings
            ),
        )
        for one in candidates(snapshot, query)
    ]


# --- the slow reading -------------------------------------------------------------------------


class Slow:
    """Placement's rules, written for one combination of whole picks at a time."""

    def __init__(self, nodes: Sequence[Node], query: CandidateQuery) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.query = query

    def root(self, name: str) -> str:
        parent = self.nodes[name].parent
        return self.root(parent) if parent else name

    def above(self, name: str) -> set[str]:
        parent = self.nodes[name].parent
        return {name} | (self.above(parent) if parent else set())

    def reachable(self, anchor: str) -> Iterator[str]:
        tree = [name for name in self.nodes if self.root(name) == anchor]
        nearby = frozenset[str]().union(*(self.nodes[name].aggregates for name in tree))
        for name, node in self.nodes.items():
            if name in tree or (SHARING_TRAIT in node.traits and node.aggregates & nearby):
                yield name

    def gives(self, name: str, resource_class: str, amount: int) -> bool:
        node = self.nodes[name]
        return (
            resource_class in node.has
            and amount <= node.max_unit
            and node.used.get(resource_class, 0) + amount <= node.has[resource_class]
        )

    def picks(self, group: RequestGroup, anchor: str) -> Iterator[tuple[str, ...]]:
        """Per class the provider that gives it; a suffixed group repeats one provider."""
        reach = list(self.reachable(anchor))
        if group.suffix:
            for name in reach:
                if self.serves_alone(group, name):
                    yield (name,) * max(1, len(group.resources))
            return
        for names in product(reach, repeat=len(group.resources)):
            traits = frozenset[str]().union(*(self.nodes[name].traits for name in names))
            if (
                all(
                    self.gives(name, resource_class, amount)
                    for name, (resource_class, amount) in zip(
                        names, group.resources.items(), strict=True
                    )
                )
                and all(traits & any_of for any_of in group.required)
                and all(self.may_serve(group, name, anchor) for name in names)
            ):
                yield names

    def may_serve(self, group: RequestGroup, name: str, anchor: str) -> bool:
        node = self.nodes[name]
        root = self.nodes[anchor].aggregates
        alone = all(node.aggregates & any_of for any_of in group.member_of)
        through_root = self.root(name) == anchor and all(
            root & any_of for any_of in group.member_of
        )
        return (
            not node.traits & group.forbidden
            and (alone or through_root)
            and not (node.aggregates | root) & group.not_member_of
            and (group.in_tree is None or self.root(group.in_tree) == self.root(name) == anchor)
        )

    def serves_alone(self, group: RequestGroup, name: str) -> bool:
        node = self.nodes[name]
        return (
            all(self.gives(name, *item) for item in group.resources.items())
            and all(node.traits & any_of for any_of in group.required)
            and not node.traits & group.forbidden
            and all(node.aggregates & any_of for any_of in group.member_of)
            and not node.aggregates & group.not_member_of
            and (group.in_tree is None or self.root(group.in_tree) == self.root(name))
        )

    def found(self) -> set[Shown]:
        roots = [name for name, node in self.nodes.items() if node.parent is None]
        return {
            one
            for anchor in roots
            if all(self.nodes[anchor].traits & any_of for any_of in self.query.root_required)
            and not self.nodes[anchor].traits & self.query.root_forbidden
            for picked in product(*(list(self.picks(g, anchor)) for g in self.query.groups))
            if (one := self.judged(picked)) is not None
        }

    def judged(self, picked: tuple[tuple[str, ...], ...]) -> Shown | None:
        sums: dict[tuple[str, str], int] = {}
        maps = {}
        for group, names in zip(self.query.groups, picked, strict=True):
            maps[group.suffix] = frozenset(names)
            for name, (resource_class, amount) in zip(names, group.resources.items(), strict=False):
                sums[name, resource_class] = sums.get((name, resource_class), 0) + amount
        if not all(self.gives(name, of, amount) for (name, of), amount in sums.items()):
            return None
        alone = [names for suffix, names in maps.items() if suffix]
        if self.query.rules.isolate and len(frozenset[str]().union(*alone)) < len(alone):
            return None
        for together in self.query.rules.same_subtrees:
            chosen = frozenset[str]().union(*(maps[suffix] for suffix in together))
            if not any(all(top in self.above(name) for name in chosen) for top in chosen):
                return None
        if self.query.one_provider_per_tree:
            users = {name for name, _ in sums}
            if len({self.root(name) for name in users}) < len(users):
                return None
        return (
            frozenset((name, of, amount) for (name, of), amount in sums.items()),
            frozenset(maps.items()),
        )


# --- random fleets and queries ------------------------------------------------------------------

CLASSES = ("VCPU", "DISK_GB")
TRAITS = ("T1", "T2", SHARING_TRAIT)
AGGREGATES = ("a1", "a2")

stocks = st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 4))
few_traits = st.frozensets(st.sampled_from(TRAITS), max_size=2)
few_aggregates = st.frozensets(st.sampled_from(AGGREGATES), max_size=2)
any_of_sets = st.lists(
    st.frozensets(st.sampled_from(TRAITS), min_size=1, max_size=2), max_size=2
).map(tuple)


@st.composite
def fleets(draw: st.DrawFn) -> list[Node]:
    nodes: list[Node] = []
    for number in range(draw(st.integers(1, 6))):
        parents = [None, *(node.name for node in nodes)]
        has = draw(stocks)
        nodes.append(
            Node(
                f"n{number}",
                draw(st.sampled_from(parents)),
                has,
                draw(few_traits),
                draw(few_aggregates),
                {name: draw(st.integers(1, 2)) for name in has if draw(st.booleans())},
                draw(st.sampled_from([1, 2, 1000])),
            )
        )
    return nodes


@st.composite
def queries(draw: st.DrawFn, nodes: list[Node]) -> CandidateQuery:
    suffixes = draw(st.sampled_from([("",), ("", "1"), ("1", "2"), ("", "1", "2")]))
    groups = tuple(
        RequestGroup(
            suffix,
            draw(st.dictionaries(st.sampled_from(CLASSES), st.integers(1, 3), min_size=1)),
            draw(any_of_sets),
            draw(st.frozensets(st.sampled_from(TRAITS), max_size=1)),
            tuple(
                draw(st.lists(st.frozensets(st.sampled_from(AGGREGATES), min_size=1), max_size=1))
            ),
            draw(st.frozensets(st.sampled_from(AGGREGATES), max_size=1)),
            draw(st.sampled_from([None, None, None, *(node.name for node in nodes)])),
        )
        for suffix in suffixes
    )
    worded = [suffix for suffix in suffixes if suffix]
    subtrees = draw(st.sampled_from([(), (frozenset(worded),)])) if worded else ()
    return CandidateQuery(
        groups,
        Rules(draw(st.booleans()), subtrees),
        draw(any_of_sets.map(lambda sets: sets[:1])),
        draw(st.frozensets(st.sampled_from(TRAITS), max_size=1)),
        draw(st.booleans()),
    )
