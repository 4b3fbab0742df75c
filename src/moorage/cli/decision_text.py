"""Decisions, ensembles and claims as text, one line each where possible."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from moorage.cli.host_checks import notes_on_roles
from moorage.cli.host_text import closed_for
from moorage.cli.output import clock_time, fields, moment, short
from moorage.cli.placement_map import summed
from moorage.cli.times import length, minute
from moorage.domain.words import counted
from moorage.policies.ideal_fleet import usual_rank

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from moorage.wire.claims import Claim
    from moorage.wire.decision_records import DecisionRecord
    from moorage.wire.decisions import Assignment, Decision, PolicyStatus
    from moorage.wire.ensembles import OneEnsemble, Role
    from moorage.wire.events import Event
    from moorage.wire.members import Added, Member

SEPARATOR = "  "
_KEYSTONE_ID: Final = re.compile("[0-9a-f]{32}")
PREEMPTED = "preempted"
"""Why a stay ends that is preempted by a lease."""
AWAY = "away"
"""Why a stay ends whose host is planned to be away."""
_WHY = {
    PREEMPTED: "makes way for a lease",
    "lease": "its lease ends",
    AWAY: "its host is away then",
}
_LOWEST = {"host": 1, "server": 2}
MOST = 3
"""Members named on one line, of those that end early."""


def created(made: OneEnsemble | Added) -> str:
    """A created ensemble: `id b1d7  decision 6f0c held until 09:10:00Z  policies 4/4  ...`."""
    parts = [f"id {short(made.ensemble.id)}"]
    if made.decision:
        parts += held(made.decision)
    roles = made.ensemble.members
    notes = [*notes_on_shares(roles), *notes_on_roles(roles), *notes_on_sizes(made)]
    return "\n".join([SEPARATOR.join(parts), *notes])


def notes_on_sizes(made: OneEnsemble | Added) -> Iterator[str]:
    """A line about members whose servers keep the size that their role had before."""
    from moorage.cli.placement_map import summed

    members = getattr(made, "to_resize", None) or ()
    if members:
        flavors = {role.name: role.flavor for role in made.ensemble.members}
        flavor = flavors.get(members[0].rpartition("[")[0]) or "FLAVOR"
        yield (
            f"servers of their former size: {summed(members)}; to give one the new size:"
            f" openstack server resize --flavor {flavor} SERVER"
        )


def notes_on_shares(roles: Iterable[Role]) -> Iterator[str]:
    """A line for each role of another project, with its consent."""
    for role in roles:
        if role.share:
            consent = f"{role.share.status} ({short(role.share.id)})"
            yield f"role {role.name} belongs to project {role.project_id}: share {consent}"


def decided(decision: Decision) -> str:
    """A decision in brief: `6f0c1a2b held until 09:10:00Z`."""
    return held(decision)[0].removeprefix("decision ")


def held(decision: Decision) -> list[str]:
    """The parts of a line about a decision."""
    parts = [f"decision {short(decision.id or '?')} {_kept(decision)}"]
    parts += stay(decision)
    if decision.policies:
        parts.append(policies(decision))
    if decision.max_additional:
        parts.append(additional(decision))
    return parts


def stay(decision: Decision) -> list[str]:
    """The bounds of a stay, if any: `stays until 2026-12-07T07:00Z`, `preemptible`."""
    end = decision.interval.end
    bounded = [f"stays until {minute(end)}"] if end and decision.lease_id is None else []
    if not decision.preemptible:
        return bounded
    early = _early(decision, {None, PREEMPTED}, "makes way for leases")
    early += _early(decision, {AWAY}, "hosts are away later")
    return [*bounded, "preemptible", *early]


def _early(decision: Decision, because: Collection[str | None], word: str) -> list[str]:
    """Members that end early for one reason: `makes way for leases: web[1] until ...`."""
    early = sorted(
        (one.until, one.member)
        for one in decision.assignments
        if one.until and (one.until_because or None) in because
    )
    first = [f"{member} until {minute(until)}" for until, member in early[:MOST]]
    more = [f"{len(early) - MOST} more later"] if len(early) > MOST else []
    return [f"{word}: {', '.join([*first, *more])}"] if early else []


def until(one: Member | Assignment) -> str:
    """The end of a stay and its reason: `2026-12-07T07:25Z (makes way for a lease)`."""
    if not one.until:
        return "-"
    why = _WHY.get(one.until_because or "")
    return f"{minute(one.until)} ({why})" if why else minute(one.until)


def out_of_service(members: Mapping[str, Member | Assignment]) -> list[str]:
    """Members whose hosts are out of service, for operators by host: `web[1] on n2: disabled`."""
    hosts: dict[str, list[str]] = {}
    for name, one in members.items():
        if one.out_of_service:
            closed = to_builtins(one.closed) if one.closed else []
            at = f" on {one.host}: {'; '.join(map(closed_for, closed))}" if one.host else ""
            hosts.setdefault(at or ": host out of service", []).append(name)
    return [f"{summed(names)}{at}" for at, names in hosts.items()]


def ends(members: Iterable[Member | Assignment]) -> bool:
    """Whether any of them has an end."""
    return any(one.until for one in members)


def record(one: DecisionRecord) -> RenderableType:
    """What a decision was made from: who asked, for what, and what was considered."""
    asked = f"{who(one)}, {one.request_id}" if one.request_id else who(one)
    seen = f"revision {one.revision}"
    if one.inputs is None or one.counts is None:
        return fields([("asked by", asked), ("seen", f"{seen}; it has no further record")])
    inputs, counts = one.inputs, one.counts
    said = [inputs.objective, f"seed {inputs.seed}", f"at most {length(inputs.time_limit)}"]
    said += [f"hold {length(inputs.hold)}"] if inputs.hold else []
    said += [f"until {moment(inputs.until)}"] if inputs.until else []
    said += ["preemptible"] if inputs.preemptible else []
    rejected = ", ".join(f"{reason} {number}" for reason, number in counts.rejected.items())
    again = "" if one.attempts == 1 else f" at attempt {one.attempts}"
    return fields(
        [
            ("asked by", asked),
            ("asked for", ", ".join(said)),
            *(
                ("role", f"{role.count} {role.name}, {role.flavor or 'own resources'}")
                for role in one.roles or ()
            ),
            *(("policy", f"{each['name']} ({each['type']})") for each in one.policies or ()),
            ("seen", f"{seen}, {moment(one.taken_at)}"),
            ("hosts", f"{counts.considered} considered, {rejected or 'none'} rejected"),
            ("placed", f"{counted(one.placed or 0, 'member')}, {one.strategy}{again}"),
            *(
                [("replay", f"moorage replay {one.decision_id}" if one.replayable else "too large")]
                if isinstance(one.replayable, bool)  # of a tenant nothing: only operators can
                else []
            ),
        ]
    )


def who(one: Event | DecisionRecord) -> str:
    """Who caused something: a user, or the background work in brackets."""
    if one.by is not None:
        return f"({one.by})"
    user = one.user or "-"
    return short(user) if _KEYSTONE_ID.fullmatch(user) else user


def _kept(decision: Decision) -> str:
    """`held until 09:10:00Z` or another status; also that places are gone, and why."""
    held = decision.status == "held"
    status = f"held until {held_until(decision)}" if held else decision.status
    if not decision.withdrawn or decision.status not in {"held", "released"}:
        return status
    lost = f"what gave the places of {', '.join(decision.withdrawn)} was deleted"
    return f"{status}, but {lost}" if decision.assignments else f"holds nothing: {lost}"


def held_until(decision: Decision) -> str:
    """The end of the hold; with its day only if that is not the decision's."""
    day = (decision.computed_at or "").partition("T")[0]
    end = moment(decision.expires_at)
    return end if day and not end.startswith(day) else clock_time(end)


def met(status: PolicyStatus) -> str:
    """Whether a policy is met: `yes`, `no`, or violated by members that stood before."""
    if status.satisfied:
        return "yes"
    return "violated (standing)" if status.standing else "no"


def policies(decision: Decision) -> str:
    """The policies met, and those that are not: `policies 3/4 (apart: violated (standing))`."""
    unmet = [f"{one.name}: {met(one)}" for one in decision.policies if not one.satisfied]
    of = len(decision.policies)
    return f"policies {of - len(unmet)}/{of}" + (f" ({', '.join(unmet)})" if unmet else "")


def additional(decision: Decision) -> str:
    """How many more fit: `max additional: web 5`; a trailing + where counting stopped.

    Then in how many at a time, if not one by one: `b 30 (in steps of 2)`.
    """
    counts = ", ".join(
        f"{role} {more.count}{'' if more.exact else '+'}{in_steps(more.count, more.step)}"
        for role, more in decision.max_additional.items()
    )
    return f"max additional: {counts}"


def in_steps(count: int, step: int) -> str:
    """How so many members can be added, if not one by one: ` (in steps of 2)`."""
    if step == 1 or not count:
        return ""
    return " (all at once)" if step == count else f" (in steps of {step})"


def dry_change(made: OneEnsemble) -> str:
    """A dry run of a change of an ensemble that would be decided."""
    told = dry_run(made.decision) if made.decision else ""
    return "\n".join([told, *notes_on_sizes(made)])


def dry_run(decision: Decision) -> str:
    """A dry run: `verdict feasible (computed at revision 1)   racks used 3   hosts used 7`."""
    parts = [f"verdict feasible (computed at revision {decision.revision})", *used(decision)]
    parts += stay(decision)
    if not all(one.satisfied for one in decision.policies):
        parts.append(policies(decision))
    if decision.max_additional:
        parts.append(additional(decision))
    return "   ".join(parts)


def used(decision: Decision) -> list[str]:
    """The number of domains used per level; levels with a single domain are left out."""
    labels: dict[str, set[str]] = {}
    for assignment in decision.assignments:
        for level, label in assignment.domains.items():
            labels.setdefault(level, set()).add(label)
    counts = {level: len(names) for level, names in labels.items()}
    telling = [level for level in counts if counts[level] > 1] or list(counts)
    return [f"{level}s used {counts[level]}" for level in widest_first(telling)]


def place(domains: Mapping[str, str]) -> str:
    """A place from the widest domain to the host: `zone az1, rack r1, host h2`."""
    return ", ".join(f"{level} {domains[level]}" for level in widest_first(domains)) or "-"


def places(every: Sequence[Mapping[str, str]]) -> tuple[str, list[str]]:
    """A column of places: its title, and `az1/r1/h2` each, from the widest domain to the host.

    If they differ in their levels, each is shown in full.
    """
    stands = [one for one in every if one]
    levels = widest_first(stands[0]) if stands else []
    if any(set(one) != set(levels) for one in stands):
        return "place", [place(one) for one in every]
    title = f"place ({'/'.join(levels)})" if levels else "place"
    return title, ["/".join(one[level] for level in levels) if one else "-" for one in every]


def widest_first(levels: Iterable[str]) -> list[str]:
    """Levels in the usual order, the host last, and a server on it."""
    return sorted(levels, key=lambda level: (_LOWEST.get(level, 0), usual_rank(level)))


def claimed(claim: Claim, decision: Decision) -> str:
    """A claim: `claim c2f0  building   db[0] at rack r1, host h2`, and the scheduler hints."""
    head = f"claim {short(claim.id)}  {claim.status}   {member_place(claim.member, decision, 'at')}"
    headers = {} if claim.present_as is None else claim.present_as.header
    return "\n".join([head, *(f"present as {name}: {value}" for name, value in headers.items())])


def moved(member: str, decision: Decision) -> str:
    """A member placed anew: `db[1] now at rack r2, host h6  decision 9b1e held ...`."""
    return SEPARATOR.join([member_place(member, decision, "now at"), *held(decision)])


def member_place(member: str, decision: Decision, verb: str) -> str:
    """A member's place: `db[1] at rack r2, host h6`."""
    stands = next((one.domains for one in decision.assignments if one.member == member), {})
    return f"{member} {verb} {place(stands) if stands else 'no place'}"


def confirmed(body: Mapping[str, Any]) -> str:
    """A confirmed decision: `confirmed 9/9 claimed, 0 released`."""
    line = f"confirmed {body['claimed']}/{body['members']} claimed, {body['released']} released"
    names = body.get("released_members")
    return line + (f": {', '.join(names)}" if names else "")
