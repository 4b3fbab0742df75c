"""`moorage sim fail|recover`: failure and recovery of a simulation's hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.cli.command import Command
from moorage.cli.host_text import state_and_why, why
from moorage.cli.output import Shown
from moorage.cli.sim import DEFAULT_NAME, running
from moorage.client.discovery import Access
from moorage.client.errors import Missing

if TYPE_CHECKING:
    import argparse

_DOWN: Final = "service down"
"""Why a host is closed whose compute service is down."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", required=True, metavar="NAME", help="its name, or its UUID")
    parser.add_argument(
        "--name", help=f"of the simulation (default: OS_CLOUD, else {DEFAULT_NAME})"
    )


class Fail(Command):
    """Make a host of a simulation fail.

    Its compute service is reported as down, as `moorage admin sync nova` does: nothing more is
    placed there, and leases with places there get others within a second, or are degraded. Its
    servers stay.
    """

    examples = "moorage sim fail --host r1-h1"
    options = (_arguments,)

    def act(self, args: argparse.Namespace) -> Shown:
        return _set(args, "down")


class Recover(Command):
    """Bring back a failed host of a simulation."""

    examples = "moorage sim recover --host r1-h1"
    options = (_arguments,)

    def act(self, args: argparse.Namespace) -> Shown:
        return _set(args, "up")


def _set(args: argparse.Namespace, service: str) -> Shown:
    from moorage.client.moorage import connect

    found = running(args.name)
    with connect(Access(found.endpoint, found.token)) as client:
        known = next(
            (one for one in client.hosts.all() if args.host in {one["name"], one["uuid"]}), None
        )
        if known is None:
            raise Missing("host called", args.host)
        before = any(one["why"] == _DOWN for one in known["closed"])
        host = client.hosts.put_service(known["uuid"], state=service, status="enabled")
    again = " already" if before is (service == "down") else ""
    lines = [f"{host['name']} is {'failed' if service == 'down' else 'recovered'}{again}"]
    if service == "up" and host["state"] != "open":
        lines.append(f"it is still {state_and_why(host['state'], why(host))}")
    state = {"id": host["uuid"], "name": host["name"], "state": host["state"]}
    return Shown({"host": state}, "\n".join(lines))
