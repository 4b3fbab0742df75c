"""References of policies to other ensembles of the project: `ensemble:<id or name>` in a side."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import SIDES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.ensembles import PolicyStatement

REFERENCE: Final = "ensemble:"
"""How the name of another ensemble begins; so no role's name may."""


def referenced(side: Iterable[object]) -> list[str]:
    """The ids or names of the ensembles to which one side refers."""
    return [
        name.removeprefix(REFERENCE)
        for name in side
        if isinstance(name, str) and name.startswith(REFERENCE)
    ]


def references_of(statement: PolicyStatement) -> frozenset[str]:
    """The ids or names of all ensembles to which a statement refers."""
    sides = statement.parameters.get(SIDES)
    if not isinstance(sides, list | tuple):
        return frozenset()
    return frozenset(name for side in sides for name in referenced(side))


def with_ids(statement: PolicyStatement, ids: Mapping[str, str]) -> PolicyStatement:
    """The statement, in which the named ensembles are referred to by their ids."""
    sides = statement.parameters[SIDES]
    assert isinstance(sides, list | tuple)
    renamed = {f"{REFERENCE}{name}": f"{REFERENCE}{id_}" for name, id_ in ids.items()}
    named = [[renamed.get(name, name) for name in side] for side in sides]
    return replace(statement, parameters=MappingProxyType({**statement.parameters, SIDES: named}))
