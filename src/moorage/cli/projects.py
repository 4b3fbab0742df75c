"""Listings of one project and of all: whose is what, and where else to look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from moorage.cli.output import stack, table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from moorage.client.moorage import Moorage

ELSEWHERE = "nothing in this project; --all-projects lists more"


class Owned(Protocol):
    """What belongs to a project."""

    @property
    def project_id(self) -> str:
        """Whose it is."""


@dataclass(frozen=True)
class Listing:
    """A listing that can be of one project or of all: where it is, and what narrows it."""

    path: str
    narrowed: Mapping[str, str | None]
    columns: Sequence[str]
    quiet: Sequence[str] = ()
    """See `output.Rows.quiet`."""

    def of_all(self, rows: Sequence[Sequence[object]], things: Sequence[Owned]) -> RenderableType:
        """The table with the project after the first column: `L1` is one of each project."""
        owned = [(row[0], one.project_id, *row[1:]) for row, one in zip(rows, things, strict=True)]
        return table([self.columns[0], "project", *self.columns[1:]], owned, self.quiet)

    def of_one(self, client: Moorage, rows: Sequence[Sequence[object]]) -> RenderableType:
        """The table; of an empty one an operator hears that other projects have some."""
        listed = table(self.columns, rows, self.quiet)
        if rows or not client.elsewhere(self.path, self.narrowed):
            return listed
        return stack(listed, "", ELSEWHERE)

    def shown(
        self,
        client: Moorage,
        args: argparse.Namespace,
        rows: Sequence[Sequence[object]],
        things: Sequence[Owned],
    ) -> RenderableType:
        """The one or the other, as `--all-projects` says."""
        return self.of_all(rows, things) if args.all_projects else self.of_one(client, rows)
