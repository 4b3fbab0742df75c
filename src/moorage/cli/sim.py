"""`moorage sim start|resume|stop|list|clock`: a server over a described fleet, without a cloud."""

from __future__ import annotations

import os
import time
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final

from moorage.cli.command import Command
from moorage.cli.output import Shown, table
from moorage.cli.parser import Flag, Option, WrongUsage
from moorage.cli.times import TIME_HELP, time_of
from moorage.client import registry
from moorage.client.discovery import Access
from moorage.client.errors import Missing
from moorage.domain.errors import Conflict, MoorageError
from moorage.domain.period import SECOND, format_instant, parse_instant

if TYPE_CHECKING:
    import argparse

    from moorage.cli.sim_process import Started
    from moorage.client.registry import Registration
    from moorage.domain.period import Instant

DEFAULT_NAME: Final = "moorage-sim"
RUNNING: Final = "running"
KILLED: Final = "killed"
"""Its database is still there: it can be resumed."""


SIMULATION = Option("--name", help=f"default: OS_CLOUD, else {DEFAULT_NAME}")
NAMED = (
    Option("simulation", nargs="?", metavar="NAME", help="the simulation, as with --name"),
    SIMULATION,
)
PORT = Option("--port", type=int, metavar="N", help="default: any free one")


class Running(Conflict):
    """A simulation with that name runs already, or was killed and can be resumed."""


class Killed(MoorageError):
    """The simulation's process has died; its database is still there."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"simulation {name} was killed (resume it: moorage sim resume --name {name};"
            f" or remove it: moorage sim stop --name {name})"
        )


def _named(args: argparse.Namespace) -> str:
    """The name of the simulation to stop or resume.

    Raises:
        WrongUsage: two names are given.
    """
    if args.simulation and args.name not in {None, args.simulation}:
        raise WrongUsage(f"{args.simulation} or {args.name}: name one simulation")
    return chosen_name(args.simulation or args.name)


def chosen_name(name: str | None) -> str:
    """The simulation's name: from the option, `OS_CLOUD`, or the default."""
    return name or os.environ.get("OS_CLOUD") or DEFAULT_NAME


TO_LIST: Final = "; to see those there are: moorage sim list"
"""What to do where a simulation is not found."""


def running(name: str | None) -> Registration:
    """The running simulation with that name.

    Raises:
        Missing: there is none. Killed: its process has died.
    """
    wanted = chosen_name(name)
    found = registry.known(registry.state_directory(os.environ), wanted)
    if found is None:
        raise Missing("running simulation called", wanted, TO_LIST)
    if not registry.alive(found):
        raise Killed(wanted)
    return found


class Start(Command):
    """Start a server over a fleet, in the background, with a clock you set.

    The same service over a temporary database. Its clock stands still until `sim clock` moves it.
    Select it by its name in OS_CLOUD.

    Servers are allocations that you write. With --end-servers they are deleted at their end: at
    their --until, for a lease, or with their own lease. Without it they are then overrun, as in a
    cloud where servers are not ended.
    """

    examples = """
        moorage sim start --fleet three-racks.yaml --now 2026-11-21T09:00:00Z
        export OS_CLOUD=moorage-sim
        moorage fleet show
        moorage sim stop
    """
    options = (
        Option(
            "--fleet", required=True, metavar="FILE", help="a fleet file, or a shipped one's name"
        ),
        Option("--now", type=time_of, metavar="T", help=f"the clock's first time: {TIME_HELP}"),
        Option("--name", default=DEFAULT_NAME, help=f"for OS_CLOUD (default: {DEFAULT_NAME})"),
        Flag("--end-servers", "delete servers at their end, as a cloud would (default: they stay)"),
        PORT,
        Flag("--open", "open its page in a browser"),
    )

    def now(self, args: argparse.Namespace) -> Instant:  # noqa: ARG002 - the signature of all
        """The machine's time in whole seconds, since the simulation has no clock yet."""
        return time.time_ns() // 1000 // SECOND * SECOND

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.cli import fleet as fleets
        from moorage.cli import sim_process
        from moorage.cli.demo import ended_by_signal
        from moorage.client.moorage import connect

        name = registry.check_name(args.name)
        state = registry.state_directory(os.environ)
        found = registry.known(state, name)
        if found is not None and registry.alive(found):
            raise Running(
                f"simulation {name} runs already; stop it: moorage sim stop --name {name}"
            )
        if found is not None:
            raise Running(Killed(name).message)
        now = parse_instant(args.now) if args.now else self.now(args)
        fleet = fleets.expanded(args.fleet, self.app.stderr)
        directory = sim_process.directory_of(name, os.environ)
        try:
            with ended_by_signal():
                started = sim_process.start(
                    directory,
                    now,
                    port=args.port,
                    settings=sim_process.settings_text(end_servers=args.end_servers),
                    terminal=self.app.stderr,
                )
                with connect(started.access) as client:
                    fleets.load(client, fleet, self.app.stderr)
                registry.write(state, started.registration(name, fleet.name))
        except BaseException:
            sim_process.discard(directory)
            raise
        clouds = registry.publish(os.environ)
        if args.open:
            self._open(started.page)
        body = {
            "simulation": {
                "name": name,
                "endpoint": started.endpoint,
                "page": started.page,
                "now": format_instant(now),
                "fleet": fleet.name,
                "hosts": len(fleet.class_of),
                "directory": str(started.directory),
            }
        }
        stands = "" if args.now else " and stands still: move it with moorage sim clock +1h"
        said = (
            f"{fleets.summary(fleet)}\n"
            f"simulation {name} at {started.endpoint},"
            f" its clock shows {format_instant(now)}{stands}\n"
            f"{_page(started)}"
            f"to use it: export OS_CLOUD={name}"
        )
        if clouds is not None:
            said += f"; with openstack also: export OS_CLIENT_CONFIG_FILE={quote(str(clouds))}"
        return Shown(body, said)

    def _open(self, page: str | None) -> None:
        """Show the page in a browser; the simulation runs without one, too."""
        import webbrowser

        if page is None:
            self.app.stderr.write("moorage: its page is turned off\n")
        elif not webbrowser.open(page):
            self.app.stderr.write("moorage: no browser was found\n")


def _page(started: Started) -> str:
    """The line that says where the page is, if there is one."""
    return "" if started.page is None else f"its page: {started.page}\n"


class Stop(Command):
    """Stop a simulation and remove its database.

    Of a killed one, the database is removed.
    """

    examples = "moorage sim stop\nmoorage sim stop other"
    options = NAMED

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.cli import sim_process

        wanted, state = _named(args), registry.state_directory(os.environ)
        found = registry.known(state, wanted)
        if found is None:
            raise Missing("simulation called", wanted, TO_LIST)
        if registry.alive(found):
            sim_process.end(found.pid)
        registry.forget(state, found.name)
        registry.publish(os.environ)
        sim_process.discard(Path(found.directory))
        return Shown({"stopped": found.name}, f"stopped {found.name}")


class Resume(Command):
    """Restart a simulation that was killed, or ended with its machine.

    Its database and its clock are as they were. A simulation that was stopped with `sim stop`
    cannot be resumed.
    """

    examples = """
        moorage sim list
        moorage sim resume
        moorage sim resume other --port 8790
    """
    options = (*NAMED, PORT)

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.cli import sim_process
        from moorage.cli.demo import ended_by_signal
        from moorage.client.moorage import connect

        wanted, state = _named(args), registry.state_directory(os.environ)
        found = registry.known(state, wanted)
        if found is None:
            raise Missing("simulation called", wanted, TO_LIST)
        if registry.alive(found):
            raise Running(f"simulation {wanted} runs already")
        directory = Path(found.directory)
        try:
            with ended_by_signal():
                started = sim_process.resume(directory, port=args.port, terminal=self.app.stderr)
                registry.write(state, started.registration(wanted, found.fleet))
        except BaseException:
            sim_process.halt(directory)
            raise
        registry.publish(os.environ)
        with connect(started.access) as client:
            now = str(client.simulation.clock().value["now"])
        body = {
            "simulation": {
                "name": wanted,
                "endpoint": started.endpoint,
                "page": started.page,
                "now": now,
                "fleet": found.fleet,
                "directory": str(directory),
            }
        }
        said = f"simulation {wanted} at {started.endpoint}, its clock shows {now}\n"
        return Shown(body, (said + _page(started)).rstrip("\n"))


class List(Command):
    """List simulations, running and killed ones."""

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        found = list(registry.registrations(registry.state_directory(os.environ)))
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
                    "directory": one.directory,
                }
                for one, state, (endpoint, pid) in zip(found, status, where, strict=True)
            ]
        }
        return Shown(body, table(["name", "status", "fleet", "endpoint", "#pid"], rows))


class Clock(Command):
    """Show a simulation's time, or set it.

    Time only moves forward. The clock stops at every edge on its way, so that what begins, ends,
    lapses or is freed meanwhile takes effect in its order.
    """

    examples = """
        moorage sim clock
        moorage sim clock 2026-11-21T09:10:00Z
        moorage sim clock +1h
    """
    options = (
        Option("now", nargs="?", type=time_of, metavar="T", help=f"{TIME_HELP}, by its own clock"),
        SIMULATION,
    )

    def now(self, args: argparse.Namespace) -> Instant:
        """The simulation's time."""
        from moorage.client.moorage import connect

        found = running(args.name)
        with connect(Access(found.endpoint, found.token)) as client:
            return parse_instant(str(client.simulation.clock().value["now"]))

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.moorage import connect

        found = running(args.name)
        with connect(Access(found.endpoint, found.token)) as client:
            if args.now is None:
                answer = client.simulation.clock()
            else:
                answer = client.simulation.set_clock(args.now)
        return Shown(answer.body, str(answer.value["now"]))
