"""Subscriptions: create, list, delete; list their dead letters and send them again."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, DeleteSubscription, PutDeadLetters, PutSubscription
from moorage.domain.errors import Forbidden, InvalidDescription, NotFound
from moorage.domain.events import check_pattern
from moorage.domain.period import DAY
from moorage.domain.quotas import QuotaName
from moorage.domain.subscriptions import NO_THRESHOLD, Subscription
from moorage.domain.targets import check_target
from moorage.usecases.capacity.scope import check_domain
from moorage.usecases.leases.queries import own_lease
from moorage.usecases.shared.access import own_ensemble, owned, visible_project
from moorage.usecases.shared.quotas import defaults
from moorage.usecases.shared.retry import retry
from moorage.usecases.shared.role_resolution import known_flavor

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.subscriptions import DeadLetter, SubscriptionFilter, Threshold
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Caller

SECRET: Final = "whsec_"  # noqa: S105 - a prefix, as the Standard Webhooks convention has it
"""Prefix of a secret; the base64 of its bytes follows."""
_LEAST, _MOST = 24, 64
_LONGEST_BEFORE: Final = 365 * DAY


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """A new subscription's fields; without a secret one is generated."""

    wants: SubscriptionFilter
    url: str
    name: str = ""
    secret: str | None = None
    threshold: Threshold = NO_THRESHOLD


def subscribe(
    env: UseCaseEnvironment, caller: Caller, request: SubscriptionRequest
) -> Subscription:
    """Create a subscription to events from now on.

    Raises:
        InvalidDescription: an unknown event type, a threshold that is missing or does not belong
            to the types, or a bad URL.
        Forbidden: the URL is in the service's own networks, or a tenant asks for capacity.
        LimitExceeded: the project has as many subscriptions as it may.
        NotFound: no such lease, ensemble or flavor for this caller.
    """
    wants = replace(
        request.wants,
        types=tuple(dict.fromkeys(check_pattern(one, _EVENTS) for one in request.wants.types)),
    )
    if not wants.types:
        raise InvalidDescription("say which events", path=_EVENTS)
    check_target(request.url, public_only=env.limits.public_targets)
    _check_threshold(env, caller, wants, request.threshold)
    _check_things(env, caller, wants, request.threshold)
    now, newest = env.store.now(), env.store.event_log.newest()
    made = Subscription(
        id=env.ids.uuid(),
        project_id=caller.project_id,
        user_id=caller.user_id,
        name=request.name,
        wants=wants,
        url=request.url,
        secret=_secret(env, request.secret),
        threshold=request.threshold,
        operator=caller.operator,
        began=newest.position,
        reached=newest.position,
        not_before=now,
        created_at=now,
        updated_at=now,
    )
    limit = defaults(env.limits).limit(QuotaName.SUBSCRIPTIONS, None)
    put = PutSubscription(made, None, limit=limit)
    env.store.commit(Changeset((put,)))
    return made


_EVENTS: Final = "subscription.events"


def own_subscription(env: UseCaseEnvironment, caller: Caller, id_: str) -> Subscription:
    """The subscription, if it is the caller's.

    Raises:
        NotFound: there is no such subscription, or it is another project's.
    """
    return owned(caller, "subscription", id_, env.store.event_log.subscription(id_))


def list_subscriptions(
    env: UseCaseEnvironment, caller: Caller, page: Page, *, all_projects: bool = False
) -> Sequence[Subscription]:
    """The caller's subscriptions, oldest first.

    Raises:
        Forbidden: a tenant asked for the subscriptions of every project.
        NotFound: the page's marker is no subscription for this caller.
    """
    project = visible_project(caller, all_projects=all_projects, project_id=None)
    if page.marker is not None:
        own_subscription(env, caller, page.marker)
    return env.store.event_log.subscriptions(project, page)


def unsubscribe(env: UseCaseEnvironment, caller: Caller, id_: str) -> None:
    """Delete a subscription with its dead letters.

    Raises:
        NotFound: there is no such subscription, or it is another project's.
    """
    found = own_subscription(env, caller, id_)
    env.store.commit(Changeset((DeleteSubscription(found.id),)))


def dead_letters(
    env: UseCaseEnvironment, caller: Caller, id_: str, page: Page
) -> Sequence[DeadLetter]:
    """The dead letters of a subscription, the oldest first.

    Raises:
        NotFound: no such subscription, or marker, for this caller.
    """
    return env.store.event_log.dead_letters(own_subscription(env, caller, id_).id, page)


def resend(
    env: UseCaseEnvironment,
    caller: Caller,
    id_: str,
    letters: Collection[str] | None,
    page: Page,
) -> int:
    """Queue dead letters to be sent again: those with the ids `letters`, or None: all of a page.

    Returns:
        The number of queued dead letters.

    Raises:
        NotFound: no such subscription for this caller, or no such letter.
    """
    found = {letter.id: letter for letter in dead_letters(env, caller, id_, page)}
    for name in letters or ():
        if name not in found:
            raise NotFound("dead letter", name)
    chosen = [found[name] for name in dict.fromkeys(found if letters is None else letters)]
    queued = tuple(replace(letter, queued=True) for letter in chosen)
    if queued:
        _queue(env, id_, queued)
    return len(queued)


def _queue(env: UseCaseEnvironment, id_: str, queued: tuple[DeadLetter, ...]) -> None:
    """Queue the dead letters; if the subscription pauses after a failure, make it due at once."""
    kept = PutDeadLetters(id_, queued, env.limits.dead_letters)

    def queue() -> None:
        one, now = env.store.event_log.subscription(id_), env.store.now()
        changes: tuple[Change, ...] = (kept,)
        if one.failing_since is not None and one.not_before > now:
            changes = (kept, PutSubscription(replace(one, not_before=now), one.generation))
        env.store.commit(Changeset(changes))

    retry(env, queue)


def _secret(env: UseCaseEnvironment, given: str | None) -> str:
    if given is None:
        made = bytes.fromhex(env.ids.salt() + env.ids.salt())
        return SECRET + base64.b64encode(made).decode()
    try:
        key = base64.b64decode(given.removeprefix(SECRET), validate=True)
    except ValueError:
        key = b""
    if not given.startswith(SECRET) or not _LEAST <= len(key) <= _MOST:
        raise InvalidDescription(
            f"a secret is {SECRET} and the base64 of {_LEAST} to {_MOST} bytes",
            path="subscription.secret",
        )
    return given


def _check_things(
    env: UseCaseEnvironment, caller: Caller, wants: SubscriptionFilter, threshold: Threshold
) -> None:
    """Check that the lease, ensemble, role, flavor, class and zone exist for the caller."""
    if wants.lease is not None:
        own_lease(env.store, caller, wants.lease)
    if wants.ensemble is not None:
        ensemble = own_ensemble(env.store, caller, wants.ensemble)
        if wants.role is not None and all(one.name != wants.role for one in ensemble.roles):
            raise NotFound("role", wants.role)
    if threshold.flavor is not None:
        known_flavor(env.store, threshold.flavor)
    if threshold.resource_class is not None and all(
        one.name != threshold.resource_class for one in env.store.resource_classes()
    ):
        raise NotFound("resource class", threshold.resource_class)
    if threshold.zone is not None:
        check_domain(env.store.snapshot(), caller, threshold.zone, "subscription.zone")


def _check_threshold(
    env: UseCaseEnvironment, caller: Caller, wants: SubscriptionFilter, threshold: Threshold
) -> None:
    """Check that the threshold belongs to the event types, and that none is missing."""
    time, room, capacity = (name in wants.types for name in _OWN)
    sized = threshold.flavor is not None or threshold.resource_class is not None
    limited = threshold.below is not None or threshold.above_share is not None
    for field, given, needed, allowed in (
        ("before", threshold.before is not None, time, time),
        ("below", threshold.below is not None, room, room or capacity),
        ("role", wants.role is not None, room, True),
        ("flavor", sized, capacity, capacity),
        ("below", limited, capacity, room or capacity),
    ):
        if needed and not given:
            raise _bad(
                field, f"the type {next(one for one in _OWN if one in wants.types)} needs it"
            )
        if given and not allowed:
            raise _bad(field, f"it goes with {', '.join(_OWN)}, named as a type")
    if threshold.before is not None and not 0 < threshold.before <= _LONGEST_BEFORE:
        raise _bad("before", "a time between nothing and a year")
    if room and not caller.operator:
        most = env.limits.told_additional(env.limits.tenant_additional)
        if (threshold.below or 0) > most:
            raise _bad("below", f"at most {most}: no larger count is told to tenants")
    if capacity:
        _check_capacity(caller, threshold)


def _check_capacity(caller: Caller, threshold: Threshold) -> None:
    if not caller.operator:
        raise Forbidden("capacity.threshold tells of the whole cloud: it is for operators")
    if (threshold.flavor is None) == (threshold.resource_class is None):
        raise _bad("flavor", "give flavor or resource_class, and not both")
    if (threshold.below is None) == (threshold.above_share is None):
        raise _bad("below", "give below or above_share, and not both")
    if threshold.above_share is not None and threshold.resource_class is None:
        raise _bad("above_share", "a share is of a resource_class")


_OWN: Final = ("lease.time_left", "ensemble.max_additional", "capacity.threshold")


def _bad(field: str, why: str) -> InvalidDescription:
    return InvalidDescription(why, path=f"subscription.{field}")
