"""Events, forgotten when they are old, and subscriptions to them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Integer, bindparam, delete, exists, insert, select, update

from moorage.domain.derived_events import derive_events
from moorage.domain.effects import fact_id
from moorage.domain.errors import NotFound, TooManyRequests
from moorage.domain.events import position
from moorage.domain.period import MINUTE, SECOND
from moorage.domain.quotas import QuotaName
from moorage.domain.subscriptions import NO_THRESHOLD
from moorage.store.commit.apply.kinds import OF, Kind, write
from moorage.store.commit.apply.quotas import refuse_beyond
from moorage.store.database.statements import chunks
from moorage.store.feed.event_log import CROWDED, settled
from moorage.store.read.leases import count
from moorage.store.schema import tables
from moorage.store.values import stored_bodies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.capacity_windows import CapacityWindow
    from moorage.domain.changes import (
        BoundShareOffers,
        Change,
        DeleteSubscription,
        DropDeadLetters,
        PassEvents,
        PutDeadLetters,
        PutEvent,
        PutSubscription,
        TrimEvents,
    )
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease
    from moorage.domain.plans import Plan
    from moorage.domain.server_providers import ServerProvider
    from moorage.domain.subscriptions import Subscription
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.store.commit.batch import Batch
    from moorage.store.database.session import Session

_subs, _d = tables.subscriptions.c, tables.dead_letters.c
_SUBSCRIPTION: Final = Kind.of("subscription", _subs.generation)
_PASS: Final = (
    update(tables.subscriptions)
    .where(_subs.id == OF, _subs.reached == bindparam("seen"))
    .values(reached=bindparam("to"))
)
_OFFERED: Final = select(tables.server_providers.c.body).where(tables.server_providers.c.id == OF)
_SHARED: Final = select(tables.ensembles.c.body).where(
    tables.ensembles.c.id == OF, exists().where(tables.shares.c.ensemble_id == OF)
)
_LOOKED_AT: Final = 2_000
"""The newest events of a project among which offers of roles are counted."""
_NEWEST: Final = (
    select(tables.events.c.type, tables.events.c.at, tables.events.c.body)
    .where(tables.events.c.project_id == OF)
    .order_by(tables.events.c.position.desc())
    .limit(_LOOKED_AT)
    .subquery()
)
_SHARE_OFFERS: Final = select(_NEWEST.c.at, _NEWEST.c.body).where(
    _NEWEST.c.type == "share.offered", _NEWEST.c.at > bindparam("since")
)
_SOME: Final[Any] = bindparam("some", expanding=True)
_LETTERS: Final = insert(tables.dead_letters)
_NO_LETTERS: Final = delete(tables.dead_letters).where(_d.subscription_id == OF)
_DROP: Final = _NO_LETTERS.where(_d.id.in_(_SOME))
_SURPLUS: Final = (
    select(_d.number)
    .where(_d.subscription_id == OF)
    .order_by(_d.number.desc())
    .offset(bindparam("keep", type_=Integer))
    .limit(1)
)
_CUT: Final = _NO_LETTERS.where(_d.number <= bindparam("last"))


def put_subscription(batch: Batch, change: PutSubscription) -> None:
    """See `PutSubscription`.

    Raises:
        DuplicateName, NotFound, ConcurrentUpdate, QuotaExceeded.
    """
    one = change.subscription
    if change.generation is None and change.limit is not None:
        used = count(batch.connection, one.project_id, QuotaName.SUBSCRIPTIONS)
        refuse_beyond(batch, one.project_id, QuotaName.SUBSCRIPTIONS, change.limit, used + 1)
    if change.generation is not None:
        one = replace(one, generation=change.generation + 1)
    write(batch, _SUBSCRIPTION, one.id, _columns(one), change.generation)


def _columns(one: Subscription) -> dict[str, Any]:
    return {
        "project_id": one.project_id,
        "name": one.name,
        "thresholds": one.threshold != NO_THRESHOLD,
        "reached": one.reached,
        "not_before": one.not_before,
        "generation": one.generation,
        "body": stored_bodies.SUBSCRIPTION.encode(one),
    }


def pass_events(batch: Batch, change: PassEvents) -> None:
    """See `PassEvents`."""
    for id_, seen, reached in change.passed:
        batch.connection.do(_PASS, {"of": id_, "seen": seen, "to": reached})


def delete_subscription(batch: Batch, change: DeleteSubscription) -> None:
    """See `DeleteSubscription`.

    Raises:
        NotFound: there is none.
    """
    if batch.connection.scalars(_SUBSCRIPTION.taken, {"of": change.id}).first() is None:
        raise NotFound("subscription", change.id)
    batch.connection.do(_SUBSCRIPTION.delete, {"of": change.id})
    batch.connection.do(_NO_LETTERS, {"of": change.id})


def put_dead_letters(batch: Batch, change: PutDeadLetters) -> None:
    """See `PutDeadLetters`. One that was there is written anew."""
    mine = {"of": change.subscription_id}
    for some in chunks(one.id for one in change.letters):
        batch.connection.do(_DROP, mine | {"some": some})
    rows = [
        {
            "id": one.id,
            "subscription_id": one.subscription_id,
            "queued": one.queued,
            "body": stored_bodies.DEAD_LETTER.encode(one),
        }
        for one in change.letters
    ]
    if rows:
        batch.connection.do(_LETTERS, rows)
    last = batch.connection.scalars(_SURPLUS, mine | {"keep": change.keep}).first()
    if last is not None:
        batch.connection.do(_CUT, mine | {"last": last})


def drop_dead_letters(batch: Batch, change: DropDeadLetters) -> None:
    """See `DropDeadLetters`."""
    for some in chunks(change.ids):
        batch.connection.do(_DROP, {"of": change.subscription_id, "some": some})


_e, _l, _s = tables.events.c, tables.ledger.c, tables.subscriptions.c
_b = tables.event_starts.c
_TELL: Final = insert(tables.events)
_OLDEST: Final = (
    select(_e.position, _e.at)
    .where(_e.position < bindparam("settled"))
    .order_by(_e.position)
    .limit(bindparam("most", type_=Integer))
)
_QUIET: Final = (
    update(tables.subscriptions)
    .where(
        _s.reached < bindparam("quiet"),
        ~exists().where(
            _e.project_id == _s.project_id,
            _e.position > _s.reached,
            _e.position <= bindparam("quiet"),
        ),
    )
    .values(reached=bindparam("quiet"))
)
_TRIM: Final = delete(tables.events).where(_e.position <= bindparam("upto"))
_START: Final = update(tables.ledger).values(
    events_start=bindparam("upto"), events_start_at=bindparam("upto_at")
)
_NO_STARTS: Final = delete(tables.event_starts).where(_b.position <= bindparam("upto"))
_PROJECT: Final = _e.project_id == bindparam("project")
_NEWEST_TOO_MANY: Final = (
    select(_e.position)
    .where(_PROJECT)
    .order_by(_e.position.desc())
    .offset(bindparam("keep", type_=Integer))
    .limit(1)
)
_TOO_MANY: Final = _OLDEST.where(_PROJECT, _e.position <= bindparam("upto"))
_TRIM_PROJECT: Final = _TRIM.where(_PROJECT)
_NO_START: Final = delete(tables.event_starts).where(_b.project_id == bindparam("project"))
_START_OF: Final = insert(tables.event_starts)


@dataclass(frozen=True, slots=True)
class _Replaced:
    """See `happened.StoredState`: the rows that this commit wrote over."""

    batch: Batch

    def lease(self, id_: str) -> Lease | None:
        row = self.batch.replaced.get(("lease", id_))
        return None if row is None else stored_bodies.LEASE.decode(row.body)

    def entry(self, id_: str) -> WaitlistEntry | None:
        row = self.batch.replaced.get(("waitlist entry", id_))
        return None if row is None else stored_bodies.ENTRY.decode(row.body)

    def decision_state(self, id_: str) -> str | None:
        row = self.batch.replaced.get(("decision", id_))
        return None if row is None else str(row.state)

    def untold_refusals(self, explanation_id: str) -> int | None:
        return self.batch.untold.get(explanation_id)

    def shared_ensemble(self, id_: str) -> Ensemble | None:
        body = self.batch.connection.scalars(_SHARED, {"of": id_}).first()
        return None if body is None else stored_bodies.ENSEMBLE.decode(body)

    def server_provider(self, id_: str) -> ServerProvider | None:
        body = self.batch.connection.scalars(_OFFERED, {"of": id_}).first()
        return None if body is None else stored_bodies.SERVER_PROVIDER.decode(body)

    def window(self, id_: str) -> CapacityWindow:
        return stored_bodies.CAPACITY_WINDOW.decode(
            self.batch.replaced["capacity window", id_].body
        )

    def plan(self, id_: str) -> Plan | None:
        row = self.batch.replaced.get(("plan", id_))
        return None if row is None else stored_bodies.PLAN.decode(row.body)

    def owner(self, id_: str) -> tuple[str, str]:
        row = self.batch.replaced["ensemble", id_]
        return row.project_id, row.name


def write_events(batch: Batch, every: Sequence[Change], revision: int) -> None:
    """Write what the changes of a commit mean, in their order."""
    found = [
        {
            "position": position(revision, number),
            "id": fact_id("event", revision, number, batch.now),
            "type": one.type,
            "project_id": one.project_id,
            "subject": one.subject,
            "at": batch.now,
            "generation": one.generation,
            "body": stored_bodies.EVENT_BODY.encode(one.body),
            "actor": batch.actor,
        }
        for number, one in enumerate(derive_events(every, _Replaced(batch)))
    ]
    if found:
        batch.connection.do(_TELL, found)


def bound_share_offers(batch: Batch, change: BoundShareOffers) -> None:
    """See `BoundShareOffers`.

    Raises:
        TooManyRequests: the owner has offered the project roles too often.
    """
    since = batch.now - change.within
    given = {"of": change.project_id, "since": since}
    found = [
        row.at
        for row in batch.connection.execute(_SHARE_OFFERS, given)
        if stored_bodies.EVENT_BODY.decode(row.body)["owner"] == change.owner
    ]
    if len(found) >= change.most:
        after = min(found[: change.most], default=batch.now) - since
        raise TooManyRequests(
            f"project {change.owner} has offered roles to project {change.project_id}"
            f" {change.most} times in {change.within // MINUTE} minutes, as often as it may",
            retry_after=max(-(-after // SECOND), 1),
        )


def put_event(batch: Batch, change: PutEvent) -> None:
    """See `PutEvent`. It is written with those that other changes mean."""
    del batch, change


def trim_events(batch: Batch, change: TrimEvents) -> None:
    """See `TrimEvents`. What a transaction that still runs may put before is not passed."""
    connection = batch.connection
    bound = settled(connection)
    given = {"settled": bound, "most": change.most}
    old = takewhile(lambda row: row.at < change.before, connection.execute(_OLDEST, given))
    if (gone := deque(old, 1)) and (last := gone.pop()):
        connection.do(_QUIET, {"quiet": bound - 1})
        connection.do(_TRIM, {"upto": last.position})
        connection.do(_NO_STARTS, {"upto": last.position})
        connection.do(_START, {"upto": last.position, "upto_at": last.at})
    for crowd in connection.execute(CROWDED, {"keep": change.keep}).all():
        _trim_project(connection, crowd.project_id, change.keep, given)


def _trim_project(connection: Session, project_id: str, keep: int, given: dict[str, int]) -> None:
    """Delete the oldest events of a project that has too many."""
    project = {"project": project_id}
    upto = connection.scalars(_NEWEST_TOO_MANY, {**project, "keep": keep}).one()
    gone = connection.execute(_TOO_MANY, {**given, **project, "upto": upto}).all()
    if gone:
        last = gone[-1]
        connection.do(_TRIM_PROJECT, {**project, "upto": last.position})
        connection.do(_NO_START, project)
        connection.do(
            _START_OF, {"project_id": project_id, "position": last.position, "at": last.at}
        )
