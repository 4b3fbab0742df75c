"""`moorage admin import placement`: imports a running Placement service."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moorage.cli.admin import (
    CATALOG,
    OPERATOR,
    SHOWN,
    as_plain,
    declare_access,
    declare_database,
    ledger,
    placement_over,
    service,
    side_by_side,
    spelled_out,
    trial_ledger,
)
from moorage.cli.command import Command
from moorage.cli.files import reading
from moorage.cli.fleet_reading import Taking, placing
from moorage.cli.output import CONFLICT, OK, Shown, stack
from moorage.cli.progress import Adder, progress
from moorage.domain.words import counted, first_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TextIO

    from moorage.client.placement_wire import PlacementWire
    from moorage.domain.content import Content, Difference
    from moorage.domain.topology import Topology
    from moorage.store import Ledger
    from moorage.usecases.ledger.placement_takeover import TakeoverPermission, TakeoverPlan


class Placement(Command):
    """Take over a Placement service: all its records, with UUIDs and generations.

    The source is only read: over REST (http://…) or from its database (mysql://…, postgresql://…,
    sqlite:///…). Records that are equal in the ledger are left alone, so an interrupted import is
    repeated. Records that differ are refused without --update, records that only the ledger has
    are refused without --mirror. Overfull inventories are taken over as they are, and listed.
    Afterwards everything is compared, and the same queries are sent to both APIs. The exit status
    is 4 if anything differs.

    A topology file may place hosts by rules over names, aggregates and traits.
    """

    examples = """
        moorage admin import placement --from postgresql://placement@db.example/placement --dry-run
        moorage admin import placement --from catalog --keystone --topology racks.yaml
        moorage admin import placement --from http://127.0.0.1:8778 --mirror
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        add(
            "--from",
            required=True,
            metavar="URL",
            dest="source",
            help="endpoint or database, or `catalog` to look the endpoint up (with --keystone)",
        )
        declare_access(parser, "from")
        add("--topology", metavar="FILE", help="a fleet file that places hosts")
        kept = parser.add_mutually_exclusive_group()
        kept.add_argument(
            "--update", action="store_true", help="replace records that differ by the source's"
        )
        kept.add_argument(
            "--mirror", action="store_true", help="also remove records that only the ledger has"
        )
        add("--dry-run", action="store_true", help="read and compare, write nothing")
        declare_database(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.domain.content import counts, overages
        from moorage.usecases.ledger.placement_takeover import plan, take_over

        rules = _rules(args.topology, self.app.stderr)
        permission = _permission(args)
        with progress(self.app.stderr) as tell, _source(args) as source:
            content = source.read(tell)
            topology = None if rules is None else rules(content)
            if args.dry_run:
                with trial_ledger(args) as store:
                    planned = plan(store, OPERATOR, content, topology=topology)
                return _told_plan(planned, permission)
            with ledger(args) as store:
                planned = plan(store, OPERATOR, content, topology=topology)
                written = Adder(tell, "writing", planned.steps)
                take_over(store, planned, permission, advance=written.advance)
                found = verify(store, source, content, tell)
        body = {
            "source": counts(content),
            "ledger": found.ledger,
            "written": planned.steps,
            "removed": planned.removed(permission),
            "remarks": list(planned.remarks),
            "overages": [_overage(one) for one in overages(content)],
            "unplaced": _unplaced(content, topology),
            "differences": [as_plain(one) for one in found.differences],
            "questions": found.questions,
            "answered_differently": found.odd,
        }
        return Shown(body, _told(body), CONFLICT if found.differences or found.odd else OK)


@dataclass(frozen=True)
class _Source:
    """The source of an import: `wire` is None for a database."""

    url: str
    wire: PlacementWire | None
    connections: int

    def read(self, tell: Callable[[str, int, int], None]) -> Content:
        if self.wire is None:
            from moorage.store.placement_database import read_placement

            return read_placement(self.url)
        from moorage.client.placement_source import read_service

        return read_service(self.wire, connections=self.connections, advance=tell)


@contextmanager
def _source(args: argparse.Namespace) -> Iterator[_Source]:
    if args.source != CATALOG and not args.source.startswith(("http://", "https://")):
        yield _Source(args.source, None, args.connections)
        return
    with service(args.source, args) as wire:
        yield _Source(args.source, wire, args.connections)


def _permission(args: argparse.Namespace) -> TakeoverPermission:
    from moorage.usecases.ledger.placement_takeover import TakeoverPermission

    if args.mirror:
        return TakeoverPermission.MIRROR
    return TakeoverPermission.UPDATE if args.update else TakeoverPermission.ADD


def _rules(file: str | None, terminal: TextIO) -> Callable[[Content], Topology] | None:
    """The topology of a content by rules; the file is read before the source is."""
    if file is None:
        return None
    from moorage.domain.topology_rules import apply

    name = file
    rules, _ = placing(name, Taking(), terminal)

    def made(content: Content) -> Topology:
        with reading(name):
            return apply(rules, _hosts(content))

    return made


def _hosts(content: Content) -> list[Any]:
    from moorage.domain.topology_rules import HostFacts

    return [
        HostFacts(one.name, one.traits, one.aggregates)
        for one in content.providers.values()
        if one.parent_uuid is None
    ]


def _unplaced(content: Content, topology: Topology | None) -> dict[str, list[str]]:
    from moorage.domain.topology_rules import unplaced

    return {} if topology is None else unplaced(topology, _hosts(content))


# --- comparing ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verified:
    """The comparison of the ledger with the imported content."""

    ledger: Mapping[str, int]
    differences: Sequence[Difference]
    questions: int
    """Asked on both sides; 0 where the source is a database or has stand-ins."""
    odd: Sequence[str]
    """Questions that were answered differently."""


def verify(
    store: Ledger, source: _Source, content: Content, tell: Callable[[str, int, int], None]
) -> Verified:
    """Compare all content, then send the same queries to both APIs."""
    from moorage.client.credentials import GivenToken
    from moorage.client.placement_wire import Options, PlacementWire, within
    from moorage.client.probes import fingerprints, probes
    from moorage.domain.content import counts, differences
    from moorage.usecases.ledger.content import ledger_content

    found = ledger_content(store)
    unlike = list(differences(content, found))
    if source.wire is None or content.stand_ins:  # which show in the answers of the source alone
        return Verified(counts(found), unlike, 0, [])
    asked = probes(content)
    done = Adder(tell, "asking both", 2 * len(asked))
    theirs = fingerprints(source.wire, asked, connections=source.connections, advance=done.advance)
    options = Options(through=within(placement_over(store)))
    with PlacementWire("http://ledger.invalid", GivenToken("admin"), options) as own:
        own.negotiate()
        ours = fingerprints(own, asked, connections=1, advance=done.advance)
    odd = [path for path in asked if theirs[path] != ours[path]]
    return Verified(counts(found), unlike, len(asked), odd)


# --- printing -------------------------------------------------------------------------------


def _overage(one: Any) -> dict[str, Any]:  # noqa: ANN401 - content.Overage
    return {
        "provider": one.provider,
        "name": one.name,
        "resource_class": one.resource_class,
        "capacity": one.capacity,
        "used": one.used,
    }


def _told_plan(planned: TakeoverPlan, permission: TakeoverPermission) -> Shown:
    from moorage.domain.content import DifferenceWay, counts, overages
    from moorage.domain.errors import Conflict
    from moorage.usecases.ledger.placement_takeover import check

    refusal = None
    try:
        check(planned, permission)
    except Conflict as error:
        refusal = error.message

    body: dict[str, Any] = {
        "source": counts(planned.source),
        "ledger": counts(planned.ledger),
        "would_write": planned.steps,
        "would_remove": planned.removed(permission),
        "refused": refusal,
        "topology": planned.topology is not None,
        "remarks": list(planned.remarks),
        "overages": [_overage(one) for one in overages(planned.source)],
        "unplaced": _unplaced(planned.source, planned.topology),
        "differences": [as_plain(one) for one in planned.differences],
    }
    unlike = [one for one in body["differences"] if one["way"] != DifferenceWay.MISSING]
    parts = [side_by_side(body), *_remarks(body), *spelled_out(unlike)]
    if refusal is not None:
        return Shown(body, stack(*parts, f"would be refused: {refusal}"), CONFLICT)
    gone = body["would_remove"]
    would = f"would write {planned.steps}" + (f" and remove {gone}" if gone else "")
    return Shown(body, stack(*parts, f"{would}; nothing was written"))


def _remarks(body: Mapping[str, Any]) -> Iterator[Any]:
    for remark in body["remarks"]:
        yield f"source: {remark}"
    overfull = [
        f"overfull, as in the source: {one['name']} {one['resource_class']}"
        f" {one['used']} of {one['capacity']}"
        for one in body["overages"]
    ]
    yield from first_of(overfull, SHOWN)
    for tree, names in body["unplaced"].items():
        yield f"not placed in tree {tree}: {counted(len(names), 'host')}, the first is {names[0]}"


def _removed(count: int) -> str:
    return f", removed {count}" if count else ""


def _told(body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - something rich
    parts = [side_by_side(body), *_remarks(body), *spelled_out(body["differences"])]
    parts += first_of(
        [f"answered differently: {path}" for path in body["answered_differently"]], SHOWN
    )
    verdict = f"wrote {body['written']}{_removed(body['removed'])}; " + (
        f"{counted(len(body['differences']), 'difference')}" if body["differences"] else "all equal"
    )
    if body["questions"]:
        same = body["questions"] - len(body["answered_differently"])
        verdict += f"; {same} of {body['questions']} queries answered alike"
    return stack(*parts, verdict)
