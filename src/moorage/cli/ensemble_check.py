"""`moorage ensemble check`: what can be said of a description without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli.command import Command
from moorage.cli.output import Shown, counted
from moorage.cli.shipped import read_text, reading
from moorage.domain.ensembles import MemberName, Role

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from moorage.domain.ensembles import PolicyStatement
    from moorage.policies.satisfiable import Satisfiable


class Check(Command):
    """Judge a description offline: names, policies, contradictions.

    Needs neither a server nor a token. Policies are judged on an ideal, empty fleet: those that
    no fleet can meet are named (exit status 3), otherwise the least number of domains. Sizes,
    traits, and the domains that fence and ban name are the service's to judge.
    """

    examples = "moorage ensemble check shop.yaml"

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """What to judge."""
        parser.add_argument("file", metavar="FILE", help="a description; - reads standard input")

    def act(self, args: argparse.Namespace) -> Shown:
        """Judge."""
        from moorage.client.description import read_description
        from moorage.policies.satisfiable import judge

        with reading(args.file):
            _, described = read_description(read_text(args.file))
        roles = [
            Role(name=one.name, resources=one.resources or {}, tags=one.tags)
            for one in described.roles
        ]
        members = [MemberName(one.name, i) for one in described.roles for i in range(one.count)]
        verdict = judge(roles, members, described.policies)
        body = {
            "check": {
                "roles": len(roles),
                "members": len(members),
                "policies": len(described.policies),
                "settled": verdict.proved,
                "least_domains": {str(level): count for level, count in verdict.least.items()},
            }
        }
        said = (
            f"OK {counted(len(roles), 'role')}, {counted(len(members), 'member')},"
            f" {counted(len(described.policies), 'policy', 'policies')};"
            f" {_verdict(verdict, _named(described.policies))}"
        )
        return Shown(body, said)


def _named(policies: Sequence[PolicyStatement]) -> list[str]:
    """What required fences name: there is no telling offline whether a fleet has it."""
    from moorage.policies.fence import Fence
    from moorage.policies.registry import parse

    fences = (parse(one) for one in policies if one.required)
    return [
        " or ".join(sorted(fence.domains)) or " and ".join(sorted(fence.traits))
        for fence in fences
        if isinstance(fence, Fence)
    ]


def _verdict(verdict: Satisfiable, named: Sequence[str]) -> str:
    if not verdict.proved:
        return "no contradiction found (too large to settle offline)"
    asked = [f">= {_domains(count, str(level))}" for level, count in verdict.least.items()]
    asked += [f"hosts in {name}" for name in named]
    with_ = f" with {', '.join(asked)}" if asked else ""
    return f"statically satisfiable on any fleet{with_}"


def _domains(count: int, level: str) -> str:
    """`3 racks`; a level's name that ends in s already stays as it is written."""
    return f"{count} of level {level}" if level.endswith("s") else counted(count, level)
