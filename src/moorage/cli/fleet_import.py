"""`moorage fleet import`: loads hosts from Nova's list of hypervisors."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from moorage.cli.command import Command
from moorage.cli.files import read_text, reading
from moorage.cli.flavor import amount
from moorage.cli.fleet import load, summary
from moorage.cli.fleet_reading import Taking, placing
from moorage.cli.output import Shown
from moorage.cli.parser import INPUT_FILE, Flag, Option, Repeated
from moorage.domain.host_states import ClosingReason

if TYPE_CHECKING:
    from typing import TextIO

    from moorage.client.moorage import Moorage
    from moorage.domain.fleet_expansion import ExpandedFleet


def ratio(text: str) -> tuple[str, float]:
    """Read `VCPU=4.0`."""
    name, equals, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not (name and equals and 0 < number < float("inf")):
        raise argparse.ArgumentTypeError(f"write CLASS=RATIO, such as VCPU=4.0, not {text}")
    return name, number


class Import(Command):
    """Load hosts from a listing of Nova's hypervisors.

    Each hypervisor becomes a root provider with VCPU, MEMORY_MB and DISK_GB as listed; one whose
    status is disabled also gets the trait COMPUTE_STATUS_DISABLED. Of one that is down the compute
    service is recorded as down, until `moorage admin sync nova` says otherwise. A fleet file places
    hosts, by their names or by rules. As with `fleet load`, loading the same again changes nothing,
    and a listing that contradicts the ledger is refused. `moorage admin import placement` imports
    more, from a Placement service.
    """

    examples = """
        openstack hypervisor list --long -f json > hypervisors.json
        moorage fleet import hypervisors.json --ratio VCPU=4.0 --reserved MEMORY_MB=4096
        moorage fleet import hypervisors.json --total DISK_GB=2000 --topology racks.yaml
    """
    options = (
        INPUT_FILE,
        Option("--topology", metavar="FILE", help="a fleet file that places hosts"),
        Repeated("--ratio", type=ratio, metavar="CLASS=RATIO"),
        Repeated("--reserved", type=amount, metavar="CLASS=AMOUNT"),
        Repeated(
            "--total",
            type=amount,
            metavar="CLASS=AMOUNT",
            help="every host's total of a class that the listing lacks",
        ),
        Repeated("--trait", metavar="TRAIT", help="a trait of every host"),
        Repeated("--aggregate", metavar="NAME", help="an aggregate of every host"),
        Flag("--dry-run", "read and count, load nothing"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        fleet, down = _read(args, self.app.stderr)
        said = f"{summary(fleet)}, {len(down)} down" if down else summary(fleet)
        if args.dry_run:
            hosts = [one.name for one in fleet.providers]
            return Shown({"hosts": hosts, "down": down}, f"would load {said}")
        with self.client() as client:
            answers = load(client, fleet, self.app.stderr)
            if down:
                _put_down(client, frozenset(down))
        return Shown({"parts": answers, "down": down}, f"loaded {said}")


def _put_down(client: Moorage, names: frozenset[str]) -> None:
    """Record that compute services of hosts are down; what else is known of these stays."""
    for one in client.hosts.all():
        reasons = {each["why"] for each in one["closed"]}
        if one["name"] in names and ClosingReason.SERVICE_DOWN.value not in reasons:
            client.hosts.put_service(
                one["uuid"],
                state="down",
                status="disabled" if ClosingReason.DISABLED.value in reasons else "enabled",
                forced_down=ClosingReason.FORCED_DOWN.value in reasons,
            )


def _read(args: argparse.Namespace, terminal: TextIO) -> tuple[ExpandedFleet, tuple[str, ...]]:
    """The fleet of the listing, and the names of its hosts that are down."""
    from moorage.client.hypervisor_list import Terms, placed, read_down, read_hypervisors

    terms = Terms(
        ratios=dict(args.ratio),
        reserved=dict(args.reserved),
        totals=dict(args.total),
        traits=frozenset(args.trait),
        aggregates=frozenset(args.aggregate),
    )
    with reading(args.file):
        text = read_text(args.file)
        fleet, down = read_hypervisors(text, terms), read_down(text)
    if args.topology is None:
        return fleet, down
    rules, _ = placing(args.topology, Taking(), terminal)
    with reading(args.topology):
        return placed(fleet, rules), down
