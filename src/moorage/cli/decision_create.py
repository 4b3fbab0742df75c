"""`moorage decision create`: places the members of an ensemble that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.cli import decision_text
from moorage.cli.command import Command
from moorage.cli.compliance import with_begun
from moorage.cli.decision_progress import deciding
from moorage.cli.ensemble_create import decide_arguments, decide_body
from moorage.cli.output import Shown
from moorage.cli.parser import ENSEMBLE

if TYPE_CHECKING:
    import argparse


class Create(Command):
    """Place the members of an ensemble that have no server, jointly, and hold the places.

    It is for ensembles that were only described, and for those whose hold has lapsed or was
    released. Places that are held already are chosen anew. Members with a server or a claim keep
    theirs; if the others do not fit beside them, the exit status is 3.
    """

    examples = """
        moorage decision create shop --hold 10m
        moorage decision create shop --dry-run
    """
    options = (ENSEMBLE, decide_arguments)

    def act(self, args: argparse.Namespace) -> Shown:
        with self.client() as client:
            ensemble = client.ensembles.show(client.ensembles.find(args.ensemble)).value
            how = decide_body(args, [role.name for role in ensemble.members])
            with deciding(client, None if args.dry_run else ensemble.id):
                answer = client.decisions.decide(
                    {"ensemble_id": ensemble.id, **how}, dry_run=args.dry_run
                )
        held = decision_text.SEPARATOR.join(decision_text.held(answer.value))
        text = decision_text.dry_run(answer.value) if args.dry_run else held
        return Shown(answer.body, with_begun(text, answer.body, dry_run=args.dry_run))
