"""`moorage lease create --every`: a lease that recurs, and `moorage series extend`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli import told_series
from moorage.cli.command import Command
from moorage.cli.output import Shown, stack
from moorage.cli.progress import asking
from moorage.cli.series import which

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from moorage.client.moorage import Moorage
    from moorage.client.series import Made
    from moorage.client.structs import Answer

_REPEAT = "; the same with --id {id} makes no second series"
_ONLY = ("zone", "times", "until_date", "as_many_as_fit")


def recurring(parser: argparse.ArgumentParser) -> None:
    """The options that make a series of a lease."""
    group = parser.add_argument_group("a lease that recurs: all of its dates, or none")
    group.add_argument(
        "--every",
        metavar="RULE",
        help="daily, weekdays, weekends, weekly, monthly, mon,wed or '2 weeks';"
        " --start is then a wall's clock in --zone",
    )
    group.add_argument("--zone", metavar="ZONE", help="such as Europe/Berlin (default: UTC)")
    extent(group)


def extent(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """How often, and what becomes of the rest where some dates do not fit."""
    add = parser.add_argument
    add("--times", type=int, metavar="N", help="so many occurrences")
    add("--until-date", metavar="DATE", help="the last date on which one may start, instead")
    add("--as-many-as-fit", action="store_true", help="grant what fits, and say what does not")


def check(args: argparse.Namespace, usage_error: Callable[[str], Any]) -> None:
    """Let options pass that go together."""
    if args.every is None:
        for name in _ONLY:
            if getattr(args, name):
                usage_error(f"argument --{name.replace('_', '-')}: only with --every")
        return
    if args.duration is None:
        usage_error("argument --every: give --duration, which each occurrence lasts")
    if args.ensemble is not None:
        usage_error(
            "argument --every: not with --ensemble, which has one placement at a time;"
            " a description or a template makes an ensemble for each occurrence"
        )
    check_extent(args, usage_error)


def check_extent(args: argparse.Namespace, usage_error: Callable[[str], Any]) -> None:
    """Let one of the ways pass to say how often."""
    if (args.times is None) is (args.until_date is None):
        usage_error("give --times or --until-date, and not both")


def said(args: argparse.Namespace) -> dict[str, Any]:
    """How often, as the API has it."""
    given = {"times": args.times, "until_date": args.until_date}
    body = {name: value for name, value in given.items() if value is not None}
    return body | ({"as_many_as_fit": True} if args.as_many_as_fit else {})


def create(client: Moorage, args: argparse.Namespace, body: dict[str, Any]) -> Shown:
    """Ask for the series of a lease."""
    body |= {"every": args.every, **said(args)}
    body |= {} if args.zone is None else {"zone": args.zone}
    with asking("granting the series", _goes_on(body)):
        return shown(client.series.create(body, dry_run=args.dry_run), after=0)


def _goes_on(body: dict[str, Any], repeat: str = _REPEAT) -> str:
    """What becomes of it where nobody waits for the answer."""
    if "id" not in body:
        return "nothing is leased: it was a dry run"
    told = f"the service goes on: `moorage series show {body['id']}` shows what comes of it"
    return told + repeat.format(**body)


def shown(answer: Answer[Made], *, after: int) -> Shown:
    """What is new of a series, in a line; what could not be granted; in a dry run, all windows.

    Args:
        answer: the series as it is, or would be.
        after: the number of the last occurrence that was asked for before.
    """
    made = answer.value
    new = [one for one in made.series.occurrences if one.index > after]
    parts: list[Any] = [told_series.granted(made, new)]
    parts += told_series.left_out([one for one in made.series.left_out if one.index > after])
    if made.dry_run:
        parts += ["", told_series.occurrences(new)]
    return Shown(answer.body, stack(*parts))


class Extend(Command):
    """Add occurrences to a series, after its last one: all of them, or none.

    They follow the series' own rule, and have the places and terms of the others.
    """

    examples = """
        moorage series extend nightly --times 10
        moorage series extend nightly --until-date 2027-03-31 --as-many-as-fit --dry-run
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which, and by how much."""
        self._usage_error = parser.error
        which(parser)
        extent(parser)
        parser.add_argument("--dry-run", action="store_true", help="judge only, write nothing")

    def act(self, args: argparse.Namespace) -> Shown:
        """Extend."""
        check_extent(args, self._usage_error)
        with self.client() as client:
            before = client.series.show(client.series.find(args.series)).value.series
            body = said(args) | {"generation": before.generation}
            then = _goes_on({} if args.dry_run else {"id": before.id}, repeat="")
            with asking("extending the series", then):
                answer = client.series.extend(before.id, body, dry_run=args.dry_run)
        return shown(answer, after=before.times)
