"""The `openstack` client in this process, which spares two seconds for each command."""

import contextlib
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass

BROKEN_ELSEWHERE = "Could not load 'reservation_host_unset'"
"""python-blazarclient 4.6.0 names a class that it does not have; the client says so each time."""


@dataclass(frozen=True)
class Ran:
    """What a command line did."""

    status: int
    out: str
    err: str


def openstack(*words: str, environment: Mapping[str, str] | None = None) -> Ran:
    """Run a command line; by default in the environment of this process."""
    from openstackclient.shell import OpenStackShell

    forget_clients()
    out, err = io.StringIO(), io.StringIO()
    before = dict(os.environ)
    if environment is not None:
        os.environ.clear()
        os.environ.update(environment)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            shell = OpenStackShell()
            shell.NAME = "openstack"  # it would be that of this process
            status = shell.run(list(words))
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    finally:
        os.environ.clear()
        os.environ.update(before)
    return Ran(status, out.getvalue(), err.getvalue())


def forget_clients() -> None:
    """The client keeps its session, with its version, for the life of a process: one command."""
    from osc_lib.clientmanager import ClientCache, ClientManager

    for one in vars(ClientManager).values():
        if isinstance(one, ClientCache):
            one._handle = None
