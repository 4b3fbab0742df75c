"""Checks of queries for resource classes and traits that do not exist.

The reference looks at one part of a query after the other, at one request group after the other,
and stops at the first that finds nothing: then it says that there is nothing, and what a later
part names is never looked at. Here all names are looked at first, for most queries name what
there is; only one that does not is taken apart as the reference would.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.api.placement.names import STANDARD_CLASSES, STANDARD_TRAITS
from moorage.api.placement.refusals import BadQuery
from moorage.domain.requests import RequestGroup
from moorage.engine.candidates.limit import first_candidates
from moorage.engine.candidates.query import Rules
from moorage.engine.state import provider_filters
from moorage.usecases.claims.stay_terms import fleet_for_query
from moorage.usecases.tickets.places import is_virtual

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.api.placement.request import Environment
    from moorage.engine.candidates.query import CandidateQuery
    from moorage.engine.state.provider_filters import Bools
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store


_NO_CLASS: Final = "Invalid resource class in resources parameter: No such resource class"
_NO_TRAIT: Final = "No such trait(s):"
_NO_FILTER: Final = 'Invalid trait(s) in "required" parameter: No such trait(s):'


def unknown_classes(store: Store, snapshot: Snapshot, names: Iterable[str]) -> list[str]:
    """Names that are no resource class, sorted. A class in use needs no read of the ledger."""
    doubtful = {name for name in names if name not in snapshot.classes} - STANDARD_CLASSES
    doubtful = {name for name in doubtful if not is_virtual(store, name)}
    if doubtful:
        doubtful -= {one.name for one in store.resource_classes()}
    return sorted(doubtful)


def unknown_traits(store: Store, snapshot: Snapshot, names: Iterable[str]) -> list[str]:
    """Names that are no trait, sorted. A trait in use needs no read of the ledger."""
    doubtful = {name for name in names if name not in snapshot.traits} - STANDARD_TRAITS
    if doubtful:
        doubtful -= {one.name for one in store.traits()}
    return sorted(doubtful)


def names_exist(env: Environment, snapshot: Snapshot, query: CandidateQuery) -> bool:
    """Whether all names in a query for candidates exist.

    False also means that there are no candidates: some names were not even come to.

    Raises:
        BadQuery: something does not exist, and everything that is asked before it can be had.
    """
    classes = unknown_classes(env.store, snapshot, query.classes)
    traits = unknown_traits(env.store, snapshot, query.traits)
    if not classes and not traits:
        return True
    if (
        query.virtual_terms is not None
    ):  # what is asked for by virtual classes is found in other ways
        _refuse(classes, query.classes, _NO_CLASS)
        _refuse(traits, query.traits, _NO_TRAIT)
    root = RequestGroup(required=query.root_required, forbidden=query.root_forbidden)
    _refuse(traits, root.forbidden.union(*root.required), _NO_TRAIT)
    if root != _ANYTHING and not (_passing(snapshot, root) & (snapshot.parent < 0)).any():
        return False
    for group in query.groups:
        _refuse(classes, group.resources, _NO_CLASS)
        if not _has_member(snapshot, group):
            return False
        _refuse(traits, group.forbidden.union(*group.required), _NO_TRAIT)
        alone = replace(query, groups=(group,), rules=Rules(), one_provider_per_tree=False)
        fleet = fleet_for_query(snapshot, alone, env.settings.lifetimes)
        if not first_candidates(fleet, alone, 1):
            return False
    return False


def filters_exist(env: Environment, snapshot: Snapshot, group: RequestGroup) -> bool:
    """Whether all names in a query for providers exist.

    False also means that no provider is found: some names were not even come to.

    Raises:
        BadQuery: something does not exist, and everything that is asked before it can be had.
    """
    classes = unknown_classes(env.store, snapshot, group.resources)
    traits = unknown_traits(env.store, snapshot, group.forbidden.union(*group.required))
    if not classes and not traits:
        return True
    if group.in_tree is not None and group.in_tree not in snapshot.row_of:
        return False
    _refuse(traits, frozenset[str]().union(*group.required), _NO_FILTER)
    if group.required and not _passing(snapshot, RequestGroup(required=group.required)).any():
        return False
    _refuse(traits, group.forbidden, _NO_FILTER)
    if _has_member(snapshot, group):
        _refuse(classes, group.resources, _NO_CLASS)
    return False


_ANYTHING: Final = RequestGroup()


def _refuse(unknown: Iterable[str], named: Iterable[str], sentence: str) -> None:
    """Raise BadQuery if any of the names is unknown."""
    names = set(named)
    found = [name for name in unknown if name in names]
    if found:
        raise BadQuery(f"{sentence} {', '.join(found)}.")


def _has_member(snapshot: Snapshot, group: RequestGroup) -> bool:
    """Whether the aggregates that a group requires have any provider, if it requires any."""
    asked = RequestGroup(member_of=group.member_of)
    return not group.member_of or bool(_passing(snapshot, asked).any())


def _passing(snapshot: Snapshot, group: RequestGroup) -> Bools:
    """Rows of the providers that meet a group by themselves."""
    return provider_filters.apply_filters(
        snapshot.alive, provider_filters.suffixed_group(snapshot, group)
    )
