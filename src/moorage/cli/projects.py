"""Listings of one project or of all projects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from moorage.cli.output import stack, table

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from moorage.client.moorage import Moorage

ELSEWHERE = "none in this project; --all-projects lists those of others"


class Owned(Protocol):
    """A thing that belongs to a project."""

    @property
    def project_id(self) -> str:
        """The id of its project."""


@dataclass(frozen=True)
class Listing:
    """A listing of one project or of all: its path and its filters."""

    path: str
    narrowed: Mapping[str, str | None]
    columns: Sequence[str]
    quiet: Sequence[str] = ()
    """See `output.Rows.quiet`."""

    def of_all(self, rows: Sequence[Sequence[object]], things: Sequence[Owned]) -> RenderableType:
        """The table with the project as second column, since handles repeat across projects."""
        owned = [(row[0], one.project_id, *row[1:]) for row, one in zip(rows, things, strict=True)]
        return table([self.columns[0], "project", *self.columns[1:]], owned, self.quiet)

    def of_one(self, client: Moorage, rows: Sequence[Sequence[object]]) -> RenderableType:
        """The table; if it is empty, with a hint for operators that other projects have items."""
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
        """The table that `--all-projects` selects."""
        return self.of_all(rows, things) if args.all_projects else self.of_one(client, rows)
