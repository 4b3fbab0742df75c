"""`moorage capacity calendar`: free and busy capacity, in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TextIO

from moorage.cli.command import Command
from moorage.cli.gantt import NOW, NOW_LINE, Scale, axis, column, filled, labels, length, ticks
from moorage.cli.output import Shown, console, stack
from moorage.cli.parser import Flag, Option, WrongUsage
from moorage.cli.times import TIME_HELP, minute, time_of
from moorage.client.errors import ApiError
from moorage.domain.errors import UnknownName
from moorage.domain.period import DAY, SECOND, Period, format_duration, parse_instant

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from rich.console import RenderableType

    from moorage.client.moorage import Moorage
    from moorage.client.resource import Answer
    from moorage.wire.capacity import Amounts, CapacityValue

CELLS: Final = "·▁▂▃▄▅▆▇█"
"""From free to busy, in eighths; anything that is taken at all shows at least the second."""
PLAIN: Final = ".1234567#"
"""The same where only ASCII can be shown."""
AWAY: Final = "x"
"""All hosts of the row are planned to be away, at every instant of the column."""
ASCII: Final = str.maketrans({"─": "-", "┬": "+", NOW: "v", NOW_LINE: "|", "…": "~"})
AHEAD: Final = 30 * DAY
EVERYWHERE: Final = "all"
SHARED: Final = "shared"
"""Pools that hosts of several domains use."""
_LEAST: Final = 16
"""Columns of time, however narrow the terminal is."""
_LEFT: Final = 30
"""Columns that names may take, and are kept for them when columns are counted."""


class Calendar(Command):
    """Draw what is free and busy: a row for each zone and resource class.

    A mark shows the busiest instant of its column. Tenants see the load in eighths and no host
    names. With -f json the same as data.
    """

    examples = """
        moorage capacity calendar
        moorage capacity calendar --from 2026-12-01 --to 2026-12-24 --resource-class VCPU
        moorage capacity calendar --by rack
        moorage capacity calendar --by host --zone r1
    """
    options = (
        Option("--from", type=time_of, dest="since", metavar="T", help=TIME_HELP),
        Option("--to", type=time_of, metavar="T", help="default: 30 days later"),
        Option("--zone", metavar="NAME", help="a zone; operators: any domain"),
        Option(
            "--by",
            metavar="LEVEL",
            help="rows by rack, host, ... (default: zone, if there are zones)",
        ),
        Option(
            "--resource-class", action="append", metavar="CLASS", help="only this class; repeatable"
        ),
        Flag("--ascii", "draw with ASCII only"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        width = max(console(self.app.stdout).width, _LEFT + _LEAST)
        with self.client() as client:
            found = _ask(client, args, width - _LEFT)
        plain = args.ascii or not speaks_unicode(self.app.stdout)
        classes = frozenset(args.resource_class or ())
        _check(found.value, classes)
        return Shown(found.body, drawn(found.value, classes, width, plain=plain))


def _ask(client: Moorage, args: argparse.Namespace, columns: int) -> Answer[CapacityValue]:
    """Ask for the lowest free capacity in each column's time.

    Raises:
        WrongUsage: the end is not after the beginning.
    """
    span = AHEAD
    if args.to:
        start = args.since or client.capacity.over_time(zone=args.zone, step="P1000D").value.start
        span = parse_instant(args.to) - parse_instant(start)
        if span <= 0:
            raise WrongUsage("--to must be after --from")
    step = max(-(-span // (columns * SECOND)), 1) * SECOND
    asked = {
        "since": args.since,
        "until": args.to,
        "zone": args.zone,
        "step": format_duration(step),
    }
    try:
        return client.capacity.over_time(**asked, by=args.by or "zone")
    except ApiError as error:
        if args.by or error.code != "ensemble.unknown_name" or error.error.get("path") == "zone":
            raise
    return client.capacity.over_time(**asked)


def _check(found: CapacityValue, classes: frozenset[str]) -> None:
    """Refuse classes that no host has, if there are any hosts.

    Raises:
        UnknownName: no host has one of them.
    """
    known = {name for one in found.parts for name in one.resources}
    for name in sorted(classes - known) if found.parts else ():
        raise UnknownName("resource class on these hosts", name, known=known)


def speaks_unicode(out: TextIO) -> bool:
    """Whether the output's encoding has block characters."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    try:
        CELLS.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def drawn(
    found: CapacityValue, classes: frozenset[str], width: int, *, plain: bool
) -> RenderableType:
    """The calendar, at most `width` columns wide if that leaves room for any."""
    rows = [
        (one.domain or (SHARED if one.shared_by else EVERYWHERE), name, amounts)
        for one in found.parts
        for name, amounts in sorted(one.resources.items())
        if not classes or name in classes
    ]
    if not rows:
        return "no hosts with these resource classes"
    where = column("zone", [domain for domain, _, _ in rows], 12)
    what = column("class", [name for _, name, _ in rows], _LEFT - 16)
    left = len(where[0]) + len(what[0]) + 4
    window = Period(parse_instant(found.start), parse_instant(found.end))
    scale = Scale(window, max(width - left, _LEAST))
    marks, now = ticks(window, scale.columns), parse_instant(found.computed_at)
    lines = [
        f"{' ' * left}{labels(marks, scale)}".rstrip(),
        f"{where[0]}  {what[0]}  {axis(marks, scale, now)}",
    ]
    before = ""
    for (domain, _, amounts), zone, name in zip(rows, where[1:], what[1:], strict=True):
        head = zone if domain != before else " " * len(zone)
        lines.append(f"{head}  {name}  {cells(amounts, scale, plain=plain)}")
        before = domain
    lines += ["", *_legend(scale, found, width, plain=plain)]
    return stack(*(line.translate(ASCII) if plain else line for line in lines))


def cells(amounts: Sequence[Amounts], scale: Scale, *, plain: bool) -> str:
    """A mark for each column: the load at its busiest instant.

    Where hosts are planned to be away, and nothing is left of them, it says so.
    """
    busy = [0.0] * scale.columns
    away = [True] * scale.columns
    starts = [parse_instant(one.at) for one in amounts]
    for one, start, end in zip(amounts, starts, [*starts[1:], scale.window.end], strict=True):
        if start < end:
            for at in scale.stretch(Period(start, end)):
                busy[at] = max(busy[at], one.busy)
                away[at] = away[at] and bool(one.away) and one.total == 0
    marks = PLAIN if plain else CELLS
    eighths = len(marks) - 1
    return "".join(
        AWAY if gone else marks[max(1, min(int(share * eighths), eighths))] if share else marks[0]
        for share, gone in zip(busy, away, strict=True)
    )


def _legend(scale: Scale, found: CapacityValue, width: int, *, plain: bool) -> list[str]:
    marks = PLAIN if plain else CELLS
    said = [
        f"{marks[0]} free",
        f"{marks[1]} to {marks[-2]} busy in eighths",
        f"{marks[-1]} nothing left",
        f"{AWAY} away",
        f"{NOW} now {minute(found.computed_at)}",
        f"a column is {length(scale.column)}",
    ]
    return filled(said, width)
