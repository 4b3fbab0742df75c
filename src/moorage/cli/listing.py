"""`--sort-column` and `--limit` of listings: which rows are shown, and in which order."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from moorage.cli.output import Rows, Shown, parts, places_of
from moorage.client.lookup import WHOLE, Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

_NUMBER: Final = re.compile(r"(\d+)", re.ASCII)


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the options; a listing that has a `--limit` of its own keeps it."""
    if "--limit" not in parser._option_string_actions:  # noqa: SLF001 - argparse has no public list
        parser.add_argument(
            "--limit", type=positive, metavar="N", dest="most", help="show the first N only"
        )
    parser.add_argument(
        "--sort-column",
        action="append",
        metavar="COLUMN",
        dest="sort_columns",
        help="sort by this column; repeatable, the first one first",
    )
    parser.add_argument(
        "--sort-descending",
        action="store_true",
        help="with --sort-column: the highest first",
    )


def positive(text: str) -> int:
    """Read a number of rows.

    Raises:
        argparse.ArgumentTypeError: it is none, or below 1.
    """
    if not (text.isascii() and text.isdigit() and int(text[:9])):
        raise argparse.ArgumentTypeError("write a number, 1 or more")
    return int(text[:9])


def part_of(args: argparse.Namespace, keys: Mapping[str, str]) -> Part:
    """The part of a listing that the service is asked for.

    `keys` are columns by which it sorts itself. Sorted by others, all of the listing is asked for.
    """
    if not args.sort_columns:
        return Part(args.most)
    key = keys.get(args.sort_columns[0]) if len(args.sort_columns) == 1 else None
    return WHOLE if key is None else Part(args.most, key, descending=args.sort_descending)


def arranged(
    shown: Shown, columns: Sequence[str], most: int | None, *, descending: bool
) -> tuple[Shown, bool]:
    """A listing with its rows sorted and cut; and whether its body is so, too.

    A body is not where one of its things is shown as several rows.

    Raises:
        NoColumn: it has not got one of these columns.
    """
    part = next(parts(shown.text), None)
    if not isinstance(part, Rows):
        return shown, True
    rows, at = part.rows, places_of(part.columns, columns)
    order = sorted(
        range(len(rows)),
        key=lambda row: [_natural(rows[row][place]) for place in at],
        reverse=descending and bool(at),
    )[:most]
    text = _with_rows(shown.text, part, [rows[row] for row in order])
    listed = _things(shown.body)
    if listed is None or len(listed) != len(rows):
        return replace(shown, text=text), False
    body = [listed[row] for row in order]
    return Shown(_with_things(shown.body, listed, body), text, shown.status), True


def _natural(cell: object) -> list[tuple[int, int, str]]:
    """Sorts texts with the numbers in them by their value: `db[2]` before `db[10]`."""
    text = str(cell.machine_readable()) if hasattr(cell, "machine_readable") else str(cell or "")
    return [
        (0, int(one), "") if one.isdigit() else (1, 0, one) for one in _NUMBER.split(text) if one
    ]


def _with_rows(text: str | RenderableType, part: Rows, rows: Sequence[Any]) -> RenderableType:
    """The output with other rows in the listing's place."""
    from rich.console import Group

    if text is part:
        return replace(part, rows=tuple(rows))
    assert isinstance(text, Group), "a listing stands alone or in a stack"
    return Group(
        *(_with_rows(one, part, rows) if _has(one, part) else one for one in text.renderables)
    )


def _has(text: object, part: Rows) -> bool:
    return any(one is part for one in parts(text))  # type: ignore[arg-type]  # any renderable


def _things(body: object) -> list[Any] | None:
    """The one list in an answer; None: there is none, or several."""
    if isinstance(body, list):
        return body
    values = body.values() if isinstance(body, dict) else ()
    lists = [one for one in values if isinstance(one, list) and one]
    return lists[0] if len(lists) == 1 else None


def _with_things(body: Any, listed: list[Any], things: list[Any]) -> object:  # noqa: ANN401 - the API's answer
    if body is listed:
        return things
    return {key: things if value is listed else value for key, value in body.items()}
