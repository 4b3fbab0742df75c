"""`moorage ensemble compliance` and `moorage violation list`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.cli.command import Command
from moorage.cli.listing import part_of
from moorage.cli.output import (
    CONFLICT,
    OK,
    Shown,
    clock_time,
    listing_of_projects,
    moment,
    short,
    stack,
    table,
)
from moorage.cli.parser import ALL_PROJECTS, ENSEMBLE, Flag, Option, Repeated
from moorage.cli.times import TIME_HELP, time_of
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from moorage.wire.compliance import (
        Cause,
        Compliance,
        MemberOutOfService,
        PolicyCompliance,
        ViolationRecord,
    )

STATES: Final = ("open", "ended", "all")
_CONDITIONS: Final = {"at_risk": "AT RISK", "lost": "LOST"}
_WHY: Final = {
    "host": "host",
    "member_moved": "member moved",
    "member_removed": "member removed",
    "neighbour": "neighbour came or left",
    "ensemble": "ensemble changed",
    "topology": "topology changed",
    "reference": "another ensemble changed",
    "found": "found when it was judged",
}


class Show(Command):
    """Judge an ensemble now: which policies are broken, and which members are out of service.

    Exits 4 if a required policy is broken or a member is out of service. A preferred policy that
    is not met is shown, and does not count.
    """

    examples = """
        moorage ensemble compliance shop
        moorage ensemble compliance b1d7 --history
        moorage ensemble compliance b1d7 -f json
    """
    options = (ENSEMBLE, Flag("--history", "also what was violated before"))

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble)
            answer = client.ensembles.compliance(ensemble_id, history=args.history)
        one = answer.value
        text = "\n".join(judged(one))
        status = OK if one.compliant else CONFLICT
        if not args.history:
            return Shown(answer.body, text, status)
        rows = [
            (moment(each.since), moment(each.until), _subject(each), each.type, each.text)
            for each in one.history or ()
        ]
        before = table(["since", "until", "what", "type", "why"], rows) if rows else "no history"
        return Shown(answer.body, stack(text, "", before), status)


def judged(one: Compliance) -> Iterator[str]:
    """A line for each violation: `VIOLATED ha (since 09:31:02Z): losing one rack leaves 1 of 3`."""
    broken = [policy for policy in one.policies if not policy.ok]
    if one.compliant:
        yield "compliant" if one.placed else "compliant: no member is placed"
    for policy in sorted(broken, key=lambda each: not each.required):
        word = "VIOLATED" if policy.required else "not met:"
        yield f"{word} {policy.name}{_since(policy, one.judged_at)}: {policy.text}"
    for member in one.out_of_service:
        word = _CONDITIONS.get(member.condition, member.condition)
        yield f"{word} {member.member}{_since(member, one.judged_at)}: {_cause_of(member)}"
    if one.not_judged:
        yield f"not judged, since they are on no host: {', '.join(one.not_judged)}"


def _since(one: PolicyCompliance | MemberOutOfService, now: str) -> str:
    """When it began: the time of day if that was today; nothing if it is not recorded yet."""
    if one.since is None:
        return ""
    today = moment(one.since).partition("T")[0] == moment(now).partition("T")[0]
    return f" (since {clock_time(one.since) if today else moment(one.since)})"


def _cause_of(member: MemberOutOfService) -> str:
    """Why a member is out of service: operators read the host's name and the reason."""
    said = _hosts(member.because)
    return f"its host is out of service{f' ({said})' if said else ''}"


def _hosts(cause: Cause | None) -> str:
    if cause is None:
        return ""
    parts = (" ".join(cause.hosts or ()), cause.reason or "")
    return ": ".join(part for part in parts if part)


class List(Command):
    """List broken policies and members out of service, newest first."""

    examples = """
        moorage violation list
        moorage violation list --ensemble shop --state all
        moorage violation list --type at_risk --type lost
        moorage violation list --all-projects --host h4     # operators
    """
    options = (
        Option("--ensemble", metavar="ENSEMBLE", help="only those of this ensemble"),
        Option("--host", metavar="HOST", help="only those of members on this host (operators)"),
        Repeated(
            "--type",
            metavar="TYPE",
            help="a policy's type, at_risk or lost; repeatable",
            dest="types",
        ),
        Option(
            "--required",
            choices=("yes", "no"),
            help="only those of required, or of preferred policies",
        ),
        Option("--state", choices=STATES, default="open", help="default: open, those that last"),
        Option(
            "--since",
            type=time_of,
            metavar="T",
            help=f"only those that lasted at some time since then, {TIME_HELP}",
        ),
        Option(
            "--of", metavar="PROJECT", dest="project_id", help="those of this project (operators)"
        ),
        ALL_PROJECTS,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.violations.all(
                ensemble=args.ensemble and client.ensembles.find(args.ensemble),
                host=args.host,
                types=args.types,
                required=None if args.required is None else args.required == "yes",
                state=args.state,
                since=args.since,
                project_id=args.project_id,
                all_projects=args.all_projects,
                part=part_of(args, {}),
            )
            cells = {
                "ensemble": lambda one: one.ensemble,
                "what": _subject,
                "type": lambda one: one.type,
                "members": _members,
                "since": lambda one: moment(one.since),
                "until": lambda one: moment(one.until) if one.until else "",
                "why": _why,
                "violation": lambda one: short(one.id),
            }
            narrowed = {"state": args.state, "type": ",".join(args.types) or None}
            text = listing_of_projects(
                client, args, "/v1/violations", cells, answer.value, ["until"], **narrowed
            )
        return Shown(answer.body, text)


def _subject(one: ViolationRecord) -> str:
    """What is violated: `policy apart`, `member db[1]`."""
    if one.policy is None:
        return f"member {one.members[0]}"
    return f"policy {one.policy}" if one.required else f"policy {one.policy} (preferred)"


def _members(one: ViolationRecord) -> str:
    from moorage.cli.placement_map import summed

    return summed(one.members) if one.members else "-"


def _why(one: ViolationRecord) -> str:
    """How it is broken and by what: `host h2 holds 2 of 3 (member moved)`."""
    cause = _WHY.get(one.because.kind, one.because.kind)
    hosts, who = _hosts(one.because), one.because.user or one.because.by
    said = f"{cause}{f' {hosts}' if hosts else ''}{f', by {who}' if who else ''}"
    return f"{one.text} ({said})"


def with_begun(text: str, body: Mapping[str, Any] | None, *, dry_run: bool = False) -> str:
    """A text about a change, and under it the violations that the change begins."""
    return "\n".join((text, *begun((body or {}).get("breaks"), dry_run=dry_run)))


def begun(breaks: Mapping[str, Any] | None, *, dry_run: bool) -> Iterator[str]:
    """The violations that a change begins: how many, and a line for each."""
    if breaks is None:  # of an older service
        return
    unjudged = ""
    if breaks["judged"] < breaks["ensembles"]:
        unjudged = f" ({breaks['judged']} of {breaks['ensembles']} ensembles judged)"
    if breaks["found"] or unjudged:
        verb = "would begin" if dry_run else "begins"
        yield f"{verb} {counted(breaks['found'], 'violation')}{unjudged}"
    for one in breaks["violations"]:
        policy = f"{one['policy']}: " if one["policy"] else ""
        yield f"  {one['ensemble']}: {policy}{one['text']}"
    if breaks["found"] > len(breaks["violations"]):
        yield f"  and {breaks['found'] - len(breaks['violations'])} more"
