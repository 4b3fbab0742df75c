"""The differences between the ledger and another service, as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.cli.output import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.content import Difference

SHOWN: Final = 20
"""The most differences that are listed; `-f json` has them all."""


def as_plain(one: Difference) -> dict[str, str]:
    """A difference, for JSON."""
    return {"kind": one.kind, "subject": one.subject, "way": one.way.value, "detail": one.detail}


def side_by_side(body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - something rich
    """The number of records of each kind in the source and in the ledger."""
    rows = [(name, number, body["ledger"][name]) for name, number in body["source"].items()]
    return table(["", "#source", "#ledger"], rows)


def spelled_out(differences: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """The first differences, a line each, and how many more there are."""
    for one in differences[:SHOWN]:
        detail = f": {one['detail']}" if one["detail"] else ""
        yield f"{one['kind']} {one['subject']} {one['way']}{detail}"
    if len(differences) > SHOWN:
        yield f"… and {len(differences) - SHOWN} more"
