"""`moorage quota set|show|list|unset`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.command import Command
from moorage.cli.output import Shown, stack, table
from moorage.cli.times import length, span

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.client.quotas import Limit, Quota

UNLIMITED: Final = "unlimited"
DEFAULT: Final = "default"


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError("write a number, unlimited or default")
    return int(text)


def _said(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A limit: as read, `unlimited`, or `default`: None."""

    def limit(text: str) -> Any:  # noqa: ANN401 - what the API takes
        if text in {UNLIMITED, DEFAULT}:
            return text
        return read(text)

    return limit


LIMITS: Final = (
    ("lease_units", _count, "N", "places of its leases at one instant"),
    ("lease_unit_hours", _count, "N", "places times hours of all leases that one window touches"),
    ("lease_horizon", span, "90d", "how far ahead a lease may end"),
    ("lease_max_length", span, "30d", "the longest lease"),
    ("leases", _count, "N", "leases that have not ended"),
    ("held_units", _count, "N", "places held or claimed at once that are not a lease's"),
    ("lease_priority", _count, "N", "the highest priority of its leases, from 0 (default) to 1000"),
)


class Set(Command):
    """Say what a project may lease and hold.

    What is not named stays as it is; `default` gives a limit back to the service's settings,
    `unlimited` lifts it. A limit below what is used takes nothing away: it blocks what is new.
    A unit is one place: a member of a leased ensemble.
    """

    examples = """
        moorage quota set nfv --lease-unit-hours 500 --lease-horizon 90d --lease-max-length 30d
        moorage quota set nfv --leases 10 --lease-units default
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose, and how much."""
        self._usage_error = parser.error
        parser.add_argument("project", metavar="PROJECT", help="its id")
        for name, read, metavar, text in LIMITS:
            flag = f"--{name.replace('_', '-')}"
            parser.add_argument(flag, type=_said(read), metavar=metavar, help=text)
        parser.add_argument("--dry-run", action="store_true", help="judge only, write nothing")

    def act(self, args: argparse.Namespace) -> Shown:
        """Say it."""
        said = {name: getattr(args, name) for name, *_ in LIMITS}
        limits = {
            name: None if value == DEFAULT else value
            for name, value in said.items()
            if value is not None
        }
        if not limits:
            self._usage_error("name at least one limit")
        with self.client() as client:
            answer = client.quotas.change(args.project, limits, dry_run=args.dry_run)
        return Shown(answer.body, _described(answer.value))


class Show(Command):
    """Show what a project may lease and hold, and what it has."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose."""
        parser.add_argument("project", nargs="?", metavar="PROJECT", help="default: one's own")

    def act(self, args: argparse.Namespace) -> Shown:
        """Show."""
        with self.client() as client:
            calls = client.quotas
            answer = calls.own() if args.project is None else calls.show(args.project)
        return Shown(answer.body, _described(answer.value))


class List(Command):
    """List the projects of which something is said, and what they have."""

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        """List."""
        with self.client() as client:
            answer = client.quotas.all()
        rows = [
            (one.project_id, *(_short(getattr(one, name)) for name, *_ in LIMITS))
            for one in answer.value
        ]
        columns = ["project", *(name.replace("_", "-") for name, *_ in LIMITS)]
        return Shown(answer.body, table(columns, rows))


class Unset(Command):
    """Let the service's defaults hold for a project again."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose."""
        parser.add_argument("project", metavar="PROJECT", help="its id")

    def act(self, args: argparse.Namespace) -> Shown:
        """Forget."""
        with self.client() as client:
            client.quotas.unset(args.project)
        told = f"project {args.project}: the defaults hold"
        return Shown({"unset": args.project}, told)


def _described(one: Quota) -> Any:  # noqa: ANN401 - something rich
    rows = [
        (name.replace("_", "-"), *_cells(getattr(one, name)), _says(getattr(one, name)))
        for name, *_ in LIMITS
    ]
    head = f"project {one.project_id}   unit-hours in {_days(one.window)}"
    return stack(head, table(["limit", "#at most", "#used", "#left", ""], rows))


def _cells(limit: Limit) -> tuple[str, str, str]:
    most = UNLIMITED if limit.limit is None else _days(str(limit.limit))
    return most, _number(limit.used), _number(limit.left)


def _says(limit: Limit) -> str:
    return "over" if limit.over else "default" if limit.default else ""


def _short(limit: Limit) -> str:
    """`424/500`; what is over has a mark."""
    most = "-" if limit.limit is None else _days(str(limit.limit))
    used = "" if limit.used is None else f"{limit.used}/"
    return f"{used}{most}{'!' if limit.over else ''}"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _days(text: str) -> str:
    """`P90D` as `90d`; numbers as they are."""
    return length(text) or "0s" if text.startswith("P") else text
