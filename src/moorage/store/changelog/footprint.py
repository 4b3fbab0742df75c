"""The rows that a changeset locks, computed from its changes; locked in one order.

A commit that is not alone must own, before it reads them, every row it judges or changes. By
name these are ids (of ensembles, decisions, names that must stay unique), consumers and
providers; the providers on which consumers stand already, and the members of stored ensembles,
the database adds itself. A kind of change that is not listed here is made alone: slow, and right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain import changes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.changes import Changeset

MOST: Final = 200
"""Locks of one commit; who needs more takes the one lock over all of them."""

EXCLUSIVE: Final = "exclusive ensembles"
"""Locked like a provider: all ensembles that keep others out, and the targets of plans. That an
ensemble no longer does, harms nobody, so only those that do say that they are changed."""


@dataclass
class Footprint:
    """Names to be locked; `alone` if naming them is not possible or does not pay."""

    alone: bool = False
    ids: set[str] = field(default_factory=set)
    ensembles: set[str] = field(default_factory=set)
    """Ensembles whose stored members are touched too."""
    consumers: set[str] = field(default_factory=set)
    newcomers: set[str] = field(default_factory=set)
    """Consumers that have no allocations yet, or the commit is refused: they give up no others."""
    providers: set[str] = field(default_factory=set)
    relied: set[str] = field(default_factory=set)
    """Providers that must stay as they are, though they are not changed."""

    @property
    def size(self) -> int:
        """How many locks that makes, without those which the database adds."""
        owners = len(self.consumers) + len(self.newcomers)
        parts = (self.ids, self.ensembles, self.providers, self.relied)
        return owners + sum(map(len, parts))


def footprint(changeset: Changeset) -> Footprint:
    """What a changeset touches."""
    found = Footprint(relied=set(changeset.relies_on))
    if changeset.exclusive_revision is not None:
        found.relied.add(EXCLUSIVE)
    # A commit that changes the topology runs alone; one that relies on it need not.
    for change in changeset.changes:
        note = _NOTES.get(type(change))
        if note is None:
            found.alone = True
            break
        note(found, change)
    found.alone = found.alone or found.size > MOST
    return found


_Note = Callable[[Footprint, Any], None]


def _ids(*names: Callable[[Any], str]) -> _Note:
    """Notes these ids of a change."""

    def note(found: Footprint, change: Any) -> None:  # noqa: ANN401 - of any kind
        found.ids.update(name(change) for name in names)

    return note


def _id(of: str) -> _Note:
    """Notes the id at a path in a change."""
    return _ids(attrgetter(of))


def _create_provider(found: Footprint, change: changes.CreateProvider) -> None:
    found.ids.add(f"name {change.name}")
    found.providers.add(change.uuid)


def _of_provider(found: Footprint, change: Any) -> None:  # noqa: ANN401 - of one provider
    found.providers.add(change.provider)


def _replace_allocations(found: Footprint, change: changes.ReplaceAllocations) -> None:
    owners = found.newcomers if change.generation is None else found.consumers
    owners.add(change.consumer.uuid)
    found.providers.update(change.allocations)


def _of_consumer(found: Footprint, change: Any) -> None:  # noqa: ANN401 - of one consumer
    found.consumers.add(change.consumer)


def _of_consumers(found: Footprint, change: Any) -> None:  # noqa: ANN401 - of several consumers
    found.consumers.update(change.consumers)


def _put_bookings(found: Footprint, change: changes.PutBookings) -> None:
    found.consumers.add(change.consumer.uuid)
    found.providers.update(booking.provider for booking in change.bookings)


def _swap_hold(found: Footprint, change: changes.SwapHold) -> None:
    found.consumers.update((change.member_uuid, change.server.uuid))


def _take_hold(found: Footprint, change: changes.TakeHold) -> None:
    found.consumers.add(change.member_uuid)


def _put_ensemble(found: Footprint, change: changes.PutEnsemble) -> None:
    ensemble = change.ensemble
    found.ensembles.add(ensemble.id)
    if ensemble.keeps_others_out:
        found.providers.add(EXCLUSIVE)
    tagged = {role.name for role in ensemble.roles if role.tags}
    for member in ensemble.members:
        # What policies read of an occupant changes, so the hosts under such members do too.
        if member.name.role in tagged:
            found.consumers.update(one for one in (member.uuid, member.server_id) if one)


def _delete_ensemble(found: Footprint, change: changes.DeleteEnsemble) -> None:
    found.ensembles.add(change.id)


def _put_lease(found: Footprint, change: changes.PutLease) -> None:
    found.ids.add(change.lease.id)
    if change.generation is None:
        found.ids.add(f"leases of {change.lease.project_id}")
    if change.within is not None:
        found.ids.add(f"quota {change.lease.project_id}")


def _put_event(found: Footprint, change: changes.PutEvent) -> None:
    """New, and nobody else's: nothing is locked."""
    del found, change


def _put_subscription(found: Footprint, change: changes.PutSubscription) -> None:
    one = change.subscription
    found.ids.add(one.id)
    if change.generation is None:
        found.ids.add(f"subscriptions {one.project_id}")


def _put_entry(found: Footprint, change: changes.PutEntry) -> None:
    one = change.entry
    found.ids.add(one.id)
    if change.limit is not None:
        found.ids.add(f"waitlist {one.project_id}")


def _put_plan(found: Footprint, change: changes.PutPlan) -> None:
    found.ids.add(change.plan.id)
    if change.targets:
        found.providers.add(EXCLUSIVE)


def _mark_judged(found: Footprint, change: changes.MarkJudged) -> None:
    found.ids.update(id_ for id_, _ in change.judged)


def _pass_events(found: Footprint, change: changes.PassEvents) -> None:
    found.ids.update(id_ for id_, _, _ in change.passed)


_NOTES: Final[Mapping[type, _Note]] = MappingProxyType(
    {
        changes.CreateProvider: _create_provider,
        changes.PutInventories: _of_provider,
        changes.DeleteInventories: _of_provider,
        changes.PutTraits: _of_provider,
        changes.PutAggregates: _of_provider,
        changes.ReplaceAllocations: _replace_allocations,
        changes.DeleteAllocations: _of_consumer,
        changes.PutBookings: _put_bookings,
        changes.DropBookings: _of_consumers,
        changes.SwapHold: _swap_hold,
        changes.TakeHold: _take_hold,
        changes.EndBookings: _of_consumers,
        changes.BindAllocations: _of_consumer,
        changes.PutEnsemble: _put_ensemble,
        changes.ExpectEnsemble: _id("id"),
        changes.PutViolation: _id("violation.ensemble_id"),
        changes.MarkJudged: _mark_judged,
        changes.DeleteEnsemble: _delete_ensemble,
        changes.PutDecision: _id("decision.id"),
        changes.BoundHeld: _ids(lambda one: f"held {one.project_id}"),
        changes.BoundOffers: _ids(lambda one: f"held {one.project_id}"),
        changes.BoundShareOffers: _ids(lambda one: f"share offers {one.project_id}"),
        changes.BoundOfferedNames: _ids(lambda one: f"offered names {one.project_id}"),
        changes.BoundStored: _ids(lambda one: f"stored {one.name} {one.project_id}"),
        changes.ExpectUniqueName: _ids(lambda one: f"ensemble {one.project_id} {one.name}"),
        changes.PutClaim: _id("claim.id"),
        changes.PutLease: _put_lease,
        changes.ExpectLease: _id("id"),
        changes.PutSeries: _id("series.id"),
        changes.PutEffect: _id("effect.id"),
        changes.DropEffects: _id("subject"),
        changes.PutExplanation: _ids(
            lambda one: one.explanation.id, lambda one: f"explanations {one.project_id}"
        ),
        changes.FinishExplanation: _id("explanation.id"),
        changes.PutTemplate: _ids(
            lambda one: one.template.id,
            lambda one: f"template {one.template.project_id} {one.template.name}",
        ),
        changes.DeleteTemplate: _id("id"),
        changes.PutReservable: _ids(lambda _: "reservables"),
        changes.DropReservable: _ids(lambda _: "reservables"),
        changes.PutQuota: _ids(lambda one: f"quota {one.quota.project_id}"),
        changes.DropQuota: _ids(lambda one: f"quota {one.project_id}"),
        changes.PutFlavor: _ids(lambda _: "flavors"),
        changes.DeleteFlavor: _ids(lambda _: "flavors"),
        changes.PutEvent: _put_event,
        changes.TrimEvents: _ids(lambda _: "trim events"),
        changes.PutSubscription: _put_subscription,
        changes.PutEntry: _put_entry,
        changes.PutPlan: _put_plan,
        changes.DeletePlan: _id("id"),
        changes.PassEvents: _pass_events,
        changes.DeleteSubscription: _id("id"),
        changes.PutDeadLetters: _id("subscription_id"),
        changes.DropDeadLetters: _id("subscription_id"),
    }
)
"""Missing on purpose, hence alone: trees that move or go, names of classes and traits, topology,
what is adopted from elsewhere, and records that are deleted, as nobody may refer to them meanwhile.
"""
