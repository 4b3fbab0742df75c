"""`moorage ensemble set`: changes counts and policies, and decides anew."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any

from moorage.cli import decision_text
from moorage.cli.command import Command
from moorage.cli.compliance import with_begun
from moorage.cli.decision_progress import deciding
from moorage.cli.ensemble_create import decide_arguments, decide_body
from moorage.cli.output import Shown
from moorage.cli.parser import ENSEMBLE, Option, Repeated, WrongUsage, new_name
from moorage.domain.words import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence


def assignment(text: str) -> tuple[str, str, object]:
    """Read `db:count=4`: name, field, and the value as YAML.

    A name may hold colons, a field may not.
    """
    import yaml

    before, equals, value = text.partition("=")
    subject, _, field = before.rpartition(":")
    if not (subject and field and equals):
        raise argparse.ArgumentTypeError(f"write NAME:FIELD=VALUE, such as db:count=4, not {text}")
    try:
        return subject, field, yaml.safe_load(value)
    except (yaml.YAMLError, ValueError, LookupError):
        raise argparse.ArgumentTypeError(f"cannot read the value of {text}") from None


class Set(Command):
    """Change counts or policies of an ensemble and decide again.

    Placed members keep their places; new ones are placed beside them. Those of a role with another
    size are placed anew, on their host where they fit; servers keep their size until Nova resizes
    them. With --dry-run nothing is changed; an infeasible change is explained (exit status 3).
    """

    examples = """
        moorage ensemble set shop --member web:count=5
        moorage ensemble set b1d7 --member db:count=4 --policy db-ha:keep=3 --dry-run
        moorage ensemble set shop --member db:flavor=m1.xlarge --member db:min_available=2
        moorage ensemble set b1d7 --policy 'web-apart:strength={preferred: 10}'
        moorage ensemble set shop --member 'web:server={image: debian-13, networks: [shop]}'
    """
    options = (
        ENSEMBLE,
        Repeated(
            "--member",
            type=assignment,
            metavar="ROLE:FIELD=VALUE",
            help="a role's new count: web:count=5; its flavor or resources, required, forbidden or"
            " member_of; min_available, how many of its members must be up; or how its servers are"
            " created, a mapping: 'web:server={image: debian-13}'",
        ),
        Repeated(
            "--policy",
            type=assignment,
            metavar="NAME:FIELD=VALUE",
            help="a policy's new parameter or strength",
        ),
        Repeated("--remove-policy", metavar="NAME"),
        Option("--name", type=new_name, help="a new name"),
        decide_arguments,
    )

    def act(self, args: argparse.Namespace) -> Shown:
        if not (args.member or args.policy or args.remove_policy or args.name):
            self.usage_error("give --member, --policy, --remove-policy or --name")
        from moorage.domain.describe_members import NOT_PLACING

        with self.client() as client:
            ensemble_id = client.ensembles.find(args.ensemble)
            ensemble = client.ensembles.show(ensemble_id).value
            change: dict[str, Any] = {"generation": ensemble.generation}
            change |= {
                name: value
                for name, value in (
                    ("name", args.name),
                    ("members", merged(args.member)),
                    ("policies", merged(args.policy)),
                    ("remove_policies", args.remove_policy),
                )
                if value
            }
            _check_roles(args, [role.name for role in ensemble.members])
            moves = any(field not in NOT_PLACING for _, field, _ in args.member)
            if moves or args.policy or args.remove_policy:
                change["decide"] = decide_body(args, [role.name for role in ensemble.members])
            with deciding(client, None if args.dry_run else ensemble_id):
                answer = client.ensembles.change(ensemble_id, change, dry_run=args.dry_run)
        made = answer.value
        decides = args.dry_run and made.decision
        text = decision_text.dry_change(made) if decides else decision_text.created(made)
        return Shown(answer.body, with_begun(text, answer.body, dry_run=args.dry_run))


def _check_roles(args: argparse.Namespace, roles: Sequence[str]) -> None:
    """Check that every --member names a role that there is: the service takes others for new ones.

    Raises:
        WrongUsage: one does not.
    """
    for name, _, _ in args.member:
        if name not in roles:
            add = shlex.join(["moorage", "member", "add", args.ensemble, "--role", name])
            raise WrongUsage(
                f"{args.ensemble} has no role {name}{did_you_mean(name, roles)};"
                f" its roles: {', '.join(roles) or 'none'}; to add one: {add} --flavor FLAVOR",
                path="--member",
            )


def merged(assignments: list[tuple[str, str, object]]) -> list[dict[str, Any]]:
    """Merge the assignments to each name."""
    entries: dict[str, dict[str, Any]] = {}
    for subject, field, value in assignments:
        entries.setdefault(subject, {"name": subject})[field] = value
    return list(entries.values())
