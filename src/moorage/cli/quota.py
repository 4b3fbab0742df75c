"""`moorage quota set|show|list|unset`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.command import Command
from moorage.cli.output import Shown, stack, table
from moorage.cli.parser import Option
from moorage.cli.times import length, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moorage.wire.quotas import Quota, QuotaLimit

UNLIMITED: Final = "unlimited"
DEFAULT: Final = "default"


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError("write a number, unlimited or default")
    return int(text)


def _said(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Read a limit: a value, `unlimited`, or `default`: None."""

    def limit(text: str) -> Any:  # noqa: ANN401 - what the API takes
        if text in {UNLIMITED, DEFAULT}:
            return text
        return read(text)

    return limit


LIMITS: Final = (
    ("lease_units", _count, "N", "places leased at one instant"),
    ("lease_unit_hours", _count, "N", "places times hours, of all leases in a window of time"),
    ("lease_horizon", span, "90d", "how far ahead a lease may end"),
    ("lease_max_length", span, "30d", "the longest lease"),
    ("leases", _count, "N", "leases that have not ended"),
    ("held_units", _count, "N", "places held or claimed at once outside leases"),
    ("lease_priority", _count, "N", "the highest priority of its leases, from 0 (default) to 1000"),
    ("ensembles", _count, "N", "ensembles, not counting those of leases and offers"),
    ("templates", _count, "N", "versions of templates"),
    ("series", _count, "N", "series with a lease that has not ended"),
    ("offers", _count, "N", "offers held at once"),
    ("waitlist_entries", _count, "N", "entries that wait"),
    ("subscriptions", _count, "N", "subscriptions to events"),
    ("shares_given", _count, "N", "roles of its ensembles offered to other projects"),
    ("shares_received", _count, "N", "roles offered to it that it has not answered"),
)


STORED: Final = frozenset(
    {
        *("ensembles", "templates", "series", "offers", "waitlist_entries", "subscriptions"),
        *("shares_given", "shares_received"),
    }
)
"""Limits of what a project stores; the others are of what it leases and holds."""


class Set(Command):
    """Set the quotas of a project.

    Limits that are not given stay as they are; `default` resets one to the service's settings,
    `unlimited` removes it. A limit below present use ends nothing: it only refuses more.
    A unit is one place: a member of a leased ensemble.
    """

    examples = """
        moorage quota set nfv --lease-unit-hours 500 --lease-horizon 90d --lease-max-length 30d
        moorage quota set nfv --leases 10 --lease-units default
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("project", metavar="PROJECT", help="its id")
        for name, read, metavar, text in LIMITS:
            flag = f"--{name.replace('_', '-')}"
            parser.add_argument(flag, type=_said(read), metavar=metavar, help=text)
        parser.add_argument("--dry-run", action="store_true", help="check it, write nothing")

    def act(self, args: argparse.Namespace) -> Shown:
        said = {name: getattr(args, name) for name, *_ in LIMITS}
        limits = {
            name: None if value == DEFAULT else value
            for name, value in said.items()
            if value is not None
        }
        if not limits:
            self.usage_error("give at least one limit")
        with self.client() as client:
            answer = client.quotas.change(args.project, limits, dry_run=args.dry_run)
        return Shown(answer.body, _described(answer.value))


class Show(Command):
    """Show the quotas and the use of a project."""

    options = (Option("project", nargs="?", metavar="PROJECT", help="default: your own"),)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            calls = client.quotas
            answer = calls.own() if args.project is None else calls.show(args.project)
        return Shown(answer.body, _described(answer.value))


class List(Command):
    """List project quotas, with the use of each."""

    def act(self, args: argparse.Namespace) -> Shown:  # noqa: ARG002 - the shape of every act
        with self.client() as client:
            answer = client.quotas.all()
        shown = [name for name, *_ in LIMITS if _is_shown(name, answer.value)]
        rows = [
            (one.project_id, *(_short(getattr(one, name)) for name in shown))
            for one in answer.value
        ]
        columns = ["project", *(name.replace("_", "-") for name in shown)]
        return Shown(answer.body, table(columns, rows))


def _is_shown(name: str, quotas: Iterable[Quota]) -> bool:
    """Whether a limit has a column: those of leases always, those of stored things if set."""
    return name not in STORED or any(not getattr(one, name).default for one in quotas)


class Unset(Command):
    """Reset a project's quotas to the service's defaults."""

    options = (Option("project", metavar="PROJECT", help="its id"),)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            client.quotas.unset(args.project)
        text = f"project {args.project}: quotas reset to the defaults"
        return Shown({"unset": args.project}, text)


def _described(one: Quota) -> Any:  # noqa: ANN401 - something rich
    rows = [
        (name.replace("_", "-"), *_cells(getattr(one, name)), _says(getattr(one, name)))
        for name, *_ in LIMITS
    ]
    head = f"project {one.project_id}   unit-hours in {_days(one.window)}"
    return stack(head, table(["limit", "#at most", "#used", "#left", ""], rows))


def _cells(limit: QuotaLimit) -> tuple[str, str, str]:
    most = UNLIMITED if limit.limit is None else _days(str(limit.limit))
    return most, _number(limit.used), _number(limit.left)


def _says(limit: QuotaLimit) -> str:
    return "over" if limit.over else "default" if limit.default else ""


def _short(limit: QuotaLimit) -> str:
    """Use and limit, `424/500`; marked if it is exceeded."""
    most = "-" if limit.limit is None else _days(str(limit.limit))
    used = "" if limit.used is None else f"{limit.used}/"
    return f"{used}{most}{'!' if limit.over else ''}"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _days(text: str) -> str:
    """A duration in days, `P90D` as `90d`; numbers unchanged."""
    return length(text) or "0s" if text.startswith("P") else text
