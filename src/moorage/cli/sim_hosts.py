"""`moorage sim fail|recover`: hosts of a simulation that fail, and come back."""

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
"""How often traits are written that others overtake."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", required=True, metavar="NAME", help="its name, or its UUID")
    parser.add_argument(
        "--name", help=f"of the simulation (default: OS_CLOUD, else {DEFAULT_NAME})"
    )


class Fail(Command):
    """Let a host of a simulation fail.

    It gets the trait COMPUTE_STATUS_DISABLED, as from Nova when its compute service is disabled:
    nothing is placed there any more, and leases with places there get others within a second, or
    are degraded. Servers that are there stay.
    """

    examples = "moorage sim fail --host r1-h1"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        _arguments(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        """Fail."""
        return _set(args, disabled=True)


class Recover(Command):
    """Let a host of a simulation that failed come back."""

    examples = "moorage sim recover --host r1-h1"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        _arguments(parser)

    def act(self, args: argparse.Namespace) -> Shown:
        """Recover."""
        return _set(args, disabled=False)


def _set(args: argparse.Namespace, *, disabled: bool) -> Shown:
    from moorage.client.moorage import connect

    found = running(args.name)
    with connect(Access(found.endpoint, found.token)) as client:
        uuid, name = _host(client.placement, args.host)
        changed = _put(client.placement, uuid, disabled=disabled)
    body = {"host": {"id": uuid, "name": name, "disabled": disabled}}
    state = "failed" if disabled else "back"
    return Shown(body, f"{name} is {state}" if changed else f"{name} is {state} already")


def _host(placement: Placement, wanted: str) -> tuple[str, str]:
    """UUID and name of a host; what is inside a host does not fail by itself.

    Raises:
        Missing: there is no such host.
    """
    for one in placement.providers():
        if wanted in {one.name, one.uuid} and one.parent_provider_uuid is None:
            return one.uuid, one.name
    raise Missing("host called", wanted)


def _put(placement: Placement, uuid: str, *, disabled: bool) -> bool:
    """Whether anything has changed.

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
