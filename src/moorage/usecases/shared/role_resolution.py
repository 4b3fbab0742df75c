"""Resolve described roles: flavors become resources and traits, and names are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import os_resource_classes

from moorage.domain.ensembles import Role
from moorage.domain.errors import NotFound, UnknownName
from moorage.domain.extra_specs import check_stored
from moorage.domain.resources import amounts, is_custom_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.describe import RoleDescription
    from moorage.domain.ensembles import Group
    from moorage.domain.flavors import Flavor
    from moorage.usecases.ports import Store

_STANDARD: Final = frozenset(os_resource_classes.STANDARDS)
"""Resource classes that every ledger has."""


def resolve(store: Store, described: Sequence[RoleDescription]) -> tuple[Role, ...]:
    """Turn descriptions into roles.

    Raises:
        UnknownName: an unknown flavor, resource class or trait.
    """
    known = LedgerNames(store)
    return tuple(resolve_role(one, known, f"members[{i}]") for i, one in enumerate(described))


class LedgerNames:
    """The ledger's flavors, resource classes and traits, each read once when first needed.

    Errors suggest only names that tenants may know: standard names, and those in flavors, which
    every tenant may list. Other custom names are suggested only to operators.
    """

    def __init__(self, store: Store, *, operator: bool = False) -> None:
        """Names of a ledger.

        `operator` says whether only operators read the errors, which may then suggest any name.
        """
        self._store = store
        self._operator = operator
        self._classes: frozenset[str] | None = None
        self._traits: frozenset[str] | None = None
        self._flavors: dict[str, Flavor] = {}

    def flavor(self, name: str, path: str) -> Flavor:
        """A flavor by name or id; each is read once.

        Raises:
            UnknownName: there is none.
        """
        if name not in self._flavors:
            self._flavors[name] = find_flavor(self._store, name, path)
        return self._flavors[name]

    def check_classes(self, names: frozenset[str], path: str) -> None:
        """Raise UnknownName for the first name that is no resource class."""
        names -= _STANDARD
        if names and self._classes is None:
            self._classes = frozenset(one.name for one in self._store.resource_classes())
        known = self._classes or frozenset()
        for name in sorted(names - known):
            said = known | _STANDARD
            raise UnknownName("resource class", name, path=path, known=self._public(said))

    def check_traits(self, names: frozenset[str], path: str) -> None:
        """Raise UnknownName for the first name that is no trait."""
        if names and self._traits is None:
            self._traits = frozenset(one.name for one in self._store.traits())
        known = self._traits or frozenset()
        for name in sorted(names - known):
            raise UnknownName("trait", name, path=path, known=self._public(known))

    def _public(self, names: frozenset[str]) -> frozenset[str]:
        """Those of these names that may be suggested."""
        if self._operator:
            return names
        flavors = self._store.flavors()
        named = {name for one in flavors for name in one.resources}
        named |= {name for one in flavors for some in one.required for name in some}
        named |= {name for one in flavors for name in one.forbidden}
        return frozenset(one for one in names if not is_custom_name(one) or one in named)


def resolve_role(described: RoleDescription, known: LedgerNames, path: str) -> Role:
    """Turn one description into a role; a flavor's traits are added to the role's own.

    Raises:
        UnknownName: an unknown flavor, resource class or trait.
    """
    required, forbidden = described.required, described.forbidden
    if described.flavor is None:
        # A member without a size takes only the resources of its groups.
        resources, name = described.resources or amounts({}), None
        known.check_classes(frozenset(resources), f"{path}.resources")
    else:
        flavor = known.flavor(described.flavor, f"{path}.flavor")
        check_stored(flavor.extra_specs, f"{path}.flavor")  # older versions stored unsupported ones
        resources, name = flavor.resources, flavor.name
        required = tuple(dict.fromkeys((*flavor.required, *required)))
        forbidden = flavor.forbidden | forbidden
    known.check_traits(frozenset().union(*described.required), f"{path}.required")
    known.check_traits(described.forbidden, f"{path}.forbidden")
    for group in described.groups:
        check_group(group, known, f"{path}.{group.kind}s")
    return Role(
        name=described.name,
        resources=resources,
        kind=described.kind,
        flavor=name,
        required=required,
        forbidden=forbidden,
        member_of=described.member_of,
        tags=described.tags,
        groups=described.groups,
        same_subtree=described.same_subtree,
        isolate=described.isolate,
        server=described.server,
    )


def check_group(group: Group, known: LedgerNames, path: str) -> None:
    """Raise UnknownName for the first unknown resource class or trait of a group."""
    known.check_classes(frozenset(group.resources), f"{path}.{group.name}.resources")
    known.check_traits(frozenset().union(*group.required), f"{path}.{group.name}.required")
    known.check_traits(group.forbidden, f"{path}.{group.name}.forbidden")


def find_flavor(store: Store, name: str, path: str) -> Flavor:
    """A flavor by name or id, named in a description.

    Raises:
        UnknownName: there is none.
    """
    try:
        return store.flavor(name)
    except NotFound as error:
        known = [one.name for one in store.flavors()]
        raise UnknownName("flavor", name, path=path, known=known) from error
