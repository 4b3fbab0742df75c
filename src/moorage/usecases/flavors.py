"""Flavors: everyone reads them, operators write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, DeleteFlavor, PutFlavor
from moorage.domain.errors import DuplicateName, NotFound
from moorage.usecases.access import for_operators
from moorage.usecases.roles import Names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.flavors import Flavor
    from moorage.usecases.parts import Parts
    from moorage.usecases.ports import Caller


def put_flavors(
    parts: Parts, caller: Caller, flavors: Sequence[Flavor], *, dry_run: bool = False
) -> None:
    """Write flavors, all or none; one of the same id is replaced.

    Raises:
        Forbidden: the caller is no operator.
        UnknownName: a resource class or trait that is not known here.
        DuplicateName: another flavor has the name already.
    """
    for_operators(caller)
    known = Names(parts.store)
    names: dict[str, str] = {}
    for index, flavor in enumerate(flavors):
        path = f"flavors[{index}]"
        known.check_classes(frozenset(flavor.resources), f"{path}.resources")
        known.check_traits(frozenset().union(*flavor.required), f"{path}.required")
        known.check_traits(flavor.forbidden, f"{path}.forbidden")
        if names.setdefault(flavor.name, flavor.id) != flavor.id:
            raise DuplicateName("flavor", flavor.name)
    for other in parts.store.flavors():
        if names.get(other.name, other.id) != other.id:
            raise DuplicateName("flavor", other.name)
    if not dry_run:
        parts.store.commit(Changeset(tuple(PutFlavor(flavor) for flavor in flavors)))


def delete_flavor(parts: Parts, caller: Caller, name: str, *, dry_run: bool = False) -> None:
    """Forget a flavor; ensembles keep what it meant when they were described.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: there is none of that id or name.
    """
    for_operators(caller)
    flavor = parts.store.flavor(name)
    if name not in (flavor.id, flavor.name):
        raise NotFound("flavor", name)
    if not dry_run:
        parts.store.commit(Changeset((DeleteFlavor(flavor.id),)))
