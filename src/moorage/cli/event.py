"""`moorage event list|follow`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.command import Command
from moorage.cli.decision_progress import state_of_search
from moorage.cli.decision_text import who
from moorage.cli.output import Shown, as_json, moment, short, table
from moorage.cli.parser import Option
from moorage.client.errors import Ambiguous, Missing, NotFound
from moorage.client.lookup import UUID
from moorage.domain.events import PROGRESS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from moorage.client.events import EventCalls
    from moorage.client.moorage import Moorage
    from moorage.wire.events import Event

COLUMNS: Final = ("at", "type", "subject", "by", "what")
_PAGE: Final = 1000
_WAIT: Final = 20
"""Seconds that one request waits."""
_SAID: Final = (
    *(
        "name",
        "role",
        "roles",
        "policy",
        "member",
        "server",
        "ends",
        "edge",
        "changed",
        "counts",
        "policies",
        "missing",
        "before",
        "now",
    ),
    *("kind", "hosts", "because", "host", "closed"),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select events."""
    add = parser.add_argument
    add("--type", action="append", default=[], metavar="TYPE", help="such as 'lease.*'; repeatable")
    add(
        "--subject",
        metavar="WHAT",
        help="only events about it (of a lease also about its ensemble): a name, or an id",
    )
    add("--after", metavar="CURSOR", help="only events after this one; `now`: from now on")
    add("--all-projects", action="store_true", help="for operators")


def rows(events: Sequence[Event]) -> RenderableType:
    """The events as table rows."""
    return table(COLUMNS, [_row(one) for one in events])


def _row(one: Event) -> tuple[str, ...]:
    return moment(one.at), one.type, short(one.subject), who(one), what(one)


def what(one: Event) -> str:
    """The main fields of an event's body: `name shop, missing 1`."""
    body = one.body
    if one.type == PROGRESS:
        return state_of_search(body)
    if {"crossed", "now"} <= body.keys():
        return _crossing(body)
    said = {name: body[name] for name in _SAID if body.get(name)}
    return ", ".join(f"{name} {_word(value)}" for name, value in said.items())


def _crossing(body: Mapping[str, Any]) -> str:
    """A threshold's measure: `worker 5 -> 0 (below 3)`, `VCPU of az1 0.88 -> 0.93 (above 0.9)`."""
    shared = body.get("above_share") is not None and body.get("resource_class") is not None
    bound = body["above_share"] if shared else body.get("below")
    measured = body.get("role") or body.get("flavor") or body.get("resource_class")
    zone = f" of {body['zone']}" if body.get("zone") else ""
    before = "-" if body.get("before") is None else body["before"]
    return f"{measured}{zone} {before} -> {body['now']} ({body['crossed']} {bound})"


def _word(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name} {_word(one)}" for name, one in value.items())
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def subjects_of(client: Moorage, text: str | None) -> tuple[str, ...]:
    """The ids for a name, an id or its beginning: the subject's, and of a lease its ensemble's.

    Full ids need not exist. A name is looked for among leases, then ensembles, offers and
    subscriptions.

    Raises:
        Missing: there is no such name or id.
        Ambiguous: the beginning is that of several ids.
    """
    if text is None:
        return ()
    id_ = text if UUID.fullmatch(text) else _found(client, text)
    try:
        lease = client.leases.show(id_).value
    except (Missing, NotFound):
        return (id_,)
    return (id_, lease.ensemble_id)


def _found(client: Moorage, text: str) -> str:
    found: dict[str, None] = {}
    for find in (
        client.leases.find,
        client.ensembles.find,
        client.offers.find,
        client.subscriptions.find,
        client.decisions.find,
    ):
        try:
            id_ = find(text)
        except Missing:
            continue
        if not id_.startswith(text):
            return id_  # by its name: that goes before
        found[id_] = None
    if not found:
        raise Missing("lease, ensemble, offer, subscription or decision", text)
    if len(found) > 1:
        raise Ambiguous("subject", text, tuple(found))
    return next(iter(found))


class List(Command):
    """List events, oldest first, with the cursor from which to continue."""

    examples = """
        moorage event list --type 'lease.*' --subject upf-dec
        moorage event list --subject 1f2e3d4c
        moorage event list --after 2f00001-660c9642f134b
    """
    options = (arguments, Option("--limit", type=int, metavar="N", help="at most so many"))

    def act(self, args: argparse.Namespace) -> Shown:
        found: list[Event] = []
        bodies: list[object] = []
        cursor, lost = args.after, None
        with self.client() as client:
            subjects = subjects_of(client, args.subject)
            while True:
                left = _PAGE if args.limit is None else min(args.limit - len(found), _PAGE)
                page = client.events.page(
                    cursor,
                    types=args.type,
                    subjects=subjects,
                    limit=left,
                    all_projects=args.all_projects,
                )
                found += page.value.events
                bodies += page.body["events"]
                cursor, lost = page.value.cursor, lost or page.value.lost_before
                if not page.value.more or (args.limit is not None and len(found) >= args.limit):
                    break
        body = {"events": bodies, "cursor": cursor, "more": page.value.more, "lost_before": lost}
        from moorage.cli.output import stack

        gone = [f"events up to {moment(lost)} are kept no more"] if lost else []
        return Shown(body, stack(*gone, rows(found), f"cursor {cursor}"))


class Follow(Command):
    """Print events as they happen, until interrupted.

    With `-f json` each event is an object on a line of its own.
    """

    examples = """
        moorage event follow
        moorage event follow --type 'lease.*' -f json
    """
    options = (arguments, Option("--limit", type=int, metavar="N", help="stop after so many"))

    def act(self, args: argparse.Namespace) -> None:
        left = args.limit
        with self.client() as client:
            subjects = subjects_of(client, args.subject)
            for body, one in _following(client.events, args, subjects):
                if args.form == "table":
                    line = "  ".join(part for part in _row(one) if part)
                else:
                    line = " ".join(as_json(body).split()) if args.form == "json" else as_json(body)
                sys.stdout.write(line + "\n")
                sys.stdout.flush()
                if left is not None and (left := left - 1) <= 0:
                    return


def _following(
    calls: EventCalls, args: argparse.Namespace, subjects: Sequence[str]
) -> Iterator[tuple[object, Event]]:
    cursor = args.after or "now"
    while True:
        page = calls.page(
            cursor,
            types=args.type,
            subjects=subjects,
            wait=_WAIT,
            all_projects=args.all_projects,
        )
        cursor = page.value.cursor
        bodies = page.body["events"]
        yield from zip(bodies, page.value.events, strict=True)
