"""`moorage ensemble check`: what can be said of a description without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli.command import Command
from moorage.cli.output import Shown
from moorage.cli.shipped import read_text
from moorage.domain.ensembles import MemberName, Role

if TYPE_CHECKING:
    import argparse

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
            f"OK {len(roles)} roles, {len(members)} members, {len(described.policies)} policies;"
            f" {_verdict(verdict)}"
        )
        return Shown(body, said)


def _verdict(verdict: Satisfiable) -> str:
    if not verdict.proved:
        return "no contradiction found (too large to settle offline)"
    least = ", ".join(f">= {count} {level}s" for level, count in verdict.least.items())
    return f"statically satisfiable on any fleet{f' with {least}' if least else ''}"
