"""`moorage admin shadow report`: what a shadow has found."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moorage.cli.command import Command
from moorage.cli.output import CONFLICT, OK, Shown, stack, table
from moorage.cli.parser import CONFIG_DIR, CONFIG_FILE, Option, WrongUsage
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from moorage.shadow.report import Joint, JointCase, ShadowReport


class Report(Command):
    """Show how Moorage would have answered the requests to a Placement service.

    A service started with --shadow writes the report every second; this shows it, whether or not
    the service runs. The exit status is 4 if any request would have been answered differently.
    """

    examples = """
        moorage admin shadow report
        moorage admin shadow report --file /var/lib/moorage/moorage/shadow.json -f json
    """
    options = (
        Option("--file", metavar="FILE", help="default: the setting `shadow_report`"),
        CONFIG_FILE,
        CONFIG_DIR,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        import msgspec

        from moorage.shadow.report import ReportFile

        report = ReportFile(_file(args)).load()
        body: dict[str, Any] = {**msgspec.to_builtins(report), "differences": report.differences}
        return Shown(body, _told(report), CONFLICT if report.differences else OK)


def _file(args: argparse.Namespace) -> Path:
    """The report's file.

    Raises:
        WrongUsage: none is given, and the settings have no shadow.
    """
    if args.file:
        return Path(args.file)
    from moorage import settings

    given = {"config_file": args.config_file, "config_dir": args.config_dir}
    found = settings.configure(settings.read(given, os.environ)).shadow
    if found is None:
        raise WrongUsage("the settings have no `shadow`: name the report with --file")
    return found.report


def _told(report: ShadowReport) -> Any:  # noqa: ANN401 - something rich
    left = sum(report.not_compared.values())
    parts: list[Any] = [
        f"{report.followed} from {report.since} to {report.until}",
        (
            f"{counted(report.requests, 'request')}: {report.equal} answered alike,"
            f" {report.differences} differently, {left} not compared"
        ),
    ]
    for kind, found in sorted(report.different.items(), key=lambda one: -one[1].count):
        parts.append(f"{found.count} × {kind}")  # noqa: RUF001 - times
        parts += [f"    {one.path}: {one.detail}" for one in found.examples[:1]]
    if report.not_compared:
        reasons = sorted(report.not_compared.items(), key=lambda one: -one[1])
        parts.append(table(("not compared", "#count"), reasons))
    boots = report.boots
    if boots.seen:
        parts.append(
            f"{counted(boots.seen, 'server')} created: {boots.possible_here} on a host that Moorage"
            f" had offered, {boots.first_here} on its first"
        )
        parts += [f"not offered: {one.path} {one.detail}" for one in boots.elsewhere.examples]
    parts += _joint(report.joint)
    parts.append(
        f"content taken over {counted(report.refreshes, 'time')},"
        f" {counted(report.corrections, 'record')} corrected"
    )
    return stack(*parts)


def _joint(joint: Joint) -> Iterator[str]:
    """What a joint decision would have given servers of one request or group."""
    if not joint.judged:
        return
    yield (
        f"{counted(joint.judged, 'time')} several servers of one request or group: {joint.same} on"
        f" the hosts of a joint decision, {joint.elsewhere.count} on others,"
        f" {joint.impossible.count} without one; {joint.broken.count} break their group's policy"
    )
    cases = [*joint.broken.examples, *joint.elsewhere.examples, *joint.impossible.examples]
    for one in {(each.at, each.of): each for each in cases}.values():
        yield f"    {_case(one)}"


def _case(one: JointCase) -> str:
    here = _hosts(one.here) if one.here else f"none ({one.reason})"
    broken = f"; broken there: {', '.join(one.broken)}" if one.broken else ""
    return (
        f"{one.of}, {counted(one.servers, 'server')}: {_hosts(one.there)}; jointly: {here}{broken}"
    )


def _hosts(counts: Mapping[str, int]) -> str:
    return ", ".join(host if count == 1 else f"{count} on {host}" for host, count in counts.items())
