"""`moorage admin import blazar`: imports a running Blazar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli.admin import (
    CATALOG,
    OPERATOR,
    SHOWN,
    as_plain,
    declare_database,
    declare_source,
    environment_of,
    ledger,
    service,
    side_by_side,
    spelled_out,
    trial_ledger,
)
from moorage.cli.command import Command
from moorage.cli.output import CONFLICT, OK, Shown, stack
from moorage.cli.progress import Adder, progress
from moorage.domain.words import counted, first_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from moorage.domain.content import Difference
    from moorage.domain.reservation_content import ReservationContent
    from moorage.store import Ledger
    from moorage.usecases.blazar.takeover import NotTakenOver


class Blazar(Command):
    """Take over a Blazar: its reservable hosts and floating IPs, and leases not ended.

    The source is only read, over REST (version 1), as an operator. Leases keep their names, dates,
    projects, users and ids, and their reservations' ids, so that flavors with
    CUSTOM_RESERVATION_<ID> go on working. Each lease is granted here with a proof; one that Blazar
    has overbooked is listed with the reason. Records that the ledger has already are left alone,
    so an interrupted import is repeated. Afterwards everything is compared. The exit status is 4
    if anything differs.

    Hosts are found by name in the ledger: import Placement first.
    """

    examples = """
        moorage admin import blazar --from http://127.0.0.1:1234/v1 --dry-run
        moorage admin import blazar --from catalog --keystone
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        declare_source(parser)
        add("--dry-run", action="store_true", help="read and compare, write nothing")
        declare_database(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.blazar_source import SERVICE, endpoint_of, read_blazar
        from moorage.usecases.blazar.takeover import (
            differences,
            foreseeable_refusals,
            missing,
            take_over,
        )

        url = args.source if args.source == CATALOG else endpoint_of(args.source)
        opened = trial_ledger if args.dry_run else ledger
        with (
            progress(self.app.stderr) as tell,
            service(url, args, SERVICE) as wire,
            opened(args) as store,
        ):
            content = read_blazar(wire, store.now())
            parts = environment_of(store, args)
            lacking = missing(store, content)
            if args.dry_run:
                refused = foreseeable_refusals(parts, lacking)
            else:
                writing = Adder(tell, "writing", lacking.steps)
                refused = take_over(parts, OPERATOR, lacking, advance=lambda: writing.advance(1))
            unlike = list(differences(store, content))
            body = _body(store, content, refused, unlike)
        if args.dry_run:
            body["would_write"] = lacking.steps - len(refused)
            known = [one for one in unlike if one.way != "missing"]
            return Shown(body, _told_plan(body), CONFLICT if refused or known else OK)
        body["written"] = lacking.steps - len(refused)
        return Shown(body, _told(body), CONFLICT if unlike else OK)


def _body(
    store: Ledger,
    content: ReservationContent,
    refused: Sequence[NotTakenOver],
    unlike: Sequence[Difference],
) -> dict[str, Any]:
    return {
        "source": content.counts(),
        "ledger": _found(store, content),
        "ended": content.ended,
        "refused": [
            {"kind": one.kind, "id": one.id, "name": one.name, "reason": one.reason}
            for one in refused
        ],
        "differences": [as_plain(one) for one in unlike],
    }


def _found(store: Ledger, content: ReservationContent) -> dict[str, int]:
    """How much of the source is in the ledger."""
    from dataclasses import replace

    from moorage.usecases.blazar.takeover import missing

    lacking = missing(store, content)
    lost = replace(
        content, hosts=lacking.hosts, addresses=lacking.addresses, leases=lacking.leases
    ).counts()
    return {name: number - lost[name] for name, number in content.counts().items()}


def _told_plan(body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - something rich
    would = f"would write {body['would_write']}; nothing was written"
    known = [one for one in body["differences"] if one["way"] != "missing"]
    return stack(side_by_side(body), *_refused(body), *spelled_out(known), would)


def _told(body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - something rich
    unlike = len(body["differences"])
    verdict = f"wrote {body['written']}; "
    verdict += counted(unlike, "difference") if unlike else "all equal"
    reasons = {(one["kind"], one["id"]) for one in body["refused"]}
    reasons |= {(one["kind"], one["name"]) for one in body["refused"]}
    rest = [one for one in body["differences"] if (one["kind"], one["subject"]) not in reasons]
    return stack(side_by_side(body), *_refused(body), *spelled_out(rest), verdict)


def _refused(body: Mapping[str, Any]) -> list[str]:
    lines = []
    for one in body["refused"]:
        name = one["name"] if one["name"] == one["id"] else f"{one['name']} ({one['id']})"
        lines.append(f"{one['kind']} {name} cannot be taken over: {one['reason']}")
    return first_of(lines, SHOWN)
