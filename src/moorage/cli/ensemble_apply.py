"""`moorage ensemble apply|diff`: an ensemble as its file describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.cli import decision_text
from moorage.cli.compliance import with_begun
from moorage.cli.decision_progress import deciding
from moorage.cli.ensemble_create import create_ensemble, decide_arguments, decide_body
from moorage.cli.ensemble_source import FileOrFormat, FromFile
from moorage.cli.files import read_text, reading
from moorage.cli.output import FAILED, OK, Shown
from moorage.cli.parser import Option

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from moorage.client.ensemble_difference import Difference
    from moorage.client.moorage import Moorage
    from moorage.wire.ensembles import Ensemble

FILE = Option(
    "-f",
    "--file",
    action=FileOrFormat,
    metavar="FILE",
    required=True,
    help="description; - reads stdin. -f table|json|yaml is the output format",
)
_MOVES = frozenset({"role", "policy"})


class _Described(FromFile):
    """A command about the ensemble that has the name in a file."""

    _text: str | None = None
    """The description's text, once it is read."""

    def described(self, args: argparse.Namespace) -> tuple[dict[str, Any], Any]:
        """The description as a plain body, and as its checked value."""
        from moorage.client.description import read_description

        if args.file is None:
            self.usage_error("the argument -f/--file FILE is required")
        self._text = read_text(args.file)
        with reading(args.file):
            return read_description(self._text)

    @staticmethod
    def compared(
        client: Moorage,
        wanted: Any,  # noqa: ANN401 - the description
    ) -> tuple[Ensemble | None, list[Difference]]:
        """The ensemble of that name, if there is one, and its differences."""
        from moorage.client.ensemble_difference import differences

        stored = client.ensembles.named(wanted.name)
        if stored is None:
            return None, []
        every = client.flavors.all().value
        flavors = {one.id: one for one in every} | {one.name: one for one in every}
        return stored, differences(stored, wanted, flavors)


class Diff(_Described):
    """Show how an ensemble differs from the file that describes it.

    The ensemble is the one of the file's name. The exit status is 0 if they are equal, 1 if they
    differ or there is no such ensemble.
    """

    examples = "moorage ensemble diff -f shop.yaml"
    options = (FILE,)

    def act(self, args: argparse.Namespace) -> Shown:
        _, wanted = self.described(args)
        with self.client() as client, reading(args.file, self._text):
            stored, found = self.compared(client, wanted)
        if stored is None:
            text = f"+ ensemble {wanted.name}"
            return Shown({"ensemble_id": None, "differences": [text]}, text, FAILED)
        body = {"ensemble_id": stored.id, "differences": [str(one) for one in found]}
        return Shown(body, _lines(found), FAILED if found else OK)


class Apply(_Described):
    """Make an ensemble as its file describes it: create it, or change what differs.

    The ensemble is the one of the file's name, which no other in use may have. New members are
    placed and held beside those there are, which keep their places; those of a role with another
    size are placed anew, on their host where they fit. A second run changes nothing. Members whose
    hold has lapsed are placed anew. What cannot change in an ensemble that is there, such as a
    role's ports, is refused by name before anything is written.
    """

    examples = """
        moorage ensemble apply -f shop.yaml --hold 10m
        moorage ensemble apply -f shop.yaml --dry-run
    """
    options = (FILE, decide_arguments)

    def act(self, args: argparse.Namespace) -> Shown:
        from moorage.client.ensemble_difference import change
        from moorage.domain.describe_nested import flat_body

        body, wanted = self.described(args)
        decide = decide_body(args, [role.name for role in wanted.roles])
        with self.client() as client, reading(args.file, self._text):
            stored, found = self.compared(client, wanted)
            if stored is None:
                answer = create_ensemble(client, {**body, "decide": decide}, args)
            elif found:
                changed = change(stored, flat_body(body), found)
                if any(_decides(one) for one in found):
                    changed["decide"] = decide
                with deciding(client, None if args.dry_run else stored.id):
                    answer = client.ensembles.change(stored.id, changed, dry_run=args.dry_run)
            elif _lacks_places(client, stored):
                again = {"ensemble_id": stored.id, **decide}
                with deciding(client, None if args.dry_run else stored.id):
                    placed = client.decisions.decide(again, dry_run=args.dry_run)
                line = decision_text.SEPARATOR.join(decision_text.held(placed.value))
                return Shown(placed.body, with_begun(line, placed.body, dry_run=args.dry_run))
            else:
                return Shown({"ensemble_id": stored.id, "changed": False}, "unchanged")
        made = answer.value
        said = (
            decision_text.dry_change(made)
            if args.dry_run and made.decision
            else decision_text.created(made)
        )
        text = "\n".join(line for line in (_lines(found), said) if line)
        return Shown(answer.body, with_begun(text, answer.body, dry_run=args.dry_run))


def _decides(one: Difference) -> bool:
    from moorage.domain.describe_members import NOT_PLACING

    return one.subject in _MOVES and one.field not in NOT_PLACING


def _lacks_places(client: Moorage, stored: Ensemble) -> bool:
    """Whether members have no place."""
    return any(one.status == "unplaced" for one in client.ensembles.members(stored.id).value)


def _lines(found: Sequence[Difference]) -> str:
    return "\n".join(map(str, found))
