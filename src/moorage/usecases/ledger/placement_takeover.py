"""Import a Placement service: compare, refuse what would be lost, write the rest in pages.

Without permission to change records, only missing ones are written, and only if all records of the
ledger are equal to the source's. So an interrupted import can be continued, and an import into a
ledger with other records is refused before anything is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import (
    AdoptAllocations,
    AdoptNames,
    AdoptProviders,
    Changeset,
    DeleteAllocations,
    DeleteProvider,
    PutTopology,
    UpdateProvider,
)
from moorage.domain.content import (
    CLASS,
    CONSUMER,
    PROVIDER,
    TRAIT,
    DifferenceWay,
    differences,
    faults,
    parents_first,
)
from moorage.domain.errors import Conflict, InvalidDescription
from moorage.domain.resources import NAME, is_custom_name
from moorage.domain.topology import EMPTY
from moorage.domain.words import first_of
from moorage.usecases.ledger.content import ledger_content, topology_content
from moorage.usecases.shared.access import require_operator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from moorage.domain.changes import Change
    from moorage.domain.content import Content, Difference
    from moorage.domain.period import Instant
    from moorage.domain.topology import Topology
    from moorage.usecases.ports import Caller, Store

PROVIDERS_AT_ONCE: Final = 500
CONSUMERS_AT_ONCE: Final = 2_000
"""Limits per transaction, which keep it well under a second or two: other writers wait for it."""
SHOWN: Final = 5


class TakeoverPermission(Enum):
    """Which existing records an import may change."""

    ADD = "add"
    """None: only missing records are written."""
    UPDATE = "update"
    """Records that differ become equal to the source's."""
    MIRROR = "mirror"
    """As UPDATE, and records that the source does not have are deleted."""


@dataclass(frozen=True, slots=True)
class TakeoverPlan:
    """The differences that an import would write."""

    source: Content
    ledger: Content
    differences: tuple[Difference, ...]
    topology: Topology | None = None
    """The topology to write; None if there is none or it is stored already."""
    replaces_topology: bool = False

    def subjects(self, kind: str, way: DifferenceWay) -> list[str]:
        """UUIDs or names of records of a kind that differ in this way."""
        return [one.subject for one in self.differences if (one.kind, one.way) == (kind, way)]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was found that needs no decision, as sentences."""
        found = list(self.source.remarks)
        for kind in (CLASS, TRAIT):
            names = self.subjects(kind, DifferenceWay.MISSING)
            unknown = sorted(
                name for name in names if NAME.fullmatch(name) and not is_custom_name(name)
            )
            if unknown:
                told = f"{kind} names newer than this program's, taken over as they are"
                found.append(f"{told}: {', '.join(unknown)}")
        return tuple(found)

    @property
    def steps(self) -> int:
        """Number of providers and consumers to write, for a progress bar."""
        kinds = (PROVIDER, CONSUMER)
        return sum(
            one.kind in kinds and one.way is not DifferenceWay.BESIDES for one in self.differences
        )

    def removed(self, permission: TakeoverPermission) -> int:
        """Number of providers and consumers to delete."""
        if permission is not TakeoverPermission.MIRROR:
            return 0
        return sum(len(self.subjects(kind, DifferenceWay.BESIDES)) for kind in (PROVIDER, CONSUMER))


def plan(
    store: Store, caller: Caller, source: Content, *, topology: Topology | None
) -> TakeoverPlan:
    """Compare the ledger with the source.

    Raises:
        Forbidden: the caller is no operator.
        InvalidDescription: no ledger can hold the source's content; all that is wrong with it is
            told, and the remarks, too.
    """
    require_operator(caller)
    ledger = ledger_content(store)
    found = tuple(differences(source, ledger))
    known = topology_content(store.snapshot().topology)
    fresh = None if topology is None or topology_content(topology) == known else topology
    replaces = fresh is not None and known != topology_content(EMPTY)
    planned = TakeoverPlan(source, ledger, found, fresh, replaces)
    wrong = faults(source)
    if wrong:
        remarks = f". Remarks: {'; '.join(planned.remarks)}" if planned.remarks else ""
        raise InvalidDescription(f"{'; '.join(wrong)}{remarks}", path="from")
    return planned


def check(planned: TakeoverPlan, permission: TakeoverPermission) -> None:
    """Check that a permission covers a plan.

    Raises:
        Conflict: the ledger has records that differ, or that the source does not have.
    """
    if permission is not TakeoverPermission.ADD:
        return
    # Further resource classes and traits in the ledger do no harm.
    kinds = {PROVIDER, CONSUMER}
    lost = [
        o for o in planned.differences if o.way is not DifferenceWay.MISSING and o.kind in kinds
    ]
    told = first_of([f"{one.kind} {one.subject} {_WAYS[one.way]}" for one in lost], SHOWN)
    if planned.replaces_topology:
        told.append("another topology is loaded")
    if told:
        raise Conflict(
            "the ledger is neither empty nor a part of the source: "
            + "; ".join(told)
            + ". --update makes what differs as the source has it, --mirror also removes the rest"
        )


_WAYS: Final = {DifferenceWay.BESIDES: "is not in the source", DifferenceWay.OTHERWISE: "differs"}


def take_over(
    store: Store,
    planned: TakeoverPlan,
    permission: TakeoverPermission,
    *,
    advance: Callable[[int], None] = lambda _: None,
) -> int:
    """Write the plan and return the number of commits; `advance` gets the records written.

    Missing records are written in pages, each a transaction that leaves a consistent ledger.
    Changes and deletions are one transaction, so that capacity that is taken before and after is
    not free in between.

    Raises:
        Conflict: the permission does not cover it; nothing is written.
        Busy, Conflict, NotFound, UnknownName: from the commits, for example because a missing
            record was created or one to delete was deleted meanwhile. Earlier commits stay.
    """
    check(planned, permission)
    commits = 0
    for changes, weight in _steps(planned, permission):
        if changes:
            store.commit(Changeset(changes, releases_places=True))
            commits += 1
        advance(weight)
    return commits


def _steps(
    planned: TakeoverPlan, permission: TakeoverPermission
) -> Iterator[tuple[tuple[Change, ...], int]]:
    source = planned.source
    names = AdoptNames(
        _moved(source.class_times, planned.ledger.class_times, source.resource_classes),
        _moved(source.trait_times, planned.ledger.trait_times, source.traits),
    )
    yield ((names,) if names.classes or names.traits else ()), 0
    touched = (
        planned.subjects(PROVIDER, DifferenceWay.OTHERWISE),
        planned.subjects(CONSUMER, DifferenceWay.OTHERWISE),
    )
    gone: tuple[list[str], list[str]] = ([], [])
    if permission is TakeoverPermission.MIRROR:
        gone = (
            planned.subjects(PROVIDER, DifferenceWay.BESIDES),
            planned.subjects(CONSUMER, DifferenceWay.BESIDES),
        )
    if any((*touched, *gone)):
        yield _exchange(planned, touched, gone)
    else:
        yield from _pages(planned)
    if planned.topology is not None:
        yield (PutTopology(planned.topology),), 0


def _moved(
    theirs: Mapping[str, Instant], ours: Mapping[str, Instant], names: Iterable[str]
) -> dict[str, Instant]:
    """The names that the ledger lacks, or has with another time; 0: the source tells none."""
    found = {}
    for name in names:
        at = theirs.get(name, 0)
        if name not in ours or at not in {0, ours[name]}:
            found[name] = at
    return found


def _pages(planned: TakeoverPlan) -> Iterator[tuple[tuple[Change, ...], int]]:
    """Pages of missing records, providers first."""
    missing = set(planned.subjects(PROVIDER, DifferenceWay.MISSING))
    fresh = [one for one in parents_first(planned.source.providers) if one.uuid in missing]
    for start in range(0, len(fresh), PROVIDERS_AT_ONCE):
        page = tuple(fresh[start : start + PROVIDERS_AT_ONCE])
        yield (AdoptProviders(page),), len(page)
    consumers = planned.subjects(CONSUMER, DifferenceWay.MISSING)
    for start in range(0, len(consumers), CONSUMERS_AT_ONCE):
        sets = consumers[start : start + CONSUMERS_AT_ONCE]
        change = AdoptAllocations(tuple(planned.source.consumers[uuid] for uuid in sets))
        yield (change,), len(sets)


def _exchange(
    planned: TakeoverPlan, touched: tuple[list[str], list[str]], gone: tuple[list[str], list[str]]
) -> tuple[tuple[Change, ...], int]:
    """All changes and deletions at once: a new host may have the name of a deleted one."""
    source, ledger = planned.source, planned.ledger
    surplus = set(gone[0])
    providers = {*planned.subjects(PROVIDER, DifferenceWay.MISSING), *touched[0]}
    consumers = [*planned.subjects(CONSUMER, DifferenceWay.MISSING), *touched[1]]
    leaves_first = reversed(parents_first(ledger.providers))
    changes: list[Change] = [DeleteAllocations(uuid) for uuid in (*gone[1], *touched[1])]
    # A provider that stays must not have a deleted parent; it gets its new one later.
    changes += [
        UpdateProvider(one.uuid, one.name, None, set_parent=True)
        for one in ledger.providers.values()
        if one.parent_uuid in surplus and one.uuid not in surplus
    ]
    changes += [DeleteProvider(one.uuid) for one in leaves_first if one.uuid in surplus]
    ordered = tuple(one for one in parents_first(source.providers) if one.uuid in providers)
    if ordered:
        changes.append(AdoptProviders(ordered, known=frozenset(touched[0])))
    if consumers:
        changes.append(AdoptAllocations(tuple(source.consumers[uuid] for uuid in consumers)))
    return tuple(changes), len(ordered) + len(consumers)
