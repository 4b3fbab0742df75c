"""References of policies to other ensembles: found when they are written, judged afterwards."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import SIDES
from moorage.domain.errors import InvalidDescription, LimitExceeded, NotFound, UnknownName
from moorage.domain.references import references_of, with_ids
from moorage.domain.words import first_of

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble, PolicyStatement
    from moorage.usecases.ports import Store

MOST: Final = 20
"""Other ensembles to which the policies of one may refer: all are read with it."""
_TOLD: Final = 5
"""Ids that an error lists of ensembles with one name."""


def with_references(
    store: Store, ensemble: Ensemble, stored: tuple[PolicyStatement, ...] = ()
) -> Ensemble:
    """The ensemble, whose policies refer to others by id, and with the consumers of these.

    Policies in `stored` were written before: what they refer to may have been deleted since.

    Raises:
        UnknownName: the project has no ensemble of that id or name.
        LimitExceeded: they refer to more than `MOST` ensembles.
        InvalidDescription: a policy refers to its own ensemble, or to one of several of a name.
    """
    names = {name for one in ensemble.policies for name in references_of(one)}
    if len(names) > MOST:
        raise LimitExceeded("ensembles to which policies refer", limit=MOST, requested=len(names))
    found = dict(ensemble.references)
    policies = []
    for index, statement in enumerate(ensemble.policies):
        if statement in stored or not references_of(statement):
            policies.append(statement)
            continue
        path = statement.path or f"policies[{index}]"
        others = {
            name: _other(store, ensemble, name, f"{path}.{SIDES}")
            for name in sorted(references_of(statement))
        }
        found |= {one.id: one.consumers for one in others.values()}
        policies.append(with_ids(statement, {name: one.id for name, one in others.items()}))
    return replace(ensemble, policies=tuple(policies), references=MappingProxyType(found))


def _other(store: Store, ensemble: Ensemble, name: str, path: str) -> Ensemble:
    project = ensemble.project_id
    named = store.ensembles_named(project, name)
    if len(named) > 1:
        some = ", ".join(first_of(named, _TOLD))
        told = f"{len(named)} ensembles have the name {name}; use an id: {some}"
        raise InvalidDescription(told, path=path)
    try:
        other = store.ensemble(named[0] if named else name)
    except NotFound:
        raise UnknownName("ensemble", name, path=path) from None
    if other.project_id != project:
        raise UnknownName("ensemble", name, path=path)
    if other.id == ensemble.id:
        raise InvalidDescription("an ensemble cannot be a side of its own policies", path=path)
    return other
