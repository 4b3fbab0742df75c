"""Changing a policy by naming only what changes; writing one as it was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.describe import read_statement
from moorage.domain.ensembles import ALL_PHASES
from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.ensembles import PolicyStatement


def written_statement(statement: PolicyStatement) -> dict[str, object]:
    """The statement as `describe.read_statement` reads it."""
    selectors = [str(one) for one in statement.members]
    found: dict[str, object] = {
        "name": statement.name,
        "type": statement.type,
        "zip" if statement.zip else "members": selectors,
        "strength": "required" if statement.weight is None else {"preferred": statement.weight},
    }
    if statement.phases != ALL_PHASES:
        found["phase"] = sorted(phase.value for phase in statement.phases)
    return found | dict(statement.parameters)


def merged_statement(
    before: PolicyStatement, source: Mapping[str, object], path: str
) -> PolicyStatement:
    """The statement with the given fields replaced; a parameter given as null is dropped.

    Raises:
        InvalidDescription: the type would change, or the result cannot be understood.
    """
    if source.get("type", before.type) != before.type:
        raise InvalidDescription(
            f"policy {before.name} is of type {before.type}; remove it and add another",
            path=f"{path}.type",
        )
    base = written_statement(before)
    if "zip" in source:
        base.pop("members", None)
    if "members" in source:
        base.pop("zip", None)
    merged = {**base, **source}
    return read_statement({k: v for k, v in merged.items() if v is not None}, path)
