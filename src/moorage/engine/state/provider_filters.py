"""Which providers could serve a request: one mask per rule, each with a stable reason.

A filter says yes or no about every provider row at once. Candidate search needs the masks;
explanations need how many rows each rule rejected. Reason ids are those of `domain.explain`.
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
    from moorage.engine.state.fleet_view import Site, Stock, View
    from moorage.engine.state.snapshot import Snapshot

    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Filter:
    """One rule over the fleet: `passes` is a mask over provider rows."""

    reason: str
    passes: Bools


def narrow(start: Bools, filters: Iterable[Filter]) -> tuple[Bools, Mapping[str, int]]:
    """Apply every filter to `start`; also count, per reason, the rows of `start` it rejects.

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


def passing(start: Bools, filters: Iterable[Filter]) -> Bools:
    """Apply every filter to `start`, counting nothing."""
    mask = start
    for rule in filters:
        mask = mask & rule.passes
    return mask


# --- traits ---------------------------------------------------------------------------------


def has_trait(site: Site, trait: Trait) -> Bools:
    """Rows of providers that carry the trait themselves."""
    mask = site.traits.get(trait)
    return np.zeros(len(site.alive), dtype=np.bool_) if mask is None else mask


def has_any_trait(site: Site, traits: Iterable[Trait]) -> Bools:
    """Rows of providers that carry at least one of the traits."""
    masks = [site.traits[trait] for trait in traits if trait in site.traits]
    return reduce(np.logical_or, masks) if masks else np.zeros(len(site.alive), dtype=np.bool_)


def required_traits(site: Site, group: RequestGroup) -> Iterator[Filter]:
    """Every required set of the group, met by the provider itself."""
    for any_of in group.required:
        yield Filter(f"trait:{'|'.join(sorted(any_of))}", has_any_trait(site, any_of))


def forbidden_traits(site: Site, group: RequestGroup) -> Iterator[Filter]:
    """No forbidden trait on the provider itself."""
    for trait in sorted(group.forbidden):
        yield Filter(f"forbidden:{trait}", ~has_trait(site, trait))


# --- aggregates and trees -----------------------------------------------------------------


def in_any_aggregate(site: Site, aggregates: Iterable[str]) -> Bools:
    """Rows of providers that are themselves a member of at least one of the aggregates."""
    mask = np.zeros(len(site.alive), dtype=np.bool_)
    for aggregate in aggregates:
        rows = site.aggregates.get(aggregate)
        if rows is not None:
            mask[rows] = True
    return mask


def in_every_set(site: Site, sets: Iterable[Iterable[str]]) -> Bools:
    """Rows of providers that are themselves a member of some aggregate of each set."""
    mask = np.ones(len(site.alive), dtype=np.bool_)
    for any_of in sets:
        mask = mask & in_any_aggregate(site, any_of)
    return mask


def own_aggregates(site: Site, group: RequestGroup) -> Iterator[Filter]:
    """The group's aggregate rules, judged by the provider's own membership."""
    for any_of in group.member_of:
        yield Filter("aggregate", in_any_aggregate(site, any_of))
    if group.not_member_of:
        yield Filter("aggregate", ~in_any_aggregate(site, group.not_member_of))


def own_or_root_aggregates(site: Site, group: RequestGroup) -> Iterator[Filter]:
    """The group's aggregate rules, where membership of the root counts for its whole tree.

    Placement's rule for the unsuffixed group: the provider alone, or its root alone, meets every
    required set; neither is in a forbidden aggregate.
    """
    if group.member_of:
        own = in_every_set(site, group.member_of)
        yield Filter("aggregate", own | own[site.root])
    if group.not_member_of:
        own = in_any_aggregate(site, group.not_member_of)
        yield Filter("aggregate", ~(own | own[site.root]))


def tree_of(snapshot: Snapshot, uuid: str) -> Bools:
    """Rows of the providers that stand in one tree with the named one."""
    row = snapshot.row_of.get(uuid)
    if row is None:
        return np.zeros(len(snapshot.alive), dtype=np.bool_)
    found: Bools = snapshot.root == snapshot.root[row]
    return found


def in_tree(snapshot: Snapshot, group: RequestGroup) -> Iterator[Filter]:
    """Only providers of the named provider's tree, when the group names one."""
    if group.in_tree is not None:
        yield Filter("in_tree", tree_of(snapshot, group.in_tree))


# --- resources ----------------------------------------------------------------------------


def spread_over_rows(view: View, columns: Stock | None, fits: Bools | None) -> Bools:
    """Turn a mask over a class's columns into one over provider rows."""
    if columns is None or fits is None:
        return np.zeros(len(view.alive), dtype=np.bool_)
    if len(columns.rows) == len(view.alive):
        return fits
    mask = np.zeros(len(view.alive), dtype=np.bool_)
    mask[columns.rows] = fits
    return mask


def unit_rules(view: View, resource_class: ResourceClass, amount: int) -> Filter:
    """The provider has the class, and one booking of `amount` obeys min, max and step."""
    columns = view.classes.get(resource_class)
    fits = None if columns is None else _within_units(columns, amount)
    return Filter(f"unit:{resource_class}", spread_over_rows(view, columns, fits))


def room(view: View, resource_class: ResourceClass, amount: int) -> Filter:
    """`amount` more fits at every instant from now on: holds and future bookings count."""
    columns = view.classes.get(resource_class)
    fits = None if columns is None else columns.peak + amount <= columns.capacity
    return Filter(f"capacity:{resource_class}", spread_over_rows(view, columns, fits))


def gives(view: View, resource_class: ResourceClass, amount: int) -> Bools:
    """Rows that pass both the unit rules and the room for one amount."""
    columns = view.classes.get(resource_class)
    if columns is None:
        return np.zeros(len(view.alive), dtype=np.bool_)
    fits: Bools = columns.most_by_row >= amount
    if columns.stepped:
        fits &= spread_over_rows(view, columns, _within_units(columns, amount))
    return fits


def _within_units(columns: Stock, amount: int) -> Bools:
    fits: Bools = (columns.min_unit <= amount) & (columns.max_unit >= amount)
    # Division is the dearest of the three, and nearly every inventory has a step of one.
    coarse = columns.step_size != 1
    if coarse.any():
        fits &= amount % columns.step_size == 0
    return fits


def resources(view: View, amounts: Amounts) -> Iterator[Filter]:
    """Every class of `amounts` from the provider itself: unit rules first, then room."""
    for resource_class, amount in amounts.items():
        yield unit_rules(view, resource_class, amount)
        yield room(view, resource_class, amount)


# --- whole groups -------------------------------------------------------------------------


def same_provider(snapshot: Snapshot, group: RequestGroup) -> Iterator[Filter]:
    """All rules of a group that one provider must meet alone (Placement's suffixed group)."""
    yield from right_provider(snapshot, group)
    yield from in_tree(snapshot, group)
    yield from resources(snapshot, group.resources)


def right_provider(site: Site, group: RequestGroup) -> Iterator[Filter]:
    """The same but for resources and the tree."""
    yield from required_traits(site, group)
    yield from forbidden_traits(site, group)
    yield from own_aggregates(site, group)


def any_provider(site: Site, group: RequestGroup) -> Iterator[Filter]:
    """The rules each provider serving the unsuffixed group must meet, whatever it gives.

    Required traits are missing on purpose: they are met by the providers of a candidate together.
    The tree is missing too.
    """
    yield from forbidden_traits(site, group)
    yield from own_or_root_aggregates(site, group)
