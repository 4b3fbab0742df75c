"""`moorage lease show|list|cancel|events`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

from moorage.cli import lease_text
from moorage.cli.columns import columns, pairs
from moorage.cli.command import Command
from moorage.cli.compliance import with_begun
from moorage.cli.gantt import MARKS
from moorage.cli.listing import part_of
from moorage.cli.output import (
    Shown,
    fields,
    listing_of_projects,
    moment,
    stack,
    table,
)
from moorage.cli.parser import ALL_PROJECTS, DRY_RUN, Option
from moorage.cli.times import TIME_HELP, actions, minute, time_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from moorage.wire.leases import Lease

STATES = tuple(MARKS)
IDEMPOTENCY_HELP = "idempotency key: a repeat with the same id changes nothing"


LEASE = Option("lease", metavar="LEASE", help="L3, a name, or an id (its beginning)")


def idempotency_key(text: str) -> str:
    """Read the caller's own id.

    Raises:
        argparse.ArgumentTypeError: not a UUID.
    """
    try:
        return str(UUID(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"an id is a UUID, not {text!r}") from None


def identified(args: argparse.Namespace) -> dict[str, str]:
    """The idempotency key of a request: given, or new.

    A dry run has none unless it is given.
    """
    return {} if args.dry_run and args.id is None else {"id": args.id or str(uuid4())}


class Show(Command):
    """Show a lease: its period, its places, and the servers that end early for it."""

    examples = "moorage lease show shop-week"
    options = (LEASE,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.leases.show(client.leases.find(args.lease))
        return Shown(answer.body, _described(answer.value))


def _described(one: Lease) -> RenderableType:
    # For a closed lease the guarantee is shown only if the lease was preempted.
    over = one.status == "closed"
    head = fields(
        [
            ("lease", lease_text.called(one)),
            *pairs(one, "id name project=project_id status outcome waits_as=waitlist_entry"),
            *pairs(one, "degraded? missing?"),
            ("proposal", lease_text.proposal(one)),
            ("notify", None if one.proposal else lease_text.notified(one)),
            (
                "guarantee",
                None if over and one.guarantee == "proved" else lease_text.guarantee(one),
            ),
            *pairs(one, "start:minute end:minute lead:length cleaning:length"),
            ("expires", minute(one.expires_at) if one.expiry else None),
            *pairs(one, "priority?"),
            ("before start", ", ".join(one.before_start) or "none"),
            *pairs(one, "on_start:actions before_end:actions on_end:actions"),
            ("binding", None if over else lease_text.binding(one)),
            ("series", lease_text.occurrence(one)),
            *pairs(one, "ensemble=ensemble_id decision=decision_id generation"),
        ],
        aside=[
            ("degraded", False),
            ("missing", 0),
            ("notify", lease_text.notified(one)),
            ("guarantee", lease_text.guarantee(one)),
            ("binding", lease_text.binding(one)),
            ("claimed", lease_text.claimed(one)),
            ("priority", one.priority),
        ],
    )
    parts: list[RenderableType] = [head, *(_left(one) if over else _holding(one))]
    displaced = one.displaced
    ends = displaced.consumers if displaced else None
    if ends:
        columns = ["ends early for it", "project", "end", "declared"]
        rows: list[tuple[object, ...]] = [
            (d.consumer, d.project_id, moment(d.end), moment(d.declared_end)) for d in ends
        ]
        if any(d.priority for d in ends):
            columns += ["#priority"]
            rows = [(*row, d.priority) for row, d in zip(rows, ends, strict=True)]
        parts += ["", table(columns, rows)]
    elif displaced and displaced.count:
        parts += ["", f"ending early for it: {displaced.count}"]
    return stack(*parts)


def _holding(one: Lease) -> list[RenderableType]:
    """The lease's places by role, and how servers use them."""
    held = [(r.role, r.flavor or "-", r.count, r.claimed, r.remaining) for r in one.reservations]
    drawn = [(r.role, r.resource_class) for r in one.reservations if r.resource_class]
    places = table(["role", "flavor", "#places", "#claimed", "#remaining"], held)
    parts: list[RenderableType] = ["", places]
    return [*parts, "", table(["role", "resource class of a place"], drawn)] if drawn else parts


def _left(one: Lease) -> list[RenderableType]:
    """The remaining servers of a closed lease by role; nothing if all are gone."""
    rows = [(r.role, r.flavor or "-", r.claimed) for r in one.reservations if r.claimed]
    return ["", table(["role", "flavor", "#servers still there"], rows)] if rows else []


BETWEEN: Final = (
    Option(
        "--from", type=time_of, dest="since", metavar="T", help=f"not over by then: {TIME_HELP}"
    ),
    Option("--to", type=time_of, metavar="T", help="begun before that"),
)
"""The period that what is listed overlaps."""


class List(Command):
    """List leases, oldest first."""

    examples = """
        moorage lease list --state pending
        moorage lease list --name nightly -f json
        moorage lease list --from 2026-12-01 --to 2026-12-08
    """
    options = (
        ALL_PROJECTS,
        Option("--state", choices=STATES, help="only leases in this state"),
        Option("--name", help="only leases of this name"),
        Option("--series", metavar="SERIES", help="only leases of this series"),
        *BETWEEN,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            series = None if args.series is None else client.series.find(args.series)
            answer = client.leases.all(
                name=args.name,
                state=args.state,
                series=series,
                since=args.since,
                until=args.to,
                all_projects=args.all_projects,
                part=part_of(args, {"start": "start", "end": "end"}),
            )
            cells = {
                "lease": lease_text.called,
                **columns("id:short name"),
                "status": lease_text.brief,
                **columns("start:minute end:minute #priority"),
                "roles": lambda one: " ".join(each.role for each in one.reservations),
            }
            found = answer.value.leases
            text = listing_of_projects(
                *(client, args, "/v1/leases", cells, found, ["#priority"]),
                name=args.name,
                state=args.state,
                **{"from": args.since, "to": args.to},
            )
        return Shown(answer.body, text)


class Cancel(Command):
    """Cancel a lease, or end it now where it has started.

    A lease that has not started is closed at once, and servers that would have ended early for it
    keep their former ends where there is room. One that has started ends now, with the actions of
    its end.
    """

    examples = """
        moorage lease cancel shop-week
        moorage lease cancel 1f2e --dry-run
    """
    options = (LEASE, DRY_RUN)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            lease = client.leases.show(client.leases.find(args.lease)).value
            done = client.leases.cancel(lease.id, lease.generation, dry_run=args.dry_run)
            after = client.leases.show(lease.id)
        called = lease_text.called(lease)
        if args.dry_run:
            text = f"lease {called}  {lease.status}, can be cancelled"
        else:
            text = f"lease {called}  {lease_text.status(after.value)}"
        body = after.body | (done.body or {})
        return Shown(body, with_begun(text, body, dry_run=args.dry_run))


class Events(Command):
    """List a lease's events, with their times and outcomes.

    Of a notice `notified` lists who has received it: the operator's webhook, subscriptions by name.
    """

    examples = "moorage lease events shop-week"
    options = (LEASE,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.leases.events(client.leases.find(args.lease))
        rows = [
            (
                minute(one.due),
                one.kind,
                None if one.action is None else actions([one.action]),
                one.status,
                one.attempts,
                lease_text.audience(one.told),
                one.outcome or None,
            )
            for one in sorted(answer.value, key=lambda one: one.due)
        ]
        columns = ["due", "what", "action", "status", "#tries", "notified", "outcome"]
        return Shown(answer.body, table(columns, rows, ("notified",)))
