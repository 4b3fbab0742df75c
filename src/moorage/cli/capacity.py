"""`moorage capacity show|fit|windows`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from moorage.cli import decision_text
from moorage.cli.command import Command
from moorage.cli.ensemble_source import parameter_argument
from moorage.cli.flavor import amount
from moorage.cli.output import Shown, stack, table
from moorage.cli.parser import Flag, Option, WrongUsage
from moorage.cli.times import TIME_HELP, length, minute, span, time_of
from moorage.domain.period import HOUR, format_duration, parse_instant
from moorage.domain.words import counted, first_of

if TYPE_CHECKING:
    import argparse

    from rich.console import RenderableType

    from moorage.wire import capacity

ROWS: Final = 25
"""The most lines of a table without a given step: the step is chosen accordingly."""
_NAMED: Final = 5
"""The most domains that a heading names."""
_STEPS: Final = tuple(n * HOUR for n in (1, 3, 6, 12, 24, 48, 168, 336, 672))


def scope(parser: argparse.ArgumentParser) -> None:
    """Declare the options of period, domain and size that all questions about capacity share."""
    parser.add_argument("--from", type=time_of, dest="since", metavar="T", help=TIME_HELP)
    parser.add_argument("--to", type=time_of, metavar="T", help="default: 30 days later")
    parser.add_argument("--zone", metavar="NAME", help="a zone; operators: any domain")
    parser.add_argument("--flavor", metavar="FLAVOR", help="count how many of it fit")
    parser.add_argument(
        "--resource",
        action="append",
        type=amount,
        metavar="CLASS=AMOUNT",
        help="count how many of these amounts fit",
    )
    parser.add_argument("--required", action="append", metavar="TRAIT", help="A, A|B or !A")


def query_of_scope(args: argparse.Namespace) -> dict[str, str | None]:
    """These options as the API's parameters."""
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

    Time is divided into steps. A line shows the lowest values of its step: the least available, the
    busiest, and how many fit throughout it; it holds until the next line. A pool counts once: in
    the domain where it is, or in a table of its own if it is in none and several use it.
    """

    examples = """
        moorage capacity show
        moorage capacity show --flavor m1.large --from 2026-12-01 --to 2026-12-08 --step 1d
        moorage capacity show --by rack --resource VCPU=8 --required CUSTOM_NVME
    """
    options = (
        scope,
        Option("--step", type=span, metavar="DURATION", help="such as 1h or 1d"),
        Option("--by", metavar="LEVEL", help="a table for each zone, rack, host, ..."),
        Flag("--every", "a line for every change instead of steps"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        asked = query_of_scope(args)
        with self.client() as client:
            if not args.every:
                asked["step"] = args.step or _step(args)
            found = client.capacity.over_time(by=args.by, **asked)
        return Shown(found.body, tables(found.value))


def _step(args: argparse.Namespace) -> str:
    """A round step for which the table has at most `ROWS` lines."""
    whole = 30 * 24 * HOUR
    if args.since and args.to:
        whole = parse_instant(args.to) - parse_instant(args.since)
    return format_duration(next((one for one in _STEPS if one * ROWS >= whole), _STEPS[-1]))


def tables(found: capacity.CapacityValue) -> RenderableType:
    """A table for each part, below its heading."""
    parts: list[RenderableType] = []
    for one in found.parts:
        heading = _heading(found, one)
        parts += ["", heading, ""] if parts else [heading, ""]
        parts.append(_table(found, one))
    return stack(*parts) if parts else "no hosts"


def _heading(found: capacity.CapacityValue, one: capacity.Course) -> str:
    where = one.domain or "everywhere"
    hosts = f", {counted(one.hosts, 'host')}" if one.hosts is not msgspec.UNSET else ""
    if one.shared_by:
        where, hosts = f"pools shared by {', '.join(first_of(one.shared_by, _NAMED))}", ""
    step = f", lowest value in each {length(found.step)} step" if found.step else ""
    rough = "" if found.exact else ", counts rounded down"
    return f"{where}{hosts}{step}{rough}"


def _table(found: capacity.CapacityValue, one: capacity.Course) -> RenderableType:
    """A table with a line for each change."""
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
    last: dict[str, capacity.Amounts] = {}
    fits: int | None = None
    before: object = None
    for at in instants:
        fits = counts.get(at, fits)
        last |= {name: every[at] for name, every in by_time.items() if at in every}
        here = [msgspec.structs.replace(row, at="") for row in last.values()], fits
        if here == before:
            continue
        before = here
        for name, row in sorted(last.items()):
            amounts = [row.total, *([row.away] if away else []), row.reserved, row.allocated]
            amounts += [row.unbacked] if unbacked else []
            shown = (*(amounts if exact else ()), row.available, _busy(row))
            rows.append((minute(at), name, *shown, *((fits,) if one.fit is not None else ())))
    return table(columns, rows, merged=["from", "#fit"])


def _busy(row: capacity.Amounts) -> str:
    """The used share of a total; empty without a total."""
    return "-" if row.total == 0 else f"{row.busy:.0%}"


class Fit(Command):
    """Count how many more members, ensembles or servers of a flavor fit.

    Counted by the joint search, with all policies, while all placed members stay where they are.
    """

    examples = """
        moorage capacity fit hadoop --role worker
        moorage capacity fit hadoop
        moorage capacity fit --template upf --param count=4 --from 2026-12-07 --to 2026-12-11
        moorage capacity fit --flavor m1.large
    """
    options = (
        Option("ensemble", nargs="?", metavar="ENSEMBLE", help="its name or id"),
        Option("--role", help="count members of this role (default: whole ensembles like it)"),
        Option("--template", metavar="TEMPLATE", help="its name or id, or NAME@3"),
        parameter_argument,
        Option("--flavor", metavar="FLAVOR"),
        Option("--from", type=time_of, dest="since", metavar="T", help=TIME_HELP),
        Option("--to", type=time_of, metavar="T", help="default: no end"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        if sum(one is not None for one in (args.ensemble, args.template, args.flavor)) != 1:
            self.usage_error("give one of ENSEMBLE, --template and --flavor")
        if args.role is not None and args.ensemble is None:
            self.usage_error("argument --role: only with ENSEMBLE")
        if args.param and args.template is None:
            self.usage_error("argument --param: only with --template")
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
    """A sentence: `additional 8   limited by one-per-host (20 hosts)   quota allows 30`."""
    steps = decision_text.in_steps(fit.additional, fit.step)
    said = [f"additional {fit.additional}{'' if fit.exact else ' or more'}{steps}"]
    if fit.limited_by:
        said.append("limited by " + ", ".join(_limit(one) for one in fit.limited_by))
    if fit.quota_allows is not None:
        said.append(f"quota allows {fit.quota_allows}")
    return "   ".join(said)


def _limit(one: capacity.Limit) -> str:
    # A limit that is no policy and no amount, such as devices or traits, is named by its needs.
    name = one.policy or (f"{'/'.join(one.classes)} of {one.role}" if one.classes else one.needs)
    numbers = ", ".join(f"{label}: {number}" for label, number in (one.facts or {}).items())
    return f"{name} ({numbers})" if numbers else name


class Windows(Command):
    """Find when a number of servers of a flavor fit for a duration."""

    examples = """
        moorage capacity windows --flavor m1.large --count 10 --duration 4h
        moorage capacity windows --resource VCPU=8 --duration 1d --zone az1 --to 2026-12-24
    """
    options = (
        scope,
        Option("--count", type=int, default=1, metavar="N", help="default: 1"),
        Option("--duration", type=span, required=True, metavar="DURATION"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        if not (args.flavor or args.resource):
            raise WrongUsage("give --flavor or --resource")
        with self.client() as client:
            found = client.capacity.windows(
                count=str(args.count), duration=args.duration, **query_of_scope(args)
            )
        return Shown(found.body, _windows(found.value))


def _windows(found: capacity.Windows) -> RenderableType:
    if not found.windows:
        return f"no window between {minute(found.start)} and {minute(found.end)}"
    rows = [(minute(one.earliest), minute(one.latest), one.count) for one in found.windows]
    return table(["begin from", "begin until", "#fit"], rows)
