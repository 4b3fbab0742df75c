"""`moorage ensemble check`: checks a description without a server."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from moorage.cli.command import Command
from moorage.cli.files import read_text, reading
from moorage.cli.output import Shown
from moorage.cli.parser import Option, Repeated
from moorage.domain.member_names import MemberName
from moorage.domain.words import counted

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from moorage.domain.ensembles import PolicyStatement
    from moorage.policies.satisfiable import LeastDomains


class Check(Command):
    """Check a description offline: names, policies, contradictions.

    Needs neither a server nor a token. Policies that no fleet can meet are listed as the service
    would list them (exit status 3); otherwise the least number of domains on an ideal, empty fleet
    is shown. The fleet's domains, sizes and traits are not known offline, nor are its levels: one
    with an unusual name is refused, unless --level says that the fleet has it.
    """

    examples = """
        moorage ensemble check shop.yaml
        moorage ensemble check shop.yaml --level aisle
    """
    auth_required = False
    options = (
        Option("file", metavar="FILE", help="a description; - reads standard input"),
        Repeated("--level", metavar="NAME", help="a level that the fleet has; repeatable"),
    )

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.description import read_description
        from moorage.policies.contradiction import refuse_contradictions
        from moorage.policies.satisfiable import least_domains

        text = read_text(args.file)
        with reading(args.file):
            _, described = read_description(text)
        roles = [one.role for one in described.roles]
        members = [MemberName(one.name, i) for one in described.roles for i in range(one.count)]
        with reading(args.file, text):
            _check_levels(described.policies, args.level)
            refuse_contradictions(roles, members, described.policies)
            verdict = least_domains(roles, members, described.policies)
        body = {
            "check": {
                "roles": len(roles),
                "members": len(members),
                "policies": len(described.policies),
                "settled": verdict.proved,
                "least_domains": {str(level): count for level, count in verdict.counts.items()},
            }
        }
        said = (
            f"OK {counted(len(roles), 'role')}, {counted(len(members), 'member')},"
            f" {counted(len(described.policies), 'policy', 'policies')};"
            f" {_verdict(verdict, _named(described.policies))}"
        )
        return Shown(body, said)


def _named(policies: Sequence[PolicyStatement]) -> list[str]:
    """The names in required fences, which cannot be checked offline."""
    from moorage.policies.fence import Fence
    from moorage.policies.registry import parse

    fences = (parse(one) for one in policies if one.required)
    return [
        " or ".join(sorted(fence.domains)) or " and ".join(sorted(fence.traits))
        for fence in fences
        if isinstance(fence, Fence)
    ]


def _check_levels(policies: Sequence[PolicyStatement], known: Sequence[str]) -> None:
    """Check that policies of the default tree name usual levels, or `known` ones.

    Raises:
        UnknownName: one does not; the most similar level is named, or else the usual ones.
    """
    from moorage.domain.topology import DEFAULT_TREE, HOST, SERVER, unknown_level
    from moorage.policies.ideal_fleet import LEVEL_ORDER

    usual = (*LEVEL_ORDER, HOST, SERVER, *known)
    for index, one in enumerate(policies):
        if one.parameters.get("tree", DEFAULT_TREE) != DEFAULT_TREE:
            continue
        for field, also in (("level", ()), ("at", ("vnic",))):
            level = one.parameters.get(field)
            if isinstance(level, str) and level not in {*usual, *also}:
                path = f"{one.path or f'policies[{index}]'}.{field}"
                error = unknown_level(level, (*usual, *also), path=path)
                error.message += f"; if the fleet has that level: --level {shlex.quote(level)}"
                raise error


def _verdict(verdict: LeastDomains, named: Sequence[str]) -> str:
    if not verdict.proved:
        return "no contradiction found; whether a fleet can meet them is not settled offline"
    asked = [f">= {_domains(count, str(level))}" for level, count in verdict.counts.items()]
    asked += [f"hosts in {name}" for name in named]
    with_ = f" with {', '.join(asked)}" if asked else ""
    return f"statically satisfiable on any fleet{with_}"


def _domains(count: int, level: str) -> str:
    """A count of domains, `3 racks`; a level's name that ends in s is not changed."""
    return f"{count} of level {level}" if level.endswith("s") else counted(count, level)
