"""`moorage decision show|list|flavors|renew|confirm|release`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec

from moorage.cli import confirm, decision_text, mix
from moorage.cli.columns import columns, pairs
from moorage.cli.command import Command
from moorage.cli.compliance import with_begun
from moorage.cli.listing import part_of
from moorage.cli.output import Shown, fields, listing, moment, short, stack, table
from moorage.cli.parser import Flag, Option
from moorage.cli.times import period, span
from moorage.client.errors import Missing, NotFound
from moorage.domain.words import natural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from rich.console import RenderableType

    from moorage.client.moorage import Moorage
    from moorage.client.resource import Answer
    from moorage.wire.decisions import Assignment, Decision


DECISION = Option(
    "decision",
    metavar="DECISION",
    help="id, its beginning, or an ensemble: its newest decision",
)


def find(client: Moorage, text: str) -> Answer[Decision]:
    """The decision with an id or its beginning, or the newest decision of an ensemble."""
    try:
        return client.decisions.show(client.decisions.find(text))
    except (Missing, NotFound):
        decisions = client.decisions.all(ensemble_id=client.ensembles.find(text)).value
        if not decisions:
            raise
        return client.decisions.show(str(decisions[0].id))


class Show(Command):
    """Show a decision: the place of each member, and how it was found."""

    examples = """
        moorage decision show 6f0c
        moorage decision show 6f0c --record
    """
    options = (
        DECISION,
        Flag("--record", "also who asked, for what, and what was considered"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = find(client, args.decision)
            one = answer.value
            record = client.decisions.record(str(one.id)) if args.record else None
        placed = {item.member: item for item in one.assignments}
        head = fields(
            [
                ("id", one.id),
                ("ensemble", f"{one.ensemble_id} (generation {one.ensemble_generation})"),
                ("status", _status(one.status)),
                (
                    "held until",
                    moment(one.expires_at) if one.assignments and one.expires_at else None,
                ),
                *pairs(one, "places_gone=withdrawn:listed?"),
                ("stays", _stays(one)),
                *(("out of service", line) for line in decision_text.out_of_service(placed)),
                ("lease", one.lease_id),
                ("found by", found_by(one)),
            ]
        )
        ends = decision_text.ends(one.assignments)
        ordered = sorted(one.assignments, key=lambda item: natural(item.member))
        title, stands = decision_text.places([item.domains for item in ordered])
        chosen = any(item.alternative is not msgspec.UNSET for item in ordered)
        places = [
            (
                item.member,
                *((_alternative(item),) if chosen else ()),
                *(place, short(item.claimed_by or "-")),
                *((decision_text.until(item),) if ends else ()),
            )
            for item, place in zip(ordered, stands, strict=True)
        ]
        columns = [
            *("member", *(["alternative"] if chosen else []), title, "claim"),
            *(["until"] if ends else []),
        ]
        policies = [
            (item.name, decision_text.met(item), item.slack, item.penalty or "")
            for item in one.policies
        ]
        parts: list[RenderableType] = [head, "", table(columns, places)]
        if policies:
            parts += ["", table(["policy", "met", "#slack", "#cost"], policies)]
        body = answer.body
        if record is not None:
            parts += ["", decision_text.record(record.value), "", mix.room_taken(one.solve.room)]
            body = {**body, **record.body}
        return Shown(body, stack(*parts))


def _alternative(item: Assignment) -> str:
    """Which of its role's alternatives a member is; `-` where there are none."""
    return "-" if item.alternative is msgspec.UNSET else str(item.alternative)


def _stays(decision: Decision) -> str | None:
    """The period of a placement that is bounded or may become so."""
    interval = decision.interval
    if interval.end is None:
        return "preemptible" if decision.preemptible else None
    stays = period(interval.start, interval.end)
    return f"{stays}, preemptible" if decision.preemptible else stays


_PAST = frozenset({"expired", "released", "superseded"})


def _status(status: str) -> str:
    """The status; of a decision that no longer holds, where current places are shown."""
    return (
        f"{status} (past places; current ones: moorage ensemble show)"
        if status in _PAST
        else status
    )


def found_by(decision: Decision) -> str:
    """How it was found: `cpsat in 38 ms, cost 2 (proven best), seed 0, at revision 7`."""
    solve = decision.solve
    proof = f"no better than {solve.bound:g}, gap {solve.gap:.0%}, ended by {solve.ended}"
    if solve.optimal:
        proof = "proven best"
    return (
        f"{solve.solver} in {solve.wall_ms:.0f} ms, cost {solve.value:g} ({proof}),"
        f" seed {solve.seed}, at revision {decision.revision}"
    )


class List(Command):
    """List decisions, newest first, also those about ensembles that your project takes part in."""

    options = (Option("--ensemble", help="only decisions of this ensemble"),)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble) if args.ensemble else None
            answer = client.decisions.all(
                ensemble_id=ensemble_id, part=part_of(args, {"decided": "created_at"})
            )
        cells = {
            **columns("id:short ensemble=ensemble_id:short status"),
            "#size": lambda one: len(one.assignments),
            "held until": lambda one: decision_text.held_until(one) if one.assignments else "-",
            **columns("decided=computed_at:moment"),
        }
        return Shown(answer.body, listing(cells, answer.value))


class Flavors(Command):
    """Show the Nova flavors whose servers take a decision's held places.

    Each role of servers has one. An operator creates it in Nova for the project, with the commands
    that --commands prints; servers that are created with it take the role's places until none is
    left. Delete the flavors when the decision is over: servers keep what they were created with.
    """

    examples = "moorage decision flavors shop --commands"
    options = (DECISION, Flag("--commands", "print commands that create and delete them"))

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            one = find(client, args.decision).value
        flavors = one.ticket_flavors
        body = {"ticket_flavors": [msgspec.to_builtins(each) for each in flavors]}
        if args.commands:
            return Shown(body, "\n".join(flavor_commands(one)))
        columns = ["role", "name", "#vcpus", "#ram", "#disk", "id"]
        rows = [(f.role, f.name, f.vcpus, f.ram, f.disk, f.id) for f in flavors]
        return Shown(body, table(columns, rows))


def flavor_commands(decision: Decision) -> Iterator[str]:
    """Commands of the `openstack` client that create a decision's flavors, and delete them."""
    flavors = decision.ticket_flavors
    for one in flavors:
        words = ["openstack", "flavor", "create", one.name, "--private", "--id", one.id]
        words += ["--project", one.project_id or decision.project_id, "--vcpus", str(one.vcpus)]
        words += ["--ram", str(one.ram), "--disk", str(one.disk)]
        words += ["--ephemeral", str(one.ephemeral)] if one.ephemeral else []
        words += ["--swap", str(one.swap)] if one.swap else []
        for name, value in one.extra_specs.items():
            words += ["--property", f"{name}={value}"]
        yield shlex.join(words)
    if decision.ticket_flavors:
        yield f"# when decision {decision.id} is over:"
        yield shlex.join(
            ["openstack", "flavor", "delete", *(f.id for f in decision.ticket_flavors)]
        )


class Renew(Command):
    """Extend the hold of a decision.

    The new hold starts now. The service limits its length and the number of renewals.
    """

    examples = "moorage decision renew 6f0c --hold 30m"
    options = (
        DECISION,
        Option("--hold", type=span, required=True, metavar="10m", help="from now on"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            found = find(client, args.decision).value
            answer = client.decisions.renew(str(found.id), args.hold, found.generation)
        return Shown(answer.body, decision_text.SEPARATOR.join(decision_text.held(answer.value)))


class Confirm(Command):
    """Close a decision: what is claimed stays, the rest is freed.

    If places would be freed, it asks first; without a terminal it needs --yes.
    """

    options = (DECISION, confirm.yes_argument)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            found = find(client, args.decision).value
            if not args.yes:
                confirm.ask_to_close(client, found, self.app.stderr)
            answer = client.decisions.confirm(str(found.id))
        text = decision_text.confirmed(answer.body)
        return Shown(answer.body, with_begun(text, answer.body))


class Release(Command):
    """Release a decision's places."""

    options = (DECISION,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            found = find(client, args.decision).value
            body = client.decisions.release(str(found.id), found.generation).body
        text = with_begun(f"released {short(str(found.id))}", body)
        return Shown({"released": found.id, **(body or {})}, text)
