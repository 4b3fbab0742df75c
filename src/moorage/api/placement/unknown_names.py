"""Candidates queries that name a resource class or trait which does not exist.

The reference looks at one request group after the other, and stops at the first that finds
nothing: then it says that there are no candidates, and what a later group names is never looked
at. Here all names are looked at first, for most queries name what there is; only one that does
not is taken apart as the reference would.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.api.placement.names import unknown_classes, unknown_traits
from moorage.api.placement.refusals import BadQuery
from moorage.domain.requests import RequestGroup
from moorage.engine import filters
from moorage.engine.candidates import batches, first
from moorage.engine.query import Rules
from moorage.usecases.stays import seen_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.api.placement.request import Parts
    from moorage.engine.query import CandidateQuery
    from moorage.engine.snapshot import Snapshot


def names_exist(parts: Parts, snapshot: Snapshot, query: CandidateQuery) -> bool:
    """Whether everything exists that the query names.

    False also means that there are no candidates: some names were not even come to.

    Raises:
        BadQuery: something does not exist, and everything that is asked before it can be had.
    """
    unknown = _Unknown(
        unknown_classes(parts.store, snapshot, query.classes),
        unknown_traits(parts.store, snapshot, query.traits),
    )
    if not unknown.classes and not unknown.traits:
        return True
    if query.wish is not None:  # what is asked for by virtual classes is found in other ways
        unknown.refuse_classes(query.classes)
        unknown.refuse_traits(query.traits)
    unknown.refuse_traits(query.root_forbidden.union(*query.root_required))
    if not _has_root(snapshot, query):
        return False
    for group in query.groups:
        unknown.refuse_classes(group.resources)
        if not _has_member(snapshot, group):
            return False
        unknown.refuse_traits(group.forbidden.union(*group.required))
        alone = replace(query, groups=(group,), rules=Rules(), one_provider_per_tree=False)
        if not first(batches(seen_by(snapshot, alone, parts.lifetimes), alone, 1), 1):
            return False
    return False


@dataclass(frozen=True, slots=True)
class _Unknown:
    """What a query names that does not exist, sorted."""

    classes: Sequence[str]
    traits: Sequence[str]

    def refuse_classes(self, named: Iterable[str]) -> None:
        """Return if none of these classes is among it."""
        found = [name for name in self.classes if name in set(named)]
        if found:
            raise BadQuery(
                "Invalid resource class in resources parameter: "
                f"No such resource class {', '.join(found)}."
            )

    def refuse_traits(self, named: Iterable[str]) -> None:
        """Return if none of these traits is among it."""
        found = [name for name in self.traits if name in set(named)]
        if found:
            raise BadQuery(f"No such trait(s): {', '.join(found)}.")


def _has_root(snapshot: Snapshot, query: CandidateQuery) -> bool:
    """Whether some tree's root is as asked, if anything is asked of it."""
    if not query.root_required and not query.root_forbidden:
        return True
    asked = RequestGroup(required=query.root_required, forbidden=query.root_forbidden)
    fits = filters.passing(snapshot.alive, filters.same_provider(snapshot, asked))
    return bool((fits & (snapshot.parent < 0)).any())


def _has_member(snapshot: Snapshot, group: RequestGroup) -> bool:
    """Whether some provider is in the aggregates that a group asks for, if it asks for any."""
    if not group.member_of:
        return True
    asked = RequestGroup(member_of=group.member_of)
    return bool(filters.passing(snapshot.alive, filters.same_provider(snapshot, asked)).any())
