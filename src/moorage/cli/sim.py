"""`moorage sim start|resume|stop|list|clock`: a server over a described fleet, without a cloud."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from moorage.cli.command import Command
from moorage.cli.output import Shown, table
from moorage.client import registry
from moorage.client.discovery import Access
from moorage.client.errors import Missing
from moorage.domain.errors import Conflict, MoorageError
from moorage.domain.period import format_instant, parse_instant

if TYPE_CHECKING:
    import argparse

    from moorage.client.registry import Registration

DEFAULT_NAME: Final = "moorage-sim"
RUNNING: Final = "running"
KILLED: Final = "killed"
"""It can be taken up again."""


class Running(Conflict):
    """A simulation of that name runs already, or was killed and can be taken up again."""


class Killed(MoorageError):
    """The simulation runs no more, though nobody has stopped it; what it has written is there."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"simulation {name} was killed (take it up again: moorage sim resume --name {name};"
            f" or drop it: moorage sim stop --name {name})"
        )


def chosen_name(name: str | None) -> str:
    """The simulation that is meant: by option, by `OS_CLOUD`, or the usual one."""
    return name or os.environ.get("OS_CLOUD") or DEFAULT_NAME


def running(name: str | None) -> Registration:
    """The running simulation of that name.

    Raises:
        Missing: there is none. Killed: it runs no more.
    """
    wanted = chosen_name(name)
    found = registry.known(registry.state_directory(os.environ), wanted)
    if found is None:
        raise Missing("running simulation called", wanted)
    if not registry.alive(found):
        raise Killed(wanted)
    return found


class Start(Command):
    """Start a server over a fleet, in the background, with a clock you set.

    The same service over a temporary database: everything works as on a cloud, except that
    time stands still until `sim clock` moves it. It is found by its name in OS_CLOUD.

    Servers are allocations that you write. With --end-servers their allocations are deleted at
    their end: of those with an --until, of those that make way for a lease, and of a lease's own.
    Without it they are overrun then, as in a cloud where nobody ends servers.
    """

    examples = """
        moorage sim start --fleet three-racks.yaml --now 2026-11-21T09:00:00Z
        export OS_CLOUD=moorage-sim
        moorage fleet show
        moorage sim stop
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Over what, when, where."""
        add = parser.add_argument
        add("--fleet", required=True, metavar="FILE", help="a fleet file, or a shipped one's name")
        add("--now", metavar="T", help="the time to start at, RFC 3339 (default: this moment)")
        add("--name", default=DEFAULT_NAME, help=f"for OS_CLOUD (default: {DEFAULT_NAME})")
        add(
            "--end-servers",
            action="store_true",
            help="end servers when their end has come, as a cloud would (default: they stay)",
        )
        add("--port", type=int, metavar="N", help="default: any free one")

    def act(self, args: argparse.Namespace) -> Shown:
        """Start."""
        from moorage.cli import fleet as fleets
        from moorage.cli import sim_process
        from moorage.client.moorage import connect

        name = registry.check_name(args.name)
        state = registry.state_directory(os.environ)
        found = registry.known(state, name)
        if found is not None and registry.alive(found):
            raise Running(f"simulation {name} runs already (moorage sim stop --name {name})")
        if found is not None:
            raise Running(Killed(name).message)
        now = parse_instant(args.now) if args.now else time.time_ns() // 1000
        fleet = fleets.expanded(args.fleet)
        directory = sim_process.directory_of(name, os.environ)
        try:
            started = sim_process.start(
                directory,
                now,
                port=args.port,
                settings=sim_process.ENDING if args.end_servers else "",
                told=self.app.stderr,
            )
            with connect(started.access) as client:
                fleets.load(client, fleet, self.app.stderr)
            registry.write(state, started.registration(name, fleet.name))
        except BaseException:
            sim_process.discard(directory)
            raise
        body = {
            "simulation": {
                "name": name,
                "endpoint": started.endpoint,
                "now": format_instant(now),
                "fleet": fleet.name,
                "hosts": len(fleet.class_of),
                "directory": str(started.directory),
            }
        }
        said = (
            f"{fleets.summary(fleet)}\n"
            f"simulation {name} at {started.endpoint}, it is {format_instant(now)}\n"
            f"to use it: export OS_CLOUD={name}"
        )
        return Shown(body, said)


class Stop(Command):
    """Stop a simulation and drop its database.

    Of one that was killed, what it has left.
    """

    examples = "moorage sim stop\nmoorage sim stop --name other"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        parser.add_argument("--name", help=f"default: OS_CLOUD, else {DEFAULT_NAME}")

    def act(self, args: argparse.Namespace) -> Shown:
        """Stop."""
        from moorage.cli import sim_process

        wanted, state = chosen_name(args.name), registry.state_directory(os.environ)
        found = registry.known(state, wanted)
        if found is None:
            raise Missing("simulation called", wanted)
        if registry.alive(found):
            sim_process.end(found.pid)
        registry.forget(state, found.name)
        sim_process.discard(Path(found.directory))
        return Shown({"stopped": found.name}, f"stopped {found.name}")


class Resume(Command):
    """Take up a simulation again that was killed, or ended with its machine.

    A server over the database that it had: all that was answered is there, and its clock shows
    what it showed. One that was stopped with `sim stop` is gone.
    """

    examples = """
        moorage sim list
        moorage sim resume
        moorage sim resume --name other --port 8790
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which, and where."""
        parser.add_argument("--name", help=f"default: OS_CLOUD, else {DEFAULT_NAME}")
        parser.add_argument("--port", type=int, metavar="N", help="default: any free one")

    def act(self, args: argparse.Namespace) -> Shown:
        """Resume."""
        from moorage.cli import sim_process
        from moorage.client.moorage import connect

        wanted, state = chosen_name(args.name), registry.state_directory(os.environ)
        found = registry.known(state, wanted)
        if found is None:
            raise Missing("simulation called", wanted)
        if registry.alive(found):
            raise Running(f"simulation {wanted} runs already")
        directory = Path(found.directory)
        started = sim_process.resume(directory, port=args.port, told=self.app.stderr)
        registry.write(state, started.registration(wanted, found.fleet))
        with connect(started.access) as client:
            now = str(client.simulation.clock().value["now"])
        body = {
            "simulation": {
                "name": wanted,
                "endpoint": started.endpoint,
                "now": now,
                "fleet": found.fleet,
                "directory": str(directory),
            }
        }
        return Shown(body, f"simulation {wanted} at {started.endpoint}, it is {now}")


class List(Command):
    """List simulations: those that run, and those that were killed."""

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        """List."""
        found = list(registry.every(registry.state_directory(os.environ)))
        alive = [registry.alive(one) for one in found]
        status = [RUNNING if runs else KILLED for runs in alive]
        where = [
            (one.endpoint, one.pid) if runs else (None, None)
            for one, runs in zip(found, alive, strict=True)
        ]
        rows = [
            (one.name, state, one.fleet, *there)
            for one, state, there in zip(found, status, where, strict=True)
        ]
        body = {
            "simulations": [
                {
                    "name": one.name,
                    "status": state,
                    "fleet": one.fleet,
                    "endpoint": endpoint,
                    "pid": pid,
                }
                for one, state, (endpoint, pid) in zip(found, status, where, strict=True)
            ]
        }
        return Shown(body, table(["name", "status", "fleet", "endpoint", "#pid"], rows))


class Clock(Command):
    """Show a simulation's time, or set it.

    Time only moves forward. What lapses on the way, lapses.
    """

    examples = """
        moorage sim clock
        moorage sim clock 2026-11-21T09:10:00Z
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which, and when."""
        parser.add_argument("now", nargs="?", metavar="T", help="RFC 3339, such as ...T09:10:00Z")
        parser.add_argument("--name", help=f"default: OS_CLOUD, else {DEFAULT_NAME}")

    def act(self, args: argparse.Namespace) -> Shown:
        """Show or set."""
        from moorage.client.moorage import connect

        found = running(args.name)
        with connect(Access(found.endpoint, found.token)) as client:
            if args.now is None:
                answer = client.simulation.clock()
            else:
                parse_instant(args.now)
                answer = client.simulation.set_clock(args.now)
        return Shown(answer.body, str(answer.value["now"]))
