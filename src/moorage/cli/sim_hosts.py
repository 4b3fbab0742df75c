"""`moorage sim fail|recover`: failure and recovery of a simulation's hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.cli.command import Command
from moorage.cli.output import Shown
from moorage.cli.sim import DEFAULT_NAME, running
from moorage.client.discovery import Access
from moorage.client.errors import Conflict, Missing

if TYPE_CHECKING:
    import argparse

    from moorage.client.fleets import Placement

DISABLED: Final = "COMPUTE_STATUS_DISABLED"
"""The trait that Nova puts on a host whose compute service is disabled."""
_ATTEMPTS: Final = 10
"""Attempts to write traits that others change at the same time."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", required=True, metavar="NAME", help="its name, or its UUID")
    parser.add_argument(
        "--name", help=f"of the simulation (default: OS_CLOUD, else {DEFAULT_NAME})"
    )


class Fail(Command):
    """Make a host of a simulation fail.

    It gets the trait COMPUTE_STATUS_DISABLED, as Nova sets it when the compute service is disabled:
    nothing more is placed there, and leases with places there get others within a second, or are
    degraded. Its servers stay.
    """

    examples = "moorage sim fail --host r1-h1"
    options = (_arguments,)

    def act(self, args: argparse.Namespace) -> Shown:
        return _set(args, disabled=True)


class Recover(Command):
    """Bring back a failed host of a simulation."""

    examples = "moorage sim recover --host r1-h1"
    options = (_arguments,)

    def act(self, args: argparse.Namespace) -> Shown:
        return _set(args, disabled=False)


def _set(args: argparse.Namespace, *, disabled: bool) -> Shown:
    from moorage.client.moorage import connect

    found = running(args.name)
    with connect(Access(found.endpoint, found.token)) as client:
        uuid, name = _host(client.placement, args.host)
        changed = _put(client.placement, uuid, disabled=disabled)
    body = {"host": {"id": uuid, "name": name, "disabled": disabled}}
    state = "failed" if disabled else "recovered"
    return Shown(body, f"{name} is {state}" if changed else f"{name} is {state} already")


def _host(placement: Placement, wanted: str) -> tuple[str, str]:
    """UUID and name of a host; a provider inside a host cannot fail by itself.

    Raises:
        Missing: there is no such host.
    """
    for one in placement.providers():
        if wanted in {one.name, one.uuid} and one.parent_provider_uuid is None:
            return one.uuid, one.name
    raise Missing("host called", wanted)


def _put(placement: Placement, uuid: str, *, disabled: bool) -> bool:
    """Disable or enable a host by its trait; return whether that changed it.

    Raises:
        Conflict: others changed the host each time.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        traits, generation = placement.traits(uuid)
        if (DISABLED in traits) is disabled:
            return False
        try:
            placement.set_traits(uuid, traits ^ {DISABLED}, generation)
        except Conflict:
            if attempt == _ATTEMPTS:
                raise
        else:
            break
    return True
