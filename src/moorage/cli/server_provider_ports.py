"""`moorage server provider ports`: makes the Neutron ports of slices, and attaches them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.output import FAILED, OK, Columns, Shown, listing, short
from moorage.cli.parser import Flag, Option
from moorage.cli.server_provider import SERVER
from moorage.client.slice_ports import VNIC_SLICE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from moorage.client.slice_ports import PortOutcome


class Ports(Command):
    """Make the Neutron ports of the slices on a server, attach them, and report the slices.

    For each slice that is claimed and takes the resource class, as many ports as it takes are made
    on the network and attached to the server, or become sub-ports of its trunk; then the slice is
    active, with the first port's id. One that Neutron or Nova refuse is reported failed, with the
    reason. Ports of slices that are over are detached and deleted; other ports are left alone. The
    command calls Neutron and Nova as the user who runs it. If it is interrupted or fails, run it
    again: it goes on with what is there.
    """

    examples = """
        moorage server provider ports 5c0f... --network nfv-net
        moorage server provider ports 5c0f... --network nfv-net --trunk nfv-trunk --watch
    """
    options = (
        SERVER,
        Option("--network", metavar="NETWORK", required=True, help="of the ports; name or id"),
        Option("--trunk", metavar="TRUNK", help="the server's trunk, for sub-ports; name or id"),
        Option(
            "--class",
            dest="resource_class",
            metavar="CLASS",
            default=VNIC_SLICE,
            help=f"a port for each unit of this resource class (default: {VNIC_SLICE})",
        ),
        Flag("--watch", "go on until interrupted, as slices come and go"),
    )

    def act(self, args: argparse.Namespace) -> Shown | None:
        from moorage.client.slice_ports import PortOrder, PortState, SlicePorts

        with self.client() as client, self.nova() as compute:
            server = client.server_providers.find(args.server)
            order = PortOrder(server, args.network, args.trunk, args.resource_class)
            made = SlicePorts(client, compute, order)
            if args.watch:
                self._print(made.watch(), args.form)
                return None
            outcomes = list(made.once())
        columns: Columns = {
            "slice": lambda one: short(one.slice),
            "status": lambda one: one.state.value,
            "ports": lambda one: " ".join(one.ports) or "-",
            "message": lambda one: one.message or "-",
        }
        left = {PortState.FAILED, PortState.WAITING}
        status = FAILED if any(one.state in left for one in outcomes) else OK
        return Shown({"ports": list(map(_body, outcomes))}, listing(columns, outcomes), status)

    def _print(self, outcomes: Iterable[PortOutcome], form: str) -> None:
        """Print what happens as it does: objects on a line of their own with `-f json`."""
        for one in outcomes:
            parts = [short(one.slice), one.state.value, *one.ports, one.message]
            text = json.dumps(_body(one)) if form == "json" else "  ".join(filter(None, parts))
            self.app.stdout.write(f"{text}\n")
            self.app.stdout.flush()


def _body(one: PortOutcome) -> dict[str, Any]:
    return {
        "slice": one.slice,
        "status": one.state.value,
        "ports": list(one.ports),
        "message": one.message,
    }
