"""`moorage ensemble show|list|confirm|delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli import policy_standing, told
from moorage.cli.command import Command
from moorage.cli.output import Shown, console, fields, short, stack, table
from moorage.cli.projects import Listing
from moorage.client.errors import Missing
from moorage.client.structs import Assignment

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from moorage.client.moorage import Moorage
    from moorage.client.structs import Decision, Ensemble, Member


def newest(client: Moorage, ensemble_id: str) -> Decision:
    """The newest decision, whatever became of it: claims outlive the hold they were made under.

    Raises:
        Missing: nothing was ever decided.
    """
    found = client.decisions.all(ensemble_id=ensemble_id).value
    if not found:
        raise Missing("decision about ensemble", short(ensemble_id))
    return client.decisions.show(str(found[0].id)).value


_TAKEN = frozenset({"building", "active"})


class Show(Command):
    """Show an ensemble, where its members stand and what it survives.

    Domains and hosts carry their names for operators. Tenants see labels that mean something
    inside one ensemble only: they tell which members share a rack, and nothing else.
    """

    examples = """
        moorage ensemble show shop
        moorage ensemble show b1d7 --map
        moorage ensemble show b1d7 --survivability
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which, and which side of it."""
        parser.add_argument(
            "ensemble", metavar="ENSEMBLE", help="id, its beginning, a name, or its lease: L3"
        )
        side = parser.add_mutually_exclusive_group()
        side.add_argument("--map", action="store_true", help="draw the members on their domains")
        side.add_argument(
            "--survivability", action="store_true", help="who keeps what when a domain is lost"
        )

    def act(self, args: argparse.Namespace) -> Shown:
        """Show."""
        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble)
            if args.survivability:
                survival = client.ensembles.survivability(ensemble_id)
                return Shown(survival.body, survived(survival.value))
            if args.map:
                found = client.ensembles.members(ensemble_id)
                return Shown(found.body, self._map(ensemble_id, found.value))
            shown = client.ensembles.judged(ensemble_id)
            members = client.ensembles.members(ensemble_id).value
        return Shown(shown.body, described(shown.value, shown.body["ensemble"], members))

    def _map(self, ensemble_id: str, members: Sequence[Member]) -> RenderableType:
        """The members where they stand now, whichever decision or server brought them there."""
        from moorage.cli.placement_map import picture, summed

        placed = [Assignment(one.name, domains=one.domains) for one in members if one.domains]
        if not placed:
            raise Missing("placed member in ensemble", short(ensemble_id))
        drawn = picture(placed, console(self.app.stdout).width)
        unplaced = summed(one.name for one in members if not one.domains)
        return stack(drawn, "", f"not placed: {unplaced}") if unplaced else drawn


def survived(body: Mapping[str, Any]) -> str:
    """One line for each level: `lose any 1 rack: db keeps 2 of 3 OK, web keeps 2 of 3 OK`."""
    lines = [
        f"lose any {level['lose']} {level['level']}: {_kept(level['level'], level['roles'])}"
        for level in body["survivability"]
    ]
    return "\n".join(lines) or "no member stands anywhere"


def _kept(level: str, roles: Sequence[Mapping[str, Any]]) -> str:
    if not any(role["keeps"] for role in roles):
        return f"no role keeps a member, each stands in one {level}"
    return ", ".join(
        f"{role['role']} keeps {role['keeps']} of {role['total']} {_judged(role)}" for role in roles
    )


def _judged(role: Mapping[str, Any]) -> str:
    """Where no policy demands more, one member left is enough."""
    if role["ok"]:
        return "OK"
    return "NONE LEFT" if role["needed"] == 1 else f"NOT ENOUGH (needs {role['needed']})"


def _decided(decision: Decision, members: Sequence[Member]) -> str:
    """`6f0c1a2b held until 09:10:00Z`; of a hold that is over, who took a place in time."""
    told_of = told.decided(decision)
    taken = sum(one.status in _TAKEN for one in members)
    if decision.status != "expired" or not taken:
        return told_of
    return f"{told_of}, {taken} of {len(members)} claimed in time"


def described(
    ensemble: Ensemble, body: Mapping[str, Any], members: Sequence[Member]
) -> RenderableType:
    """The ensemble's fields, its roles, and its policies as they stand now."""
    decision = ensemble.decision
    head = fields(
        [
            ("id", ensemble.id),
            ("name", ensemble.name),
            ("project", ensemble.project_id),
            ("generation", ensemble.generation),
            ("created", ensemble.created_at),
            ("decision", "none" if decision is None else _decided(decision, members)),
            *(("stays", line) for line in stays(members)),
        ]
    )
    roles = [
        (role.name, role.count, role.flavor or "-", _amounts(role.resources))
        for role in ensemble.members
    ]
    described_policies = body.get("policies", ())
    met = policy_standing.standing(ensemble, described_policies, members)
    policies = [
        (policy["name"], _selected(policy), " ".join([policy["type"], *_parameters(policy)]), how)
        for policy, how in zip(described_policies, met, strict=True)
    ]
    parts: list[RenderableType] = [
        head,
        "",
        table(["role", "#count", "flavor", "resources"], roles),
    ]
    if policies:
        parts += ["", table(["policy", "members", "rule", "met"], policies)]
    broken = policy_standing.violations(ensemble)
    if broken:
        parts += ["", *broken]
    return stack(*parts)


def stays(members: Sequence[Member]) -> list[str]:
    """`web[0], web[2] until 2026-12-07T07:25Z (makes way for a lease)`: a line for each end."""
    from moorage.cli.placement_map import summed

    lines: dict[str, list[str]] = {}
    for one in sorted(members, key=lambda one: one.until or ""):
        if one.until:
            lines.setdefault(told.until(one), []).append(one.name)
    return [f"{summed(names)} until {end}" for end, names in lines.items()]


def _amounts(resources: Mapping[str, int]) -> str:
    return " ".join(f"{name}={amount}" for name, amount in resources.items())


def _selected(policy: Mapping[str, Any]) -> str:
    selectors = policy.get("zip") or policy.get("members") or ()
    text = ", ".join(
        f"tag:{one['tag']}" if isinstance(one, dict) else str(one) for one in selectors
    )
    return f"zip({text})" if policy.get("zip") else text


_OWN = frozenset({"name", "type", "members", "zip", "phase"})


def _parameters(policy: Mapping[str, Any]) -> list[str]:
    said = []
    for name, value in policy.items():
        if name in _OWN or value == "required":
            continue
        if isinstance(value, dict):
            name, value = next(iter(value.items()))  # noqa: PLW2901 - {preferred: 5}
        shown = ",".join(map(str, value)) if isinstance(value, list) else value
        said.append(f"{name}={shown}")
    return said


class List(Command):
    """List ensembles."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose."""
        parser.add_argument("--all-projects", action="store_true", help="for operators")

    def act(self, args: argparse.Namespace) -> Shown:
        """List."""
        with self.client() as client:
            answer = client.ensembles.all(all_projects=args.all_projects)
            rows = [
                (
                    short(one.id),
                    one.name,
                    " ".join(f"{role.name}:{role.count}" for role in one.members),
                    len(one.policies),
                    one.created_at,
                )
                for one in answer.value
            ]
            columns = ["id", "name", "members", "#policies", "created"]
            listing = Listing("/v1/ensembles", {}, columns)
            text = listing.shown(client, args, rows, answer.value)
        return Shown(answer.body, text)


class Confirm(Command):
    """Close an ensemble's decision: what is claimed stays, the rest is freed.

    Claims that are still building keep their own expiry.
    """

    examples = "moorage ensemble confirm b1d7"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        parser.add_argument(
            "ensemble", metavar="ENSEMBLE", help="id, its beginning, a name, or its lease: L3"
        )

    def act(self, args: argparse.Namespace) -> Shown:
        """Confirm."""
        with self.client() as client:
            decision = newest(client, client.ensembles.find(args.ensemble))
            answer = client.decisions.confirm(str(decision.id))
        return Shown(answer.body, told.confirmed(answer.body))


class Delete(Command):
    """Forget an ensemble and release what it holds.

    Servers that took their places stay; only what is held and not allocated is freed.
    """

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Which."""
        parser.add_argument(
            "ensemble", metavar="ENSEMBLE", help="id, its beginning, a name, or its lease: L3"
        )

    def act(self, args: argparse.Namespace) -> Shown:
        """Delete."""
        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble)
            generation = client.ensembles.show(ensemble_id).value.generation
            client.ensembles.delete(ensemble_id, generation)
        return Shown({"deleted": ensemble_id}, f"deleted {short(ensemble_id)}")
