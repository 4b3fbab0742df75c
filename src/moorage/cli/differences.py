"""How a source and the ledger compare after taking over: told alike, whatever was taken over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.cli.output import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.content import Difference

SHOWN: Final = 20
"""Differences that the table spells out; `-f json` has them all."""


def as_plain(one: Difference) -> dict[str, str]:
    """A difference, for JSON."""
    return {"kind": one.kind, "subject": one.subject, "way": one.way.value, "detail": one.detail}


def side_by_side(body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - something rich
    """How many of each kind the source has, and the ledger."""
    rows = [(name, number, body["ledger"][name]) for name, number in body["source"].items()]
    return table(["", "#source", "#ledger"], rows)


def spelled_out(told: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """The first plain differences, a line each, and how many more there are."""
    for one in told[:SHOWN]:
        detail = f": {one['detail']}" if one["detail"] else ""
        yield f"{one['kind']} {one['subject']} {one['way']}{detail}"
    if len(told) > SHOWN:
        yield f"… and {len(told) - SHOWN} more"
