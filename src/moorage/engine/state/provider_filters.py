"""Filters of providers for a request group: one mask over all provider rows per rule.

Candidate search uses the masks; explanations use the number of rows that each rule rejects. Reason
ids are those of `domain.explain`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.requests import RequestGroup
    from moorage.domain.resources import Amounts, ResourceClass, Trait
    from moorage.engine.state.fleet_view import FleetView, InventoryColumns, TreeView
    from moorage.engine.state.snapshot import Snapshot

    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Filter:
    """One rule: `passes` is a mask over provider rows, `reason` the id for the others."""

    reason: str
    passes: Bools


def apply_and_count(start: Bools, filters: Iterable[Filter]) -> tuple[Bools, Mapping[str, int]]:
    """Apply every filter to the mask `start`, and count the rows that each reason rejects.

    A row that breaks several rules counts once for each of them. Reasons that reject nothing
    are left out.
    """
    mask = start.copy()
    rejected: dict[str, int] = {}
    for rule in filters:
        fails = int(np.count_nonzero(start & ~rule.passes))
        if fails:
            rejected[rule.reason] = rejected.get(rule.reason, 0) + fails
        mask &= rule.passes
    return mask, rejected


def apply_filters(start: Bools, filters: Iterable[Filter]) -> Bools:
    """Apply every filter to the mask `start`."""
    mask = start
    for rule in filters:
        mask = mask & rule.passes
    return mask


# --- traits ---------------------------------------------------------------------------------


def has_trait(view: TreeView, trait: Trait) -> Bools:
    """[P] providers that have the trait themselves."""
    mask = view.traits.get(trait)
    return np.zeros(len(view.alive), dtype=np.bool_) if mask is None else mask


def has_any_trait(view: TreeView, traits: Iterable[Trait]) -> Bools:
    """[P] providers that have at least one of the traits themselves."""
    masks = [view.traits[trait] for trait in traits if trait in view.traits]
    return reduce(np.logical_or, masks) if masks else np.zeros(len(view.alive), dtype=np.bool_)


def required_traits(view: TreeView, group: RequestGroup) -> Iterator[Filter]:
    """A filter per required trait set of the group, met by the provider itself."""
    for any_of in group.required:
        yield Filter(f"trait:{'|'.join(sorted(any_of))}", has_any_trait(view, any_of))


def forbidden_traits(view: TreeView, group: RequestGroup) -> Iterator[Filter]:
    """A filter per forbidden trait of the group, judged on the provider itself."""
    for trait in sorted(group.forbidden):
        yield Filter(f"forbidden:{trait}", ~has_trait(view, trait))


# --- aggregates and trees -----------------------------------------------------------------


def in_any_aggregate(view: TreeView, aggregates: Iterable[str]) -> Bools:
    """[P] providers that are themselves a member of at least one of the aggregates."""
    mask = np.zeros(len(view.alive), dtype=np.bool_)
    for aggregate in aggregates:
        rows = view.aggregates.get(aggregate)
        if rows is not None:
            mask[rows] = True
    return mask


def in_every_set(view: TreeView, sets: Iterable[Iterable[str]]) -> Bools:
    """[P] providers that are themselves a member of some aggregate of each set."""
    mask = np.ones(len(view.alive), dtype=np.bool_)
    for any_of in sets:
        mask = mask & in_any_aggregate(view, any_of)
    return mask


def aggregate_rules(view: TreeView, group: RequestGroup) -> Iterator[Filter]:
    """The group's `member_of` rules, judged by the provider's own membership."""
    for any_of in group.member_of:
        yield Filter("aggregate", in_any_aggregate(view, any_of))
    if group.not_member_of:
        yield Filter("aggregate", ~in_any_aggregate(view, group.not_member_of))


def aggregate_rules_with_root(view: TreeView, group: RequestGroup) -> Iterator[Filter]:
    """The group's `member_of` rules, where membership of the root counts for its whole tree.

    Placement's rule for the unsuffixed group: the provider alone, or its root alone, meets every
    required set; neither is in a forbidden aggregate.
    """
    if group.member_of:
        own = in_every_set(view, group.member_of)
        yield Filter("aggregate", own | own[view.root])
    if group.not_member_of:
        own = in_any_aggregate(view, group.not_member_of)
        yield Filter("aggregate", ~(own | own[view.root]))


def tree_of(snapshot: Snapshot, uuid: str) -> Bools:
    """[P] providers of the same tree as the named one; none if it is unknown."""
    row = snapshot.row_of.get(uuid)
    if row is None:
        return np.zeros(len(snapshot.alive), dtype=np.bool_)
    found: Bools = snapshot.root == snapshot.root[row]
    return found


def tree_rule(snapshot: Snapshot, group: RequestGroup) -> Iterator[Filter]:
    """The group's `in_tree` rule, if it has one."""
    if group.in_tree is not None:
        yield Filter("in_tree", tree_of(snapshot, group.in_tree))


# --- resources ----------------------------------------------------------------------------


def mask_over_rows(view: FleetView, columns: InventoryColumns | None, fits: Bools | None) -> Bools:
    """Turn a mask [n] over a class's columns into one [P] over provider rows."""
    if columns is None or fits is None:
        return np.zeros(len(view.alive), dtype=np.bool_)
    if len(columns.rows) == len(view.alive):
        return fits
    mask = np.zeros(len(view.alive), dtype=np.bool_)
    mask[columns.rows] = fits
    return mask


def unit_rules(view: FleetView, resource_class: ResourceClass, amount: int) -> Filter:
    """The provider has the class, and `amount` obeys its min_unit, max_unit and step_size."""
    columns = view.classes.get(resource_class)
    fits = None if columns is None else _within_units(columns, amount)
    return Filter(f"unit:{resource_class}", mask_over_rows(view, columns, fits))


def enough_capacity(view: FleetView, resource_class: ResourceClass, amount: int) -> Filter:
    """`amount` more fits at every instant from now on; holds and future bookings count."""
    columns = view.classes.get(resource_class)
    fits = None if columns is None else columns.peak + amount <= columns.capacity
    return Filter(f"capacity:{resource_class}", mask_over_rows(view, columns, fits))


def can_allocate(view: FleetView, resource_class: ResourceClass, amount: int) -> Bools:
    """[P] providers that pass `unit_rules` and `enough_capacity` for one amount."""
    columns = view.classes.get(resource_class)
    if columns is None:
        return np.zeros(len(view.alive), dtype=np.bool_)
    fits: Bools = columns.max_addition_by_row >= amount
    if columns.has_unit_rules:
        fits &= mask_over_rows(view, columns, _within_units(columns, amount))
    return fits


def _within_units(columns: InventoryColumns, amount: int) -> Bools:
    fits: Bools = (columns.min_unit <= amount) & (columns.max_unit >= amount)
    # Division is the most expensive of the three, and nearly every inventory has a step of one.
    coarse = columns.step_size != 1
    if coarse.any():
        fits &= amount % columns.step_size == 0
    return fits


def resource_rules(view: FleetView, amounts: Amounts) -> Iterator[Filter]:
    """Per class of `amounts` two filters on the provider itself: unit rules, then capacity."""
    for resource_class, amount in amounts.items():
        yield unit_rules(view, resource_class, amount)
        yield enough_capacity(view, resource_class, amount)


# --- whole groups -------------------------------------------------------------------------


def suffixed_group(snapshot: Snapshot, group: RequestGroup) -> Iterator[Filter]:
    """All rules of a suffixed group, which one provider must meet alone."""
    yield from provider_rules(snapshot, group)
    yield from tree_rule(snapshot, group)
    yield from resource_rules(snapshot, group.resources)


def provider_rules(view: TreeView, group: RequestGroup) -> Iterator[Filter]:
    """The rules of a suffixed group without resources and `in_tree`: traits and aggregates."""
    yield from required_traits(view, group)
    yield from forbidden_traits(view, group)
    yield from aggregate_rules(view, group)


def unsuffixed_rules(view: TreeView, group: RequestGroup) -> Iterator[Filter]:
    """The rules that each provider for the unsuffixed group must meet: traits and aggregates.

    Without required traits, which a candidate's providers meet together, and without `in_tree`.
    """
    yield from forbidden_traits(view, group)
    yield from aggregate_rules_with_root(view, group)
