"""`moorage capacity show|fit|windows`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.cli.command import Command
from moorage.cli.flavor import amount
from moorage.cli.output import Shown, stack, table
from moorage.cli.template import parameter_argument
from moorage.cli.times import TIME_HELP, length, minute, span, time_of
from moorage.domain.errors import InvalidDescription
from moorage.domain.period import HOUR, format_duration, parse_instant
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse

    from rich.console import RenderableType

    from moorage.client import capacity
    from moorage.client.capacity import Amounts, Capacity, Course, FreeWindows

ROWS: Final = 25
"""Lines of a table unless a step is said: then the step is chosen so that there are no more."""
_STEPS: Final = tuple(n * HOUR for n in (1, 3, 6, 12, 24, 48, 168, 336, 672))


def scope(parser: argparse.ArgumentParser) -> None:
    """When, where and what size: the same for every question about capacity."""
    parser.add_argument("--from", type=time_of, dest="since", metavar="T", help=TIME_HELP)
    parser.add_argument("--to", type=time_of, metavar="T", help="default: 30 days later")
    parser.add_argument("--zone", metavar="NAME", help="a zone; operators: any domain")
    parser.add_argument("--flavor", metavar="FLAVOR", help="how many of it fit")
    parser.add_argument(
        "--resource", action="append", type=amount, metavar="CLASS=AMOUNT", help="of what fits"
    )
    parser.add_argument("--required", action="append", metavar="TRAIT", help="A, A|B or !A")


def said(args: argparse.Namespace) -> dict[str, str | None]:
    """The same as the API's parameters."""
    resources = ",".join(f"{name}:{value}" for name, value in args.resource or ())
    return {
        "since": args.since,
        "until": args.to,
        "zone": args.zone,
        "flavor": args.flavor,
        "resources": resources or None,
        "required": ",".join(args.required or ()) or None,
    }


class Show(Command):
    """Show capacity over time, and how many of a flavor fit.

    Time is looked at in steps. A line tells the worst of its step: the least that is available,
    the most that is taken, and how many fit all through it; it holds until the next line.
    """

    examples = """
        moorage capacity show
        moorage capacity show --flavor m1.large --from 2026-12-01 --to 2026-12-08 --step 1d
        moorage capacity show --by rack --resource VCPU=8 --required CUSTOM_NVME
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """What about."""
        scope(parser)
        parser.add_argument("--step", type=span, metavar="DURATION", help="such as 1h or 1d")
        parser.add_argument("--by", metavar="LEVEL", help="a table for each zone, rack, host, ...")
        parser.add_argument(
            "--every", action="store_true", help="a line for every change instead of steps"
        )

    def act(self, args: argparse.Namespace) -> Shown:
        """Show."""
        asked = said(args)
        with self.client() as client:
            if not args.every:
                asked["step"] = args.step or _step(args)
            found = client.capacity.over_time(by=args.by, **asked)
        return Shown(found.body, _tables(found.value))


def _step(args: argparse.Namespace) -> str:
    """A round step, so that the table is no longer than `ROWS`."""
    whole = 30 * 24 * HOUR
    if args.since and args.to:
        whole = parse_instant(args.to) - parse_instant(args.since)
    return format_duration(next((one for one in _STEPS if one * ROWS >= whole), _STEPS[-1]))


def _tables(found: Capacity) -> RenderableType:
    parts: list[RenderableType] = []
    for one in found.parts:
        heading = _heading(found, one)
        parts += ["", heading, ""] if parts else [heading, ""]
        parts.append(_table(found, one))
    return stack(*parts) if parts else "no such hosts"


def _heading(found: Capacity, one: Course) -> str:
    where = one.domain or "everywhere"
    hosts = "" if one.hosts is None else f", {counted(one.hosts, 'host')}"
    step = f", each line the worst of {length(found.step)}" if found.step else ""
    rough = "" if found.exact else ", counts rounded down"
    return f"{where}{hosts}{step}{rough}"


def _table(found: Capacity, one: Course) -> RenderableType:
    """A line where something changes."""
    exact = found.exact
    away = any(row.away for every in one.resources.values() for row in every)
    unbacked = any(row.unbacked for every in one.resources.values() for row in every)
    there = ["#total", *(["#away"] if away else [])]
    booked = ["#reserved", "#allocated", *(["#unbacked"] if unbacked else [])]
    columns = ["from", "class", *([*there, *booked] if exact else [])]
    columns += ["#available", "#busy", *(["#fit"] if one.fit is not None else [])]
    counts = {row.at: row.count for row in one.fit or ()}
    rows: list[tuple[object, ...]] = []
    instants = sorted({row.at for every in one.resources.values() for row in every} | set(counts))
    by_time = {name: {row.at: row for row in every} for name, every in one.resources.items()}
    last: dict[str, Amounts] = {}
    fits: int | None = None
    told: object = None
    for at in instants:
        fits = counts.get(at, fits)
        last |= {name: every[at] for name, every in by_time.items() if at in every}
        here = [msgspec.structs.replace(row, at="") for row in last.values()], fits
        if here == told:
            continue
        told = here
        for number, (name, row) in enumerate(sorted(last.items())):
            amounts = [row.total, *([row.away] if away else []), row.reserved, row.allocated]
            amounts += [row.unbacked] if unbacked else []
            fit = ((fits if number == 0 else None),) if one.fit is not None else ()
            when = minute(at) if number == 0 else ""
            rows.append((when, name, *(amounts if exact else ()), row.available, _busy(row), *fit))
    return table(columns, rows)


def _busy(row: Amounts) -> str:
    """A share; none of what is not there."""
    return "-" if row.total == 0 else f"{row.busy:.0%}"


class Fit(Command):
    """Count how many more members, ensembles or servers of a flavor fit.

    By the joint search, with all policies, and everybody placed staying put: the number that
    one can really reach.
    """

    examples = """
        moorage capacity fit hadoop --role worker
        moorage capacity fit hadoop
        moorage capacity fit --template upf --param count=4 --from 2026-12-07 --to 2026-12-11
        moorage capacity fit --flavor m1.large
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """What shall fit, and when."""
        self._usage_error = parser.error
        parser.add_argument("ensemble", nargs="?", metavar="ENSEMBLE", help="its name or id")
        parser.add_argument("--role", help="members of it; without: whole ensembles like it")
        parser.add_argument("--template", metavar="TEMPLATE", help="its name or id, or NAME@3")
        parameter_argument(parser)
        parser.add_argument("--flavor", metavar="FLAVOR")
        parser.add_argument("--from", type=time_of, dest="since", metavar="T", help=TIME_HELP)
        parser.add_argument("--to", type=time_of, metavar="T", help="default: for ever")

    def act(self, args: argparse.Namespace) -> Shown:
        """Count."""
        if sum(one is not None for one in (args.ensemble, args.template, args.flavor)) != 1:
            self._usage_error("say what shall fit: ENSEMBLE, --template or --flavor, one of them")
        if args.role is not None and args.ensemble is None:
            self._usage_error("argument --role: only with ENSEMBLE, whose role it is")
        if args.param and args.template is None:
            self._usage_error("argument --param: only with --template")
        body: dict[str, Any] = {
            "role": args.role,
            "template": args.template and {"name": args.template, "parameters": dict(args.param)},
            "flavor": args.flavor,
        }
        if args.since or args.to:
            body["window"] = {"start": args.since, "end": args.to}
        with self.client() as client:
            if args.ensemble:
                body["ensemble_id"] = client.ensembles.find(args.ensemble)
            found = client.capacity.fit({name: one for name, one in body.items() if one})
        return Shown(found.body, _sentence(found.value))


def _sentence(fit: capacity.Fit) -> str:
    """`additional 8   limited by one-per-host (20 hosts)   quota allows 30`."""
    said = [f"additional {fit.additional}{'' if fit.exact else ' or more'}"]
    if fit.limited_by:
        said.append("limited by " + ", ".join(_limit(one) for one in fit.limited_by))
    if fit.quota_allows is not None:
        said.append(f"quota allows {fit.quota_allows}")
    return "   ".join(said)


def _limit(one: capacity.Limit) -> str:
    # What is neither a policy nor an amount, such as devices or traits, is said by what it needs.
    name = one.policy or (f"{'/'.join(one.classes)} of {one.role}" if one.classes else one.needs)
    numbers = ", ".join(f"{label}: {number}" for label, number in one.facts.items())
    return f"{name} ({numbers})" if numbers else name


class Windows(Command):
    """Find when so many of a flavor fit for so long."""

    examples = """
        moorage capacity windows --flavor m1.large --count 10 --duration 4h
        moorage capacity windows --resource VCPU=8 --duration 1d --zone az1 --to 2026-12-24
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """What, how many and how long."""
        scope(parser)
        parser.add_argument("--count", type=int, default=1, metavar="N", help="default: 1")
        parser.add_argument("--duration", type=span, required=True, metavar="DURATION")

    def act(self, args: argparse.Namespace) -> Shown:
        """Find."""
        if not (args.flavor or args.resource):
            raise InvalidDescription("say what shall fit: --flavor or --resource")
        with self.client() as client:
            found = client.capacity.windows(
                count=str(args.count), duration=args.duration, **said(args)
            )
        return Shown(found.body, _windows(found.value))


def _windows(found: FreeWindows) -> RenderableType:
    if not found.windows:
        return f"never between {minute(found.start)} and {minute(found.end)}"
    rows = [(minute(one.earliest), minute(one.latest), one.count) for one in found.windows]
    return table(["begin from", "begin until", "#fit"], rows)
