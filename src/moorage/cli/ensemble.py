"""`moorage ensemble show|list|confirm|delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli import confirm, decision_text
from moorage.cli.columns import columns, pairs
from moorage.cli.command import Command
from moorage.cli.compliance import with_begun
from moorage.cli.host_checks import notes_on_roles
from moorage.cli.listing import part_of
from moorage.cli.output import (
    Shown,
    console,
    fields,
    listing_of_projects,
    short,
    stack,
    table,
)
from moorage.cli.parser import ALL_PROJECTS, ENSEMBLE, Option
from moorage.client.errors import Missing
from moorage.domain.ensembles import MemberKind
from moorage.domain.words import counted, first_of
from moorage.wire.decisions import Assignment

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from moorage.client.moorage import Moorage
    from moorage.wire.decisions import Decision, PolicyStatus
    from moorage.wire.ensembles import Ensemble, Role
    from moorage.wire.leases import Lease
    from moorage.wire.members import Member


UNPLACED = "unplaced"


def policy_states(ensemble: Ensemble, members: Sequence[Member]) -> list[str]:
    """A few words for each policy: `yes (slack 0)`, `NO`, `so far (1 of 3 placed)`, `-`."""
    broken = {one.policy for one in ensemble.compliance or ()}
    decision = ensemble.decision
    decided = {one.name: one for one in decision.policies} if decision else {}
    known = {one.member for one in decision.assignments} if decision else set()
    tags = {role.name: set(role.tags) for role in ensemble.members}
    states = []
    for policy in ensemble.policies:
        concerned = [one for one in members if _selected(one, policy, tags)]
        placed = {one.name for one in concerned if one.status != UNPLACED}
        status = decided.get(policy["name"])
        if policy["name"] in broken:
            states.append(_broken(policy, status))
        elif not placed:
            states.append("-")
        elif len(placed) < len(concerned):
            states.append(f"so far ({len(placed)} of {len(concerned)} placed)")
        else:
            states.append(_met(status if placed <= known else None))
    return states


def violations(ensemble: Ensemble) -> list[str]:
    """A line for each violation: `VIOLATED apart: host h1 holds 2`; preferred ones `not met`."""
    required = {
        one["name"] for one in ensemble.policies if not isinstance(one.get("strength"), dict)
    }
    return [
        f"{'VIOLATED' if one.policy in required else 'not met:'} {one.policy}: {one.text}"
        for one in ensemble.compliance or ()
    ]


def _broken(policy: Mapping[str, Any], status: PolicyStatus | None) -> str:
    if not isinstance(policy.get("strength"), dict):
        return "NO"
    return f"no (costs {status.penalty})" if status is not None and status.penalty else "no"


def _met(status: PolicyStatus | None) -> str:
    """A met policy, with its slack only if the members are those of the decision."""
    if status is None or status.slack is None or not status.satisfied:
        return "yes"
    return f"yes (slack {status.slack})"


def _selected(member: Member, policy: Mapping[str, Any], tags: Mapping[str, set[str]]) -> bool:
    from moorage.domain.ensembles import Selector
    from moorage.domain.role_paths import is_within

    role = member.role or member.name.partition("[")[0]
    return any(
        one.everyone
        or str(one.member) == member.name
        or one.tag in tags.get(role, ())
        or (one.group is not None and is_within(role, one.group))
        for one in map(Selector.parse, _selectors(policy))
    )


def _selectors(policy: Mapping[str, Any]) -> Iterator[str]:
    sides = [name for side in _sides(policy) for name in side]
    for one in policy.get("zip") or policy.get("members") or sides:
        yield f"tag:{one['tag']}" if isinstance(one, dict) else str(one)


def _sides(policy: Mapping[str, Any]) -> Sequence[Sequence[str]]:
    """The sides between which the policy is; none if it selects members."""
    between = policy.get("between", ())
    return () if isinstance(between, str) else between


def newest_decision(client: Moorage, ensemble_id: str) -> Decision:
    """The newest decision, in any state: claims outlive the hold under which they were made.

    Raises:
        Missing: nothing was ever decided.
    """
    found = client.decisions.all(ensemble_id=ensemble_id).value
    if not found:
        raise Missing("decision about ensemble", short(ensemble_id))
    return client.decisions.show(str(found[0].id)).value


_TAKEN = frozenset({"building", "active"})
_STUCK = 5
"""Domains that a line names."""


class Show(Command):
    """Show an ensemble, the places of its members and what it survives.

    Operators see the names of domains and hosts. Tenants see labels that are valid within one
    ensemble only: they show which members share a rack, and nothing else.
    """

    examples = """
        moorage ensemble show shop
        moorage ensemble show b1d7 --map
        moorage ensemble show b1d7 --map -f svg > shop.svg
        moorage ensemble show b1d7 --survivability
    """

    drawn = ("svg",)

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        ENSEMBLE(parser)
        side = parser.add_mutually_exclusive_group()
        side.add_argument("--map", action="store_true", help="draw the members on their domains")
        side.add_argument(
            "--survivability",
            action="store_true",
            help="members that each role keeps when a domain is lost",
        )

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble)
            if args.survivability:
                survival = client.ensembles.survivability(ensemble_id)
                return Shown(survival.body, survived(survival.value))
            if args.map:
                found = client.ensembles.members(ensemble_id)
                name = client.ensembles.show(ensemble_id).value.name
                drawn = self._map(ensemble_id, found.value)
                return Shown(found.body, drawn, drawn=lambda _: _svg(name, found.value))
            shown = client.ensembles.judged(ensemble_id)
            members = client.ensembles.members(ensemble_id).value
        return Shown(shown.body, described(shown.value, members))

    def _map(self, ensemble_id: str, members: Sequence[Member]) -> RenderableType:
        """A map of the members' present places, from any decision or server."""
        from moorage.cli.placement_map import picture, summed

        placed = [
            Assignment(one.name, one.kind, one.domains, None) for one in members if one.domains
        ]
        if not placed:
            raise Missing("placed member in ensemble", short(ensemble_id))
        drawn = picture(placed, console(self.app.stdout).width)
        unplaced = summed(one.name for one in members if not one.domains)
        notes = [f"not placed: {unplaced}"] if unplaced else []
        notes += [f"out of service: {line}" for line in _out_of_service(members)]
        return stack(drawn, "", *notes) if notes else drawn


def _svg(name: str, members: Sequence[Member]) -> str:
    from moorage.cli.placement_svg import placement_svg

    return placement_svg(name, members)


def survived(body: Mapping[str, Any]) -> str:
    """A line for each level: `lose any 1 rack: db keeps 2 of 3 OK; all re-placeable now`."""
    lines = [
        f"lose any {level['lose']} {level['level']}: {_kept(level['level'], level['roles'])}"
        f"{_again(level)}"
        for level in body["survivability"]
    ]
    return "\n".join(lines) or "no members are placed"


def _kept(level: str, roles: Sequence[Mapping[str, Any]]) -> str:
    whole = all(role.get("in_service", role["total"]) == role["total"] for role in roles)
    if whole and not any(role["keeps"] for role in roles):
        return f"no role keeps a member: each is in one {level}"
    return ", ".join(
        f"{role['role']} keeps {role['keeps']} of {role['total']} {_judged(role)}" for role in roles
    )


def _again(level: Mapping[str, Any]) -> str:
    """Whether lost members can be placed again: `; all re-placeable now (15 hosts left, ...)`."""
    again = level.get("again")  # an older service does not say it
    if again is None:
        return ""
    if again == "placed":
        hosts = [role for role in level["roles"] if role.get("hosts_needed") is not None]
        most = max(hosts, key=lambda role: role["hosts_needed"], default=None)
        room = most and f" ({most['hosts_left']} hosts left, {most['hosts_needed']} needed)"
        return f"; all re-placeable now{room or ''}"
    said = "not re-placeable now" if again == "refused" else "not known whether re-placeable"
    return f"; {said}: {', '.join(first_of(level['stuck'], _STUCK))}"


def _judged(role: Mapping[str, Any]) -> str:
    """Whether a role keeps enough members: one, unless it or a policy demands more."""
    if role["ok"]:
        return "OK"
    return "NONE LEFT" if role["needed"] == 1 else f"NOT ENOUGH (needs {role['needed']})"


def _decided(decision: Decision, members: Sequence[Member]) -> str:
    """A decision, `6f0c1a2b held until 09:10:00Z`; of an expired hold the claimed places too."""
    line = decision_text.decided(decision)
    taken = sum(one.status in _TAKEN for one in members)
    if decision.status != "expired" or not taken:
        return line
    return f"{line}, {taken} of {len(members)} claimed before"


def described(ensemble: Ensemble, members: Sequence[Member]) -> RenderableType:
    """The ensemble's fields, its roles, and its policies with their present state."""
    decision = ensemble.decision
    head = fields(
        [
            *pairs(ensemble, "id name project=project_id generation created=created_at:moment"),
            ("decision", _decided(decision, members) if decision else "none"),
            *(("stays", line) for line in stays(members)),
            *(("out of service", line) for line in _out_of_service(members)),
            *(("headroom", line) for line in headroom_lines(ensemble)),
        ]
    )
    every = [one for role in ensemble.members for one in (role, *role.alternatives)]
    kinds = any(one.kind != MemberKind.SERVER for one in every)
    roles = [row for role in ensemble.members for row in _role_rows(role, members, kinds=kinds)]
    columns = ["role", "kind", "#count", "#min available", "flavor", "image", "resources"]
    met = policy_states(ensemble, members)
    policies = [
        (policy["name"], _selection(policy), " ".join([policy["type"], *_parameters(policy)]), how)
        for policy, how in zip(ensemble.policies, met, strict=True)
    ]
    parts: list[RenderableType] = [
        head,
        "",
        table(columns, roles, quiet=["kind", "#min available", "image"]),
    ]
    if policies:
        parts += ["", table(["policy", "members", "rule", "met"], policies)]
    broken = violations(ensemble)
    if broken:
        parts += ["", *broken]
    notes = [*decision_text.notes_on_shares(ensemble.members), *notes_on_roles(ensemble.members)]
    if notes:
        parts += ["", *notes]
    return stack(*parts)


def _role_rows(
    role: Role, members: Sequence[Member], *, kinds: bool
) -> Iterator[tuple[object, ...]]:
    """A role, or each of its alternatives, with the number of its members that are placed so."""

    def size(one: Role, image: str) -> tuple[object, ...]:
        return one.flavor or "-", image, _amounts(one.resources)

    least = role.min_available or ""
    if not role.alternatives:
        kind = role.kind if kinds else ""
        yield role.name, kind, role.count, least, *size(role, _image(role))
        return
    yield role.name, "", role.count, least, "", _image(role), "one of:"
    for number, one in enumerate(role.alternatives):
        placed = sum(each.role == role.name and each.alternative == number for each in members)
        yield f"  {number}", one.kind if kinds else "", placed, "", *size(one, "")


def _out_of_service(members: Sequence[Member]) -> list[str]:
    return decision_text.out_of_service({one.name: one for one in members})


def headroom_lines(ensemble: Ensemble) -> list[str]:
    """A line about places held for more members, if there are any: `worker 4, master 1`."""
    counts = [f"{role} {count}" for role, count in ensemble.headroom.items()]
    return [", ".join(counts)] if counts else []


def _image(role: Role) -> str:
    """The image of a role's servers, if it is described."""
    return role.server.image or "" if role.server else ""


def stays(members: Sequence[Member]) -> list[str]:
    """A line for each end: `web[0], web[2] until 2026-12-07T07:25Z (makes way for a lease)`."""
    from moorage.cli.placement_map import summed

    lines: dict[str, list[str]] = {}
    for one in sorted(members, key=lambda one: one.until or ""):
        if one.until:
            lines.setdefault(decision_text.until(one), []).append(one.name)
    return [f"{summed(names)} until {end}" for end, names in lines.items()]


def _amounts(resources: Mapping[str, int]) -> str:
    return " ".join(f"{name}={amount}" for name, amount in resources.items())


def _selection(policy: Mapping[str, Any]) -> str:
    if sides := _sides(policy):
        return " | ".join(", ".join(side) for side in sides)
    selectors = policy.get("zip") or policy.get("members") or ()
    text = ", ".join(
        f"tag:{one['tag']}" if isinstance(one, dict) else str(one) for one in selectors
    )
    return f"zip({text})" if policy.get("zip") else text


_OWN = frozenset({"name", "type", "members", "zip", "phase", "on_violation"})


def _parameters(policy: Mapping[str, Any]) -> list[str]:
    said = []
    for name, value in policy.items():
        if name in _OWN or value == "required" or (name == "between" and _sides(policy)):
            continue
        if isinstance(value, dict):
            name, value = next(iter(value.items()))  # noqa: PLW2901 - {preferred: 5}
        shown = ",".join(map(str, value)) if isinstance(value, list) else value
        said.append(f"{name}={shown}")
    return said


class List(Command):
    """List ensembles, each with the status of its newest decision.

    The status of one without a decision is `described`. `broken`: how many required policies are
    broken, and members out of service.
    """

    options = (ALL_PROJECTS,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.ensembles.all(
                all_projects=args.all_projects, part=part_of(args, {"created": "created_at"})
            )
            cells = {
                **columns("id:short name"),
                "status": lambda one: (
                    one.decision_summary.status if one.decision_summary else "described"
                ),
                "members": lambda one: " ".join(f"{r.name}:{r.count}" for r in one.members),
                "#policies": lambda one: len(one.policies),
                "#broken": lambda one: one.broken or "",
                **columns("created=created_at:moment"),
            }
            text = listing_of_projects(
                client, args, "/v1/ensembles", cells, answer.value, ["#broken"]
            )
        return Shown(answer.body, text)


class Confirm(Command):
    """Close an ensemble's decision: what is claimed stays, the rest is freed.

    Claims that are still building keep their own expiry. If places would be freed, it asks
    first; without a terminal it needs --yes.
    """

    examples = """
        moorage ensemble confirm b1d7
        moorage ensemble confirm b1d7 --yes
    """
    options = (ENSEMBLE, confirm.yes_argument)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            decision = newest_decision(client, client.ensembles.find(args.ensemble))
            if not args.yes:
                confirm.ask_to_close(client, decision, self.app.stderr)
            answer = client.decisions.confirm(str(decision.id))
        return Shown(answer.body, decision_text.confirmed(answer.body))


class Delete(Command):
    """Delete an ensemble and release its held places.

    Running servers keep their allocations; only places that are held are freed. If members are
    building or active, it asks first; without a terminal it needs --yes.
    """

    examples = """
        moorage ensemble delete shop
        moorage ensemble delete shop --yes
        moorage ensemble delete shop --cascade leases   # cancels its lease, too
    """
    options = (
        ENSEMBLE,
        Option("--cascade", choices=("leases",), help="also cancel its lease, which keeps it else"),
        confirm.yes_argument,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.cli.lease_text import called
        from moorage.cli.placement_map import summed

        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble)
            ensemble = client.ensembles.show(ensemble_id).value
            generation = ensemble.generation
            members = client.ensembles.members(ensemble_id).value
            lease = _open_lease(client, ensemble) if args.cascade else None
            if not args.yes:
                confirm.ask_to_delete(members, self.app.stderr)
            done = client.ensembles.delete(ensemble_id, generation, leases=args.cascade is not None)
        freed = [one.name for one in members if one.status == confirm.HELD]
        said = f", freed {counted(len(freed), 'held place')}: {summed(freed)}" if freed else ""
        body: dict[str, Any] = {"deleted": ensemble_id, "released_members": freed}
        if lease is not None:
            said = f", cancelled lease {called(lease)} ({lease.name}){said}"
            body["cancelled_lease"] = lease.id
        body |= done.body or {}
        return Shown(body, with_begun(f"deleted {short(ensemble_id)}{said}", body))


def _open_lease(client: Moorage, ensemble: Ensemble) -> Lease | None:
    """The lease that the ensemble has, unless it is closed."""
    if not ensemble.decision or ensemble.decision.lease_id is None:
        return None
    lease = client.leases.show(ensemble.decision.lease_id).value
    return None if lease.status == "closed" else lease
