"""`moorage lease create --every`: creates a series of leases; and `moorage series extend`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli import series_text
from moorage.cli.command import Command
from moorage.cli.output import Shown, stack
from moorage.cli.parser import DRY_RUN
from moorage.cli.progress import interruptible
from moorage.cli.series import SERIES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from moorage.client.moorage import Moorage
    from moorage.client.resource import Answer
    from moorage.wire.series import OneSeries

_ONLY = ("zone", "times", "until_date", "as_many_as_fit")


def recurring(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a recurring lease."""
    group = parser.add_argument_group("a recurring lease: all of its dates are granted, or none")
    group.add_argument(
        "--every",
        metavar="RULE",
        help="daily, weekdays, weekends, weekly, monthly, mon,wed or '2 weeks';"
        " --start is then local time in --zone",
    )
    group.add_argument("--zone", metavar="ZONE", help="such as Europe/Berlin (default: UTC)")
    extent(group)


def extent(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Declare how often it recurs, and whether occurrences that do not fit are left out."""
    add = parser.add_argument
    add("--times", type=int, metavar="N", help="number of occurrences")
    add(
        "--until-date",
        metavar="DATE",
        help="instead of --times: the last date on which one may start",
    )
    add(
        "--as-many-as-fit",
        action="store_true",
        help="grant the dates that fit, and list the others",
    )


def check(args: argparse.Namespace, usage_error: Callable[[str], Any]) -> None:
    """Refuse options that do not go together."""
    if args.every is None:
        for name in _ONLY:
            if getattr(args, name):
                usage_error(f"argument --{name.replace('_', '-')}: only with --every")
        return
    if args.duration is None:
        usage_error("argument --every: needs --duration, the length of each occurrence")
    if args.ensemble is not None:
        usage_error(
            "argument --every: not with --ensemble, which can be placed only once;"
            " give a description or a template, of which each occurrence gets an ensemble"
        )
    check_extent(args, usage_error)


def check_extent(args: argparse.Namespace, usage_error: Callable[[str], Any]) -> None:
    """Refuse several ways, or none, of saying how often."""
    if (args.times is None) is (args.until_date is None):
        usage_error("give either --times or --until-date")


def recurrence_body(args: argparse.Namespace) -> dict[str, Any]:
    """The recurrence in the API's form."""
    given = {"times": args.times, "until_date": args.until_date}
    body = {name: value for name, value in given.items() if value is not None}
    return body | ({"as_many_as_fit": True} if args.as_many_as_fit else {})


def create(client: Moorage, args: argparse.Namespace, body: dict[str, Any]) -> Shown:
    """Create the series of a lease."""
    body |= {"every": args.every, **recurrence_body(args)}
    body |= {} if args.zone is None else {"zone": args.zone}
    then = _goes_on(dry_run="id" not in body, command="moorage series list", key=body.get("id"))
    with interruptible("granting the series", then):
        return shown(client.series.create(body, dry_run=args.dry_run), after=0)


def _goes_on(*, dry_run: bool, command: str, key: str | None = None) -> str:
    """The hint for an interrupted request: how to find its result, and how to repeat it."""
    if dry_run:
        return "nothing was leased: it was a dry run"
    repeat = "" if key is None else f"; a repeat with --id {key} makes no second series"
    return f"the service continues the request: see `{command}`{repeat}"


def shown(answer: Answer[OneSeries], *, after: int) -> Shown:
    """A series' new leases on one line; what was not granted; in a dry run, all windows.

    Args:
        answer: the series as it is, or would be.
        after: the number of the last occurrence that was asked for before.
    """
    made = answer.value
    new = [one for one in made.series.occurrences or () if one.index > after]
    parts: list[Any] = [series_text.granted(made, new)]
    parts += series_text.skipped_occurrences(
        [one for one in made.series.left_out if one.index > after]
    )
    if made.dry_run:
        parts += ["", series_text.occurrences(new)]
    return Shown(answer.body, stack(*parts))


class Extend(Command):
    """Add occurrences to a series, after its last one: all of them, or none.

    They recur by the series' rule, with its places and terms.
    """

    examples = """
        moorage series extend nightly --times 10
        moorage series extend nightly --until-date 2027-03-31 --as-many-as-fit --dry-run
    """
    options = (SERIES, extent, DRY_RUN)

    def act(self, args: argparse.Namespace) -> Shown:
        check_extent(args, self.usage_error)
        with self.client() as client:
            before = client.series.show(client.series.find(args.series)).value.series
            body = recurrence_body(args) | {"generation": before.generation}
            then = _goes_on(dry_run=args.dry_run, command=f"moorage series show {before.id}")
            with interruptible("extending the series", then):
                answer = client.series.extend(before.id, body, dry_run=args.dry_run)
        return shown(answer, after=before.times)
