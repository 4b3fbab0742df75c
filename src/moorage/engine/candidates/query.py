"""What a query for allocation candidates asks: request groups, and what binds them together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from moorage.domain.virtual_classes import declared_terms
from moorage.engine.candidates.query_shape import Shape, Want

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.requests import RequestGroup
    from moorage.domain.resources import ResourceClass, Trait
    from moorage.domain.virtual_classes import DeclaredTerms


@dataclass(frozen=True, slots=True)
class Rules:
    """What binds the groups of one candidate together."""

    isolate: bool = False
    same_subtrees: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True)
class CandidateQuery:
    """What one query asks: its groups and what binds them."""

    groups: tuple[RequestGroup, ...]
    rules: Rules = field(default_factory=Rules)
    root_required: tuple[frozenset[Trait], ...] = ()
    """Trait sets the anchor's root must have one of each of."""
    root_forbidden: frozenset[Trait] = frozenset()
    one_provider_per_tree: bool = False
    """As before microversion 1.29: no candidate takes from two providers of one tree."""
    anchors: frozenset[int] | None = None
    """Root rows of the only trees that may be anchors; None for all."""

    def in_trees(self, trees: Mapping[str, str]) -> CandidateQuery:
        """The same in other trees: UUIDs by the suffix of each group that names a tree."""
        found = object.__new__(CandidateQuery)
        found.__dict__.update(
            self.__dict__,
            groups=tuple(
                one if one.in_tree is None else one.within(trees[one.suffix]) for one in self.groups
            ),
            # Found once for all trees.
            shape=self.shape,
            wish=self.wish,
            classes=self.classes,
            traits=self.traits,
        )
        return found

    @cached_property
    def wish(self) -> DeclaredTerms | None:
        """What it asks for by virtual classes."""
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
    def shape(self) -> Shape:
        """What it asks of every tree."""
        slots: list[Want] = []
        sums: dict[ResourceClass, list[int]] = {}
        for group in self.groups:
            amounts = tuple(group.resources.items())
            if group.suffix:
                slots.append(Want(group.suffix, amounts))
            else:
                slots.extend(Want("", (one,)) for one in amounts)
            for name, amount in amounts:
                sums.setdefault(name, []).append(amount)
        return Shape(
            slots=tuple(slots),
            required=sum(len(group.required) for group in self.groups if not group.suffix),
            summed=tuple((name, sum(every)) for name, every in sums.items() if len(every) > 1),
            isolate=self.rules.isolate,
            same_subtrees=self.rules.same_subtrees,
            one_provider_per_tree=self.one_provider_per_tree,
        )
