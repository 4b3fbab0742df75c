"""The query for allocation candidates: request groups, and the rules that join them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from moorage.domain.virtual_classes import declared_terms
from moorage.engine.candidates.query_shape import QueryShape, SlotRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.requests import RequestGroup
    from moorage.domain.resources import ResourceClass, Trait
    from moorage.domain.virtual_classes import DeclaredTerms


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that join the groups of one candidate: `group_policy` and `same_subtree`."""

    isolate: bool = False
    same_subtrees: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True)
class CandidateQuery:
    """One query for allocation candidates."""

    groups: tuple[RequestGroup, ...]
    rules: Rules = field(default_factory=Rules)
    root_required: tuple[frozenset[Trait], ...] = ()
    """Trait sets the anchor's root must have one of each of."""
    root_forbidden: frozenset[Trait] = frozenset()
    one_provider_per_tree: bool = False
    """As before microversion 1.29: no candidate takes from two providers of one tree."""
    anchors: frozenset[int] | None = None
    """Root rows of the only trees that may be anchors; None for all."""
    used: frozenset[tuple[int, int]] = frozenset()
    """Pairs (root row of an anchor, row): a candidate from that anchor uses all of its rows."""
    closed_lenders: frozenset[int] = frozenset()
    """Rows of sharing providers that lend nothing to other trees."""

    def in_trees(self, trees: Mapping[str, str]) -> CandidateQuery:
        """The query with other `in_tree` UUIDs, by the suffix of each group that has one."""
        found = object.__new__(CandidateQuery)
        found.__dict__.update(
            self.__dict__,
            groups=tuple(
                one if one.in_tree is None else one.within(trees[one.suffix]) for one in self.groups
            ),
            # Cached properties that do not depend on the trees.
            shape=self.shape,
            virtual_terms=self.virtual_terms,
            classes=self.classes,
            traits=self.traits,
        )
        return found

    @cached_property
    def virtual_terms(self) -> DeclaredTerms | None:
        """The terms that it states by virtual resource classes, or None."""
        return declared_terms(group.resources for group in self.groups)

    @cached_property
    def classes(self) -> frozenset[ResourceClass]:
        """Every resource class that it names."""
        return frozenset(name for group in self.groups for name in group.resources)

    @cached_property
    def traits(self) -> frozenset[Trait]:
        """Every trait that it names."""
        each = (group.forbidden.union(*group.required) for group in self.groups)
        return self.root_forbidden.union(*self.root_required, *each)

    @cached_property
    def shape(self) -> QueryShape:
        """The part of the query that is the same for every tree."""
        slots: list[SlotRequest] = []
        sums: dict[ResourceClass, list[int]] = {}
        alone: set[ResourceClass] = set()  # no provider gives them to two slots
        for group in self.groups:
            amounts = tuple(group.resources.items())
            if group.suffix:
                slots.append(SlotRequest(group.suffix, amounts))
            else:
                slots.extend(SlotRequest("", (one,)) for one in amounts)
            for name, amount in amounts:
                sums.setdefault(name, []).append(amount)
        if self.rules.isolate:
            plain = {name for one in self.groups if not one.suffix for name in one.resources}
            alone = sums.keys() - plain
        return QueryShape(
            slots=tuple(slots),
            required_sets=sum(len(group.required) for group in self.groups if not group.suffix),
            shared_classes=tuple(
                (name, sum(every))
                for name, every in sums.items()
                if len(every) > 1 and name not in alone
            ),
            isolate=self.rules.isolate,
            same_subtrees=self.rules.same_subtrees,
            one_provider_per_tree=self.one_provider_per_tree,
            uses=bool(self.used),
        )
