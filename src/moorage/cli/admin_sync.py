"""`moorage admin sync nova`: brings flavors, topology and hosts in step with a running Nova."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli.admin import (
    CATALOG,
    OPERATOR,
    SHOWN,
    configured,
    declare_database,
    declare_source,
    environment_of,
    ledger,
    service,
    trial_ledger,
)
from moorage.cli.command import Command
from moorage.cli.files import reading
from moorage.cli.fleet_reading import Taking, placing
from moorage.cli.host_checks import label_notes
from moorage.cli.output import CONFLICT, OK, Shown, stack
from moorage.domain.words import counted, first_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping
    from typing import TextIO

    from moorage.domain.topology_rules import TopologyRules
    from moorage.usecases.ledger.nova_sync import FlavorSync, TopologySync


class Nova(Command):
    """Bring flavors, topology and the state of hosts in step with Nova.

    Flavors are created, changed and deleted as Nova has them. Those that Moorage cannot place are
    refused by name, with the reason; then the exit status is 4. Flavors in Placement's terms are
    Moorage's own and stay.

    With rules (--topology, or the setting `topology_rules`) every host of the ledger is placed by
    its name, traits, aggregates, availability zone and the metadata of Nova's aggregates. A host
    that Nova does not list keeps its place, and so do trees of which the rules do not speak.

    Of each host is taken whether its compute service is enabled and up, or was forced down: nothing
    new is placed where it is not.

    Nova is only read, as an operator. What is in step is not written. The service does the same by
    itself with the setting `nova_sync`.
    """

    examples = """
        moorage admin sync nova --from catalog --keystone --dry-run
        moorage admin sync nova --from catalog --keystone --topology racks.yaml
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        add = parser.add_argument
        declare_source(parser)
        add("--topology", metavar="FILE", help="a fleet file that places hosts")
        add("--dry-run", action="store_true", help="read and compare, write nothing")
        declare_database(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.nova_source import SERVICE, over, read_flavors, read_hosts
        from moorage.usecases.ledger.host_states import sync_services
        from moorage.usecases.ledger.nova_sync import sync_flavors, sync_topology

        file = args.topology or configured(args).outward.topology_rules
        rules = None if file is None else _rules(file, self.app.stderr)
        url = args.source if args.source == CATALOG else args.source.rstrip("/")
        with service(url, args, SERVICE) as wire:
            # Only administrators may list hosts. Others are shown the public flavors as if all.
            hosts = read_hosts(over(wire))
            rows = read_flavors(over(wire))
        opened = trial_ledger if args.dry_run else ledger
        with opened(args) as store:
            env = environment_of(store, args)
            env = env.in_dry_run() if args.dry_run else env
            services = sync_services(env, OPERATOR, hosts)
            topology = None
            if rules is not None and file is not None:
                with reading(file):
                    topology = sync_topology(env, OPERATOR, rules, hosts)
            flavors = sync_flavors(env, OPERATOR, rows)
        body = {
            "dry_run": args.dry_run,
            "flavors": _flavors(flavors),
            "services": [
                {"host": one.host, "before": list(one.before), "after": list(one.after)}
                for one in services
            ],
            "topology": None if topology is None else _topology(topology),
        }
        return Shown(body, _told(body), CONFLICT if flavors.refused else OK)


def _rules(file: str, terminal: TextIO) -> TopologyRules:
    return placing(file, Taking(nova=True), terminal)[0]


def _flavors(found: FlavorSync) -> dict[str, Any]:
    return {
        "created": list(found.created),
        "changed": list(found.changed),
        "deleted": list(found.deleted),
        "unchanged": found.unchanged,
        "refused": [{"id": one.id, "name": one.name, "reason": one.why} for one in found.refused],
        "labels": list(found.labels),
    }


def _topology(found: TopologySync) -> dict[str, Any]:
    return {
        "changed": found.changed,
        "moves": [
            {"host": one.host, "tree": one.tree, "before": one.before, "after": one.after}
            for one in found.moves
        ],
        "unplaced": {tree: list(some) for tree, some in found.unplaced.items()},
    }


def _told(body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - something rich
    lines = [*_flavor_lines(body["flavors"]), *_service_lines(body["services"])]
    if body["topology"] is not None:
        lines += _topology_lines(body["topology"])
    return stack(*lines, *(["nothing was written"] if body["dry_run"] else []))


def _flavor_lines(found: Mapping[str, Any]) -> Iterator[str]:
    counts = ", ".join(f"{len(found[way])} {way}" for way in ("created", "changed", "deleted"))
    yield f"flavors: {counts}, {found['unchanged']} in step"
    for way in ("created", "changed", "deleted"):
        if found[way]:
            yield f"{way}: {_listed(found[way])}"
    yield from label_notes(found["labels"])
    refused = [f"refused {one['name']}: {one['reason']}" for one in found["refused"]]
    yield from first_of(refused, SHOWN)


def _service_lines(found: list[Mapping[str, Any]]) -> Iterator[str]:
    yield f"services: {counted(len(found), 'host')} changed"
    for one in found[:SHOWN]:
        before, after = (", ".join(one[when]) or "in service" for when in ("before", "after"))
        yield f"{one['host']}: {before} -> {after}"
    if len(found) > SHOWN:
        yield f"… and {len(found) - SHOWN} more"


def _topology_lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"topology: {counted(len(found['moves']), 'place')} changed"
    moves = [
        f"{one['host']}: {one['before'] or '-'} -> {one['after'] or '-'} ({one['tree']})"
        for one in found["moves"]
    ]
    yield from first_of(moves, SHOWN)
    for tree, hosts in found["unplaced"].items():
        yield f"no place in tree {tree}: {_listed(hosts)}"


def _listed(names: list[str]) -> str:
    return ", ".join(first_of(names, SHOWN))
