"""The rows that a changeset locks, computed from its changes; locked in one order.

A commit that is not alone must own, before it reads them, every row it judges or changes. By
name these are ids (of ensembles, decisions, names that must stay unique), consumers and
providers; the providers on which consumers stand already, and the members of stored ensembles,
the database adds itself. A kind of change that is not listed here is made alone: slow, and right.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from moorage.domain import changes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.changes import Changeset

MOST: Final = 200
"""Locks of one commit; who needs more takes the one lock over all of them."""

EXCLUSIVE: Final = "exclusive ensembles"
"""Locked like a provider: all ensembles that keep others out. That one no longer does, harms
nobody, so only those that do say that they are changed."""


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
    # Whoever changes the topology is alone; to rely on it, it is enough not to be.
    for change in changeset.changes:
        note = _NOTES.get(type(change))
        if note is None:
            found.alone = True
            break
        note(found, change)
    found.alone = found.alone or found.size > MOST
    return found


def _create_provider(found: Footprint, change: changes.CreateProvider) -> None:
    found.ids.add(f"name {change.name}")
    found.providers.add(change.uuid)


def _of_provider(
    found: Footprint,
    change: changes.PutInventories
    | changes.DeleteInventories
    | changes.PutTraits
    | changes.PutAggregates,
) -> None:
    found.providers.add(change.provider)


def _replace_allocations(found: Footprint, change: changes.ReplaceAllocations) -> None:
    owners = found.newcomers if change.generation is None else found.consumers
    owners.add(change.consumer.uuid)
    found.providers.update(change.allocations)


def _delete_allocations(found: Footprint, change: changes.DeleteAllocations) -> None:
    found.consumers.add(change.consumer)


def _put_bookings(found: Footprint, change: changes.PutBookings) -> None:
    found.consumers.add(change.consumer.uuid)
    found.providers.update(booking.provider for booking in change.bookings)


def _drop_bookings(found: Footprint, change: changes.DropBookings) -> None:
    found.consumers.update(change.consumers)


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


def _expect_ensemble(found: Footprint, change: changes.ExpectEnsemble) -> None:
    found.ids.add(change.id)


def _delete_ensemble(found: Footprint, change: changes.DeleteEnsemble) -> None:
    found.ensembles.add(change.id)


def _put_decision(found: Footprint, change: changes.PutDecision) -> None:
    found.ids.add(change.decision.id)


def _bound_held(found: Footprint, change: changes.BoundHeld) -> None:
    found.ids.add(f"held {change.project_id}")


def _bound_offers(found: Footprint, change: changes.BoundOffers) -> None:
    found.ids.add(f"held {change.project_id}")


def _bound_stored(found: Footprint, change: changes.BoundStored) -> None:
    found.ids.add(f"stored {change.name} {change.project_id}")


def _expect_unique_name(found: Footprint, change: changes.ExpectUniqueName) -> None:
    found.ids.add(f"ensemble {change.project_id} {change.name}")


def _put_claim(found: Footprint, change: changes.PutClaim) -> None:
    found.ids.add(change.claim.id)


def _end_bookings(found: Footprint, change: changes.EndBookings) -> None:
    found.consumers.update(change.consumers)


def _bind_allocations(found: Footprint, change: changes.BindAllocations) -> None:
    found.consumers.add(change.consumer)


def _put_lease(found: Footprint, change: changes.PutLease) -> None:
    found.ids.add(change.lease.id)
    if change.generation is None:
        found.ids.add(f"leases of {change.lease.project_id}")
    if change.within is not None:
        found.ids.add(_quota_of(change.lease.project_id))


def _put_series(found: Footprint, change: changes.PutSeries) -> None:
    found.ids.add(change.series.id)


def _expect_lease(found: Footprint, change: changes.ExpectLease) -> None:
    found.ids.add(change.id)


def _put_effect(found: Footprint, change: changes.PutEffect) -> None:
    found.ids.add(change.effect.id)


def _drop_effects(found: Footprint, change: changes.DropEffects) -> None:
    found.ids.add(change.subject)


def _put_explanation(found: Footprint, change: changes.PutExplanation) -> None:
    found.ids.update((change.explanation.id, f"explanations {change.project_id}"))


def _put_template(found: Footprint, change: changes.PutTemplate) -> None:
    template = change.template
    found.ids.update((template.id, f"template {template.project_id} {template.name}"))


def _delete_template(found: Footprint, change: changes.DeleteTemplate) -> None:
    found.ids.add(change.id)


def _of_reservables(found: Footprint, _: changes.PutReservable | changes.DropReservable) -> None:
    found.ids.add("reservables")


def _put_quota(found: Footprint, change: changes.PutQuota) -> None:
    found.ids.add(_quota_of(change.quota.project_id))


def _drop_quota(found: Footprint, change: changes.DropQuota) -> None:
    found.ids.add(_quota_of(change.project_id))


def _quota_of(project_id: str) -> str:
    return f"quota {project_id}"


def _of_flavors(found: Footprint, _: changes.PutFlavor | changes.DeleteFlavor) -> None:
    found.ids.add("flavors")


def _put_event(found: Footprint, change: changes.PutEvent) -> None:
    """New, and nobody else's: nothing is locked."""
    del found, change


def _trim_events(found: Footprint, _: changes.TrimEvents) -> None:
    found.ids.add("trim events")


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


def _pass_events(found: Footprint, change: changes.PassEvents) -> None:
    found.ids.update(id_ for id_, _, _ in change.passed)


def _delete_subscription(found: Footprint, change: changes.DeleteSubscription) -> None:
    found.ids.add(change.id)


def _of_dead_letters(
    found: Footprint, change: changes.PutDeadLetters | changes.DropDeadLetters
) -> None:
    found.ids.add(change.subscription_id)


_NOTES: Final[Mapping[type, Callable[[Footprint, Any], None]]] = MappingProxyType(
    {
        changes.CreateProvider: _create_provider,
        changes.PutInventories: _of_provider,
        changes.DeleteInventories: _of_provider,
        changes.PutTraits: _of_provider,
        changes.PutAggregates: _of_provider,
        changes.ReplaceAllocations: _replace_allocations,
        changes.DeleteAllocations: _delete_allocations,
        changes.PutBookings: _put_bookings,
        changes.DropBookings: _drop_bookings,
        changes.SwapHold: _swap_hold,
        changes.TakeHold: _take_hold,
        changes.EndBookings: _end_bookings,
        changes.BindAllocations: _bind_allocations,
        changes.PutEnsemble: _put_ensemble,
        changes.ExpectEnsemble: _expect_ensemble,
        changes.DeleteEnsemble: _delete_ensemble,
        changes.PutDecision: _put_decision,
        changes.BoundHeld: _bound_held,
        changes.BoundOffers: _bound_offers,
        changes.BoundStored: _bound_stored,
        changes.ExpectUniqueName: _expect_unique_name,
        changes.PutClaim: _put_claim,
        changes.PutLease: _put_lease,
        changes.ExpectLease: _expect_lease,
        changes.PutSeries: _put_series,
        changes.PutEffect: _put_effect,
        changes.DropEffects: _drop_effects,
        changes.PutExplanation: _put_explanation,
        changes.PutTemplate: _put_template,
        changes.DeleteTemplate: _delete_template,
        changes.PutReservable: _of_reservables,
        changes.DropReservable: _of_reservables,
        changes.PutQuota: _put_quota,
        changes.DropQuota: _drop_quota,
        changes.PutFlavor: _of_flavors,
        changes.DeleteFlavor: _of_flavors,
        changes.PutEvent: _put_event,
        changes.TrimEvents: _trim_events,
        changes.PutSubscription: _put_subscription,
        changes.PutEntry: _put_entry,
        changes.PassEvents: _pass_events,
        changes.DeleteSubscription: _delete_subscription,
        changes.PutDeadLetters: _of_dead_letters,
        changes.DropDeadLetters: _of_dead_letters,
    }
)
"""Missing on purpose, hence alone: trees that move or go, names of classes and traits, topology,
what is adopted from elsewhere, and records that are deleted, as nobody may refer to them meanwhile.
"""
