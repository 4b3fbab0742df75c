"""Requests that added members: told again under the same id, they add nothing more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from moorage.usecases.digest import same_request

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.usecases.proposal import Naming

KEPT: Final = 100
"""How many such requests an ensemble remembers: a retry comes soon, or not at all."""


def answered(ensemble: Ensemble, naming: Naming) -> bool:
    """Whether the ensemble has the members of this request already.

    Raises:
        DuplicateName: the id was used with another body.
    """
    stored = dict(ensemble.additions).get(naming.id)
    if stored is None:
        return False
    same_request("request", naming.id, stored=stored, given=naming.digest)
    return True


def remembering(ensemble: Ensemble, naming: Naming) -> Ensemble:
    """The ensemble that knows the request, where the client named it itself."""
    if not naming.digest:
        return ensemble
    known = (*ensemble.additions, (naming.id, naming.digest))
    return replace(ensemble, additions=known[-KEPT:])
