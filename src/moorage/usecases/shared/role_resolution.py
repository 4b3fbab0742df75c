"""Resolve described roles: flavors become what Nova asks for, and names are checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import os_resource_classes

from moorage.domain.describe_members import check_whole_node
from moorage.domain.ensembles import MemberKind
from moorage.domain.errors import InvalidDescription, NotFound, UnknownName
from moorage.domain.nova.flavors import server_of, server_request
from moorage.domain.resources import is_custom_name, total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.describe_members import RoleDescription
    from moorage.domain.ensembles import Role
    from moorage.domain.flavors import Flavor
    from moorage.domain.nova.server_request import NovaRules
    from moorage.domain.nova_servers import NovaServer
    from moorage.domain.request_groups import Group
    from moorage.usecases.ports import Store

_STANDARD: Final = frozenset(os_resource_classes.STANDARDS)
"""Resource classes that every ledger has."""


def resolve(
    store: Store, described: Sequence[RoleDescription], rules: NovaRules
) -> tuple[Role, ...]:
    """Turn descriptions into roles.

    Raises:
        UnknownName: an unknown flavor, resource class or trait.
        InvalidDescription: an image that contradicts the role's flavor.
    """
    known = LedgerNames(store)
    return tuple(
        resolve_role(one, known, rules, one.path or f"members[{i}]")
        for i, one in enumerate(described)
    )


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
        self._traits: frozenset[str] = frozenset()
        """Those of the names asked for that exist."""
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
        if new := names - self._traits:
            self._traits |= {one.name for one in self._store.traits(new)}
        for name in sorted(names - self._traits):
            known = frozenset(one.name for one in self._store.traits())
            raise UnknownName("trait", name, path=path, known=self._public(known))

    def _public(self, names: frozenset[str]) -> frozenset[str]:
        """Those of these names that may be suggested."""
        if self._operator:
            return names
        flavors = self._store.flavors()
        named = {name for one in flavors for name in one.resources}
        named |= {name for one in flavors for some in one.required for name in some}
        named |= {name for one in flavors for name in one.forbidden | one.root_required}
        groups = [group for one in flavors for group in one.groups]
        named |= {name for one in groups for name in one.resources}
        named |= {name for one in groups for some in one.required for name in some}
        return frozenset(one for one in names if not is_custom_name(one) or one in named)


def resolve_role(
    described: RoleDescription, known: LedgerNames, rules: NovaRules, path: str
) -> Role:
    """Turn one description into a role; a flavor's traits are added to the role's own.

    Raises:
        UnknownName: an unknown flavor, resource class or trait.
        InvalidDescription: an image that contradicts the flavor.
    """
    if described.alternatives:
        first, *others = (
            resolve_role(one, known, rules, f"{path}.alternatives[{i}]")
            for i, one in enumerate((replace(described, alternatives=()), *described.alternatives))
        )
        return replace(first, alternatives=tuple(others))
    own = described.role
    # A member without a size takes only the resources of its groups.
    known.check_classes(frozenset(own.resources), f"{path}.resources")
    known.check_traits(frozenset().union(*described.required), f"{path}.required")
    known.check_traits(described.forbidden, f"{path}.forbidden")
    for group in described.groups:
        check_group(group, known, f"{path}.{group.kind}s")
    if described.flavor is not None:
        flavor = known.flavor(described.flavor, f"{path}.flavor")
        server = server_of(flavor, described.image_properties, from_volume=described.from_volume)
        own = _with_flavor(own, flavor, server, known, rules, path)
        if own.kind == MemberKind.BAREMETAL:
            taken = total([own.resources, *(one.resources for one in own.groups)])
            check_whole_node(own.name, taken, f"{path}.flavor")
    return own


def _with_flavor(
    role: Role,
    flavor: Flavor,
    server: NovaServer,
    known: LedgerNames,
    rules: NovaRules,
    path: str,
) -> Role:
    """The role with what Nova asks for its flavor and its image.

    Raises:
        UnknownName: a resource class or trait that the ledger does not have.
        InvalidDescription: the flavor and the image contradict each other, or a group of the role
            has the name of one of the flavor.
    """
    asked = server_request(
        flavor,
        server,
        rules,
        others=role.groups,
        path=f"{path}.flavor",
        image_path=f"{path}.image_properties",
    )
    taken = {one.name for one in asked.groups}
    for group in role.groups:
        # The flavor of a ticket names the role's groups with an underscore.
        if taken & {group.name, f"_{group.name}"}:
            raise InvalidDescription(
                f"flavor {flavor.name} has a group of the name {group.name}; choose another",
                path=f"{path}.{group.kind}s",
            )
    known.check_classes(frozenset(asked.resources), f"{path}.flavor")
    traits = asked.forbidden.union(asked.root_required, *asked.required)
    known.check_traits(traits, f"{path}.flavor")
    for group in asked.groups:
        check_group(group, known, f"{path}.flavor")
    return replace(
        role,
        flavor=flavor.name,
        resources=asked.resources,
        required=tuple(dict.fromkeys((*asked.required, *role.required))),
        forbidden=asked.forbidden | role.forbidden,
        groups=(*asked.groups, *role.groups),
        isolate=asked.isolate or role.isolate,
        root_required=asked.root_required,
        nova_server=server,
        host_checks=asked.host_checks,
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
