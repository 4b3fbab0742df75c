"""The program `moorage-agent`: options, one run or many, errors to exit statuses."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import traceback
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any, Final

from moorage.agent.discovery import discover
from moorage.agent.facts import InconsistentNode
from moorage.agent.files import Files
from moorage.agent.node_providers import measured_mounts, target_of
from moorage.agent.plan_steps import CreateProvider, DeleteProvider, Reshape, described
from moorage.agent.report import ReportOptions, generations, report
from moorage.client.agent_file import read_agent_config
from moorage.client.discovery import Wishes
from moorage.client.errors import LoginRefused, NoEndpoint
from moorage.client.placement_wire import Options, SourceFailed
from moorage.client.provider_trees import ProviderTrees, connect
from moorage.domain.agent_config import AgentConfig
from moorage.domain.errors import BadConfiguration, Conflict, MoorageError, NotFound
from moorage.domain.period import parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TextIO

    from moorage.agent.facts import Caution
    from moorage.agent.report import Report
    from moorage.agent.target import Target
    from moorage.client.placement_wire import PlacementWire
    from moorage.client.provider_trees import ListedProvider

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
CONFLICT: Final = 4
FORBIDDEN: Final = 5
NOT_FOUND: Final = 6
INCONSISTENT: Final = 7
INTERRUPTED: Final = 130
CONFIG: Final = Path("/etc/moorage/agent.yaml")
JITTER: Final = 0.1
"""The part of the interval by which a run may be earlier or later: nodes start together."""
WHOLE_READ: Final = 10
"""Runs after which everything is read again, pools included, though no generation has moved."""
_REFUSED: Final = frozenset({401, 403})
_EPILOG: Final = """\
The endpoint is Moorage's or that of an OpenStack Placement; without --endpoint it is found as
`moorage` finds it: OS_CLOUD, the OS_ variables, MOORAGE_ENDPOINT.
Exit status: 0 done, 2 usage or configuration, 4 conflict, 5 forbidden, 6 there is no provider of
the node yet, 7 only a part of the node's processors and memory is known, 1 otherwise.
"""


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="moorage-agent",
        description="Find what this compute node has, and keep its resource providers in step.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = made.add_argument
    add("--version", action="version", version=f"moorage-agent {version('moorage')}")
    add("--once", action="store_true", help="report once, and end")
    add("--dry-run", action="store_true", help="print the difference once, write nothing")
    add(
        "--config",
        type=Path,
        metavar="FILE",
        help=f"configuration (default {CONFIG}, if it is there)",
    )
    add(
        "--sysfs",
        type=Path,
        default=Path("/"),
        metavar="DIR",
        help="read sys/, proc/ and etc/ below this directory (default /)",
    )
    add(
        "--interval",
        type=_interval,
        default="60s",
        metavar="DURATION",
        help="between the runs of a daemon, give or take a tenth (default 60s)",
    )
    add(
        "--many-removals",
        action="store_true",
        help="believe that most devices are gone, and remove their providers",
    )
    add(
        "--prune",
        action="store_true",
        help="delete the empty providers of what is gone below Nova's; nova-compute must not run",
    )
    add(
        "-f",
        "--format",
        choices=("text", "json"),
        default="text",
        dest="form",
        help="of the report",
    )
    add("--endpoint", metavar="URL", help="the service's URL (MOORAGE_ENDPOINT)")
    add("--os-cloud", metavar="NAME", help="a simulation, or a cloud of clouds.yaml (OS_CLOUD)")
    add("--token", metavar="TOKEN", help="the token to send (MOORAGE_TOKEN)")
    add(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="for each answer (default 60)",
    )
    add("--debug", action="store_true", help="show tracebacks")
    return made


def _interval(text: str) -> float:
    try:
        seconds = parse_duration(text) / 10**6
    except MoorageError as error:
        raise argparse.ArgumentTypeError(error.message) from error
    if seconds < 1:
        raise argparse.ArgumentTypeError("an interval of a second at least is needed")
    return seconds


@dataclass
class Agent:
    """The agent of one node. `out` has reports, `err` cautions and errors."""

    options: argparse.Namespace
    environment: Mapping[str, str]
    out: TextIO
    err: TextIO
    report_options: ReportOptions = field(default_factory=ReportOptions)
    reported: set[Caution] = field(default_factory=set)
    """Cautions that were printed already: a daemon prints each once while it lasts."""
    in_step: tuple[Target, frozenset[ListedProvider], Report] | None = None
    """The last target and ledger for which there was nothing to do: they need no second look."""
    quiet_runs: int = 0

    def configuration(self) -> AgentConfig:
        """The configuration as it is at present.

        Raises:
            BadConfiguration: it cannot be read.
            InvalidDescription: it is wrong.
        """
        path = self.options.config
        if path is None and not CONFIG.exists():
            return AgentConfig()
        try:
            text = (path or CONFIG).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
            raise BadConfiguration(f"cannot read {path or CONFIG}: {why}") from error
        try:
            return read_agent_config(text)
        except MoorageError as error:
            line = getattr(error, "line", None)
            place = f"{path or CONFIG}" + (f", line {line}" if line else "")
            raise BadConfiguration(f"{place}: {error.message_with_path}") from error

    def run(self, wire: PlacementWire) -> Report:
        """Report once. Raises as `report.report`, and as `configuration`."""
        config = self.configuration()
        if not self.options.sysfs.is_dir():
            raise BadConfiguration(f"--sysfs {self.options.sysfs}: no such directory")
        node = discover(Files(self.options.sysfs), measured=measured_mounts(config))
        trees = ProviderTrees(wire)
        trees.negotiate()
        target = target_of(node, config)
        present = generations(trees, target)
        quiet = self.in_step is not None and self.in_step[:2] == (target, present)
        self.quiet_runs = self.quiet_runs + 1 if quiet else 0
        if self.in_step is not None and self.quiet_runs % WHOLE_READ:
            return self.in_step[2]
        found = report(trees, target, self.report_options)
        self.in_step = None if found.steps else (target, present, found)
        return found

    def once(self) -> int:
        """Report once, print it, and return the exit status."""
        try:
            with self.connected() as wire:
                self.show(self.run(wire))
        except Exception as error:  # noqa: BLE001 - the one place that reports errors
            return self.failed(error)
        return OK

    def for_ever(self, stop: threading.Event, chance: Callable[[], float]) -> int:
        """Report, again and again, until `stop` is set. A run that fails is logged, and repeated.

        A configuration that is wrong at the start ends it.
        """
        try:
            self.configuration()
        except MoorageError as error:
            return self.failed(error)
        last = ""
        while not stop.is_set():
            try:
                with self.connected() as wire:
                    found = self.run(wire)
                last = ""
                if found.steps or set(found.cautions) != self.reported:
                    self.show(found)
            except Exception as error:  # noqa: BLE001 - a daemon goes on
                if str(error) != last or self.options.debug:
                    self.failed(error)
                last = str(error)
            stop.wait(self.options.interval * (1 + JITTER * (2 * chance() - 1)))
        return OK

    def connected(self) -> PlacementWire:
        """A connection to the service."""
        given = self.options
        wishes = Wishes(given.endpoint, given.token, None, None, given.os_cloud)
        return connect(wishes, self.environment, Options(timeout=given.timeout))

    def show(self, found: Report) -> None:
        """Print a report, and the cautions that are new."""
        for one in found.cautions:
            if one not in self.reported:
                self.err.write(f"{found.name}: {one}\n")
        self.reported = set(found.cautions)
        if self.options.form == "json":
            self.out.write(json.dumps(as_plain(found, dry_run=self.options.dry_run)) + "\n")
        else:
            for line in described(found.steps):
                self.out.write(f"{line}\n")
            self.out.write(f"{summary(found, dry_run=self.options.dry_run)}\n")
        self.out.flush()
        self.err.flush()

    def failed(self, error: Exception) -> int:
        """Print an error; return the exit status."""
        if self.options.debug:
            traceback.print_exception(error, file=self.err)
        said = (
            error.message if isinstance(error, MoorageError) else f"{type(error).__name__}: {error}"
        )
        self.err.write(f"moorage-agent: {said}\n")
        self.err.flush()
        return exit_status(error)


def exit_status(error: Exception) -> int:
    """The process's exit status for an error."""
    if isinstance(error, SourceFailed):
        if error.status in _REFUSED:
            return FORBIDDEN
        return CONFLICT if error.status == 409 else FAILED  # noqa: PLR2004 - Conflict
    known: tuple[tuple[type[Exception], int], ...] = (
        (BadConfiguration, USAGE),
        (NoEndpoint, USAGE),
        (LoginRefused, FORBIDDEN),
        (NotFound, NOT_FOUND),
        (Conflict, CONFLICT),
        (InconsistentNode, INCONSISTENT),
    )
    return next((status for kind, status in known if isinstance(error, kind)), FAILED)


def summary(found: Report, *, dry_run: bool) -> str:
    """The report in a line."""
    if not found.steps:
        return f"{found.name}: in step, {found.providers} providers"
    touched = {one.uuid for one in found.steps if not isinstance(one, Reshape)}
    reshapes = [one for one in found.steps if isinstance(one, Reshape)]
    touched |= {uuid for one in reshapes for uuid in one.inventories}
    created = {one.uuid for one in found.steps if isinstance(one, CreateProvider)}
    deleted = {one.uuid for one in found.steps if isinstance(one, DeleteProvider)}
    changed = touched - created - deleted
    end = "; nothing was written" if dry_run else ""
    return (
        f"{found.name}: {len(created)} created, {len(changed)} changed, {len(deleted)} deleted,"
        f" reshape {'done' if reshapes else 'none'}, {found.providers} providers{end}"
    )


def as_plain(found: Report, *, dry_run: bool) -> Mapping[str, Any]:
    """The report as JSON has it."""
    return {
        "name": found.name,
        "dry_run": dry_run,
        "steps": list(described(found.steps)),
        "cautions": [asdict(one) for one in found.cautions],
        "providers": found.providers,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `moorage-agent`: run, return the exit status."""
    try:
        options = parser().parse_args(argv)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else FAILED
    agent = Agent(
        options,
        os.environ,
        sys.stdout,
        sys.stderr,
        ReportOptions(
            dry_run=options.dry_run,
            many_removals=options.many_removals,
            prune=options.prune,
        ),
    )
    try:
        if options.once or options.dry_run:
            return agent.once()
        stop = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        return agent.for_ever(stop, SystemRandom().random)
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
