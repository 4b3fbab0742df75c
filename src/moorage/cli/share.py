"""`moorage share list|show|accept|revoke`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli.columns import columns, pairs
from moorage.cli.command import Command
from moorage.cli.compliance import with_begun
from moorage.cli.decision_text import SEPARATOR
from moorage.cli.output import Shown, fields, listing_of_projects, short
from moorage.cli.parser import ALL_PROJECTS, DRY_RUN, Option

if TYPE_CHECKING:
    import argparse

    from moorage.wire.shares import Share

SHARE = Option("share", metavar="SHARE", help="id, or its beginning")


class List(Command):
    """List the shares that your project has given and received, oldest first.

    A share is a role of an ensemble that belongs to another project.
    """

    examples = "moorage share list"
    options = (ALL_PROJECTS,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.shares.all(all_projects=args.all_projects)
            cells = columns(
                "id:short ensemble role=role.name #count=role.count given_by=owner_project_id"
                " to=project_id status"
            )
            text = listing_of_projects(client, args, "/v1/shares", cells, answer.value)
        return Shown(answer.body, text)


class Show(Command):
    """Show a share: the ensemble, the role and its size, and the two projects."""

    examples = "moorage share show 1f2e"
    options = (SHARE,)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            answer = client.shares.show(client.shares.find(args.share))
        one = answer.value
        sizes = one.role.alternatives or [one.role]
        amounts = [", ".join(f"{n} {name}" for name, n in each.resources.items()) for each in sizes]
        found = [
            *pairs(one, "id status"),
            ("ensemble", f"{one.ensemble} ({one.ensemble_id})"),
            *pairs(one, "given_by=owner_project_id to=project_id role=role.name count=role.count"),
            ("flavor", " or ".join(each.flavor or "-" for each in sizes)),
            ("resources", " or ".join(amounts)),
        ]
        return Shown(answer.body, fields(found))


class Accept(Command):
    """Accept a role: its members may be placed for your project, and count for its quota.

    Your project alone claims their places and creates their servers.
    """

    examples = "moorage share accept 1f2e"
    options = (SHARE, DRY_RUN)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            share = client.shares.find(args.share)
            answer = client.shares.accept(share, dry_run=args.dry_run)
        return Shown(answer.body, _line(answer.value))


class Revoke(Command):
    """Revoke a share that your project has given or accepted, or decline an offer.

    The role's members leave the ensemble. Their servers keep running; places without a server are
    freed.
    """

    examples = "moorage share revoke 1f2e"
    options = (SHARE, DRY_RUN)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            share = client.shares.find(args.share)
            answer = client.shares.revoke(share, dry_run=args.dry_run)
        text = with_begun(_line(answer.value), answer.body, dry_run=args.dry_run)
        return Shown(answer.body, text)


def _line(one: Share) -> str:
    """A share: `1f2e3d4c  accepted  role db of ensemble shop, project-a to project-b`."""
    status = f"would be {one.status}" if one.dry_run else one.status
    what = f"role {one.role.name} of ensemble {one.ensemble}"
    return SEPARATOR.join(
        [short(one.id), status, f"{what}, {one.owner_project_id} to {one.project_id}"]
    )
