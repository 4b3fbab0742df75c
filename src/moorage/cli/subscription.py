"""`moorage subscription create|list|show|delete|deadletters|resend`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli.columns import columns, pairs
from moorage.cli.command import Command
from moorage.cli.event import what
from moorage.cli.output import Shown, fields, listing, short, stack
from moorage.cli.parser import ALL_PROJECTS, DRY_RUN, Option, new_name
from moorage.cli.times import length, span
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse

    from moorage.wire.events import Subscription


SUBSCRIPTION = Option("subscription", metavar="SUBSCRIPTION", help="id, its beginning, or a name")


class Create(Command):
    """Deliver events to a URL; the secret that signs them is shown this once."""

    examples = """
        moorage subscription create --event 'lease.*' --url https://hooks.example.org/moorage
        moorage subscription create --event lease.time_left --before 24h --url https://...
        moorage subscription create --event ensemble.max_additional --role worker --below 3 \\
            --url http://127.0.0.1:9000/hook
        moorage subscription create --event capacity.threshold --flavor m1.large --zone az1 \\
            --below 20 --url https://...
    """
    options = (
        Option(
            "--event",
            action="append",
            required=True,
            metavar="TYPE",
            help="a type such as lease.degraded, or a pattern such as 'lease.*'; repeatable",
        ),
        Option("--url", required=True, metavar="URL", help="where they are delivered"),
        Option("--name", type=new_name, help="a name of your choice"),
        Option("--secret", metavar="SECRET", help="whsec_ and base64 (default: generated)"),
        Option("--lease", metavar="LEASE", help="only events of this lease"),
        Option("--ensemble", metavar="ENSEMBLE", help="only events of this ensemble"),
        Option("--role", metavar="ROLE", help="only events of this role"),
        Option("--below", type=int, metavar="N", help="notify when fewer than N fit"),
        Option(
            "--above-share",
            type=float,
            metavar="SHARE",
            help="notify when a greater share is used: 0.9",
        ),
        Option("--flavor", metavar="FLAVOR", help="capacity for this flavor (operators)"),
        Option("--resource-class", metavar="CLASS", help="capacity of this class (operators)"),
        Option("--zone", metavar="ZONE", help="only in this domain, such as a zone or a rack"),
        Option(
            "--before", type=span, metavar="DURATION", help="notify so long before the edge: 24h"
        ),
        Option(
            "--edge",
            choices=("start", "end"),
            default="end",
            help="edge of the lease (default: end)",
        ),
        DRY_RUN,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            body = {
                "events": args.event,
                "url": args.url,
                "name": args.name or "",
                "secret": args.secret,
                "lease_id": args.lease and client.leases.find(args.lease),
                "ensemble_id": args.ensemble and client.ensembles.find(args.ensemble),
                "role": args.role,
                "below": args.below,
                "above_share": args.above_share,
                "flavor": args.flavor,
                "resource_class": args.resource_class,
                "zone": args.zone,
                "before": _duration(args.before),
                "edge": args.edge,
            }
            given = {name: value for name, value in body.items() if value not in (None, "")}
            answer = client.subscriptions.create(given, dry_run=args.dry_run)
        one = answer.value
        if args.dry_run:
            return Shown(answer.body, f"subscription  {' '.join(one.events)}  can be created")
        return Shown(
            answer.body,
            stack(
                f"subscription {short(one.id)}  {' '.join(one.events)}  to {one.url}",
                f"secret {one.secret}",
            ),
        )


def _duration(text: str | None) -> str | None:
    """Read a duration: `24h` as `PT24H`."""
    if text is None:
        return None
    from moorage.domain.period import format_duration, parse_duration

    return format_duration(parse_duration(text))


class List(Command):
    """List subscriptions, with the number of events delivered."""

    examples = "moorage subscription list"
    options = (ALL_PROJECTS,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.subscriptions.all(all_projects=args.all_projects)
        cells = columns("id:short name events url status #delivered #dead=dead_letters")
        return Shown(answer.body, listing(cells, answer.value))


class Show(Command):
    """Show a subscription, with the state of its deliveries."""

    examples = "moorage subscription show 1f2e"
    options = (SUBSCRIPTION,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.subscriptions.show(client.subscriptions.find(args.subscription))
        return Shown(answer.body, fields(_described(answer.value)))


def _described(one: Subscription) -> list[tuple[str, object]]:
    failing = "failing_since:moment attempts next_attempt:moment" if one.failing_since else ""
    return [
        *pairs(one, "id name? project=project_id events url lease=lease_id ensemble=ensemble_id"),
        *pairs(one, "role below above_share flavor resource_class zone"),
        ("before", f"{length(one.before)} the {one.edge}" if one.before else None),
        *pairs(one, f"status delivered given_up? dead_letters? {failing} last_outcome=outcome"),
    ]


class Delete(Command):
    """Delete a subscription with its dead letters."""

    examples = "moorage subscription delete 1f2e"
    options = (SUBSCRIPTION,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            found = client.subscriptions.find(args.subscription)
            client.subscriptions.delete(found)
        return Shown({"deleted": found}, f"subscription {short(found)}  deleted")


class DeadLetters(Command):
    """List the events that could not be delivered to a subscription."""

    examples = "moorage subscription deadletters 1f2e"
    options = (SUBSCRIPTION,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            found = client.subscriptions.find(args.subscription)
            answer = client.subscriptions.dead_letters(found)
        cells = {
            **columns("id:short at=event.at:moment type=event.type"),
            "what": lambda one: what(one.event),
            **columns("problem queued:yes"),
        }
        return Shown(answer.body, listing(cells, answer.value))


class Resend(Command):
    """Send dead letters of a subscription again: those named, or all."""

    examples = """
        moorage subscription resend 1f2e
        moorage subscription resend 1f2e 77aa 88bb
    """
    options = (
        SUBSCRIPTION,
        Option("letters", metavar="ID", nargs="*", help="ids, or their beginnings"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.lookup import pick

        with self.client() as client:
            found = client.subscriptions.find(args.subscription)
            chosen: list[str] | None = None
            if args.letters:
                every = client.subscriptions.dead_letters(found).value
                items = [{"id": one.id} for one in every]
                chosen = [pick("dead letter", text, items) for text in args.letters]
            reply = client.subscriptions.resend(found, chosen)
        number = int(reply.body["queued"])
        return Shown(reply.body, f"{counted(number, 'dead letter')} queued to be sent again")
