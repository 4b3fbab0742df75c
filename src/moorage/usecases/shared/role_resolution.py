"""Resolve described roles: flavors become what Nova asks for, and names are checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import os_resource_classes

from moorage.domain import deadline
from moorage.domain.describe_members import check_whole_node
from moorage.domain.ensembles import MemberKind
from moorage.domain.errors import InvalidDescription, NotFound, UnknownName
from moorage.domain.nova.flavors import server_of, server_request
from moorage.domain.resources import is_custom_name, total
from moorage.domain.words import did_you_mean, first_of
from moorage.engine.state.server_locations import usable_servers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.describe_members import RoleDescription
    from moorage.domain.ensembles import Role
    from moorage.domain.flavors import Flavor
    from moorage.domain.nova.server_request import NovaRules
    from moorage.domain.nova_servers import NovaServer
    from moorage.domain.request_groups import Group
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Caller, Store

_STANDARD: Final = frozenset(os_resource_classes.STANDARDS)
"""Resource classes that every ledger has."""


def resolve(
    known: LedgerNames, described: Sequence[RoleDescription], rules: NovaRules
) -> tuple[Role, ...]:
    """Turn descriptions into roles.

    Raises:
        UnknownName: an unknown flavor, resource class or trait.
        InvalidDescription: an image that contradicts the role's flavor.
    """
    roles = []
    for i, one in enumerate(described):
        deadline.check()
        roles.append(resolve_role(one, known, rules, one.path or f"members[{i}]"))
    return tuple(roles)


class LedgerNames:
    """The ledger's flavors, resource classes and traits, each read once when first needed.

    Errors suggest only names that tenants may know: standard names, and those in flavors, which
    every tenant may list. Other custom names are suggested only to operators. A custom name that
    only servers of other projects offer, and not to the project, is unknown to it.
    """

    def __init__(self, store: Store, project_id: str | None) -> None:
        """Names of a ledger, for a project; None: for operators, who may know every name."""
        self._store = store
        self._project_id = project_id
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
        known -= self._private(known & names)
        for name in sorted(names - known):
            said = known | _STANDARD
            raise UnknownName("resource class", name, path=path, known=self._public(said))

    def check_traits(self, names: frozenset[str], path: str) -> None:
        """Raise UnknownName for the first name that is no trait."""
        if new := names - self._traits:
            found = frozenset(one.name for one in self._store.traits(new))
            self._traits |= found - self._private(found)
        for name in sorted(names - self._traits):
            known = frozenset(one.name for one in self._store.traits())
            raise UnknownName("trait", name, path=path, known=self._public(known))

    def _public(self, names: frozenset[str]) -> frozenset[str]:
        """Those of these names that may be suggested."""
        if self._project_id is None:
            return names
        named = self._in_flavors()
        return frozenset(one for one in names if not is_custom_name(one) or one in named)

    def _private(self, names: frozenset[str]) -> frozenset[str]:
        """Those of these names that only servers offer, and none to the project."""
        custom = frozenset(filter(is_custom_name, names))
        snapshot = self._store.snapshot()
        if self._project_id is None or not custom or not snapshot.offered_by:
            return frozenset()
        closed = snapshot.offered_by.keys() - set(usable_servers(snapshot, self._project_id))
        found = {name for name in custom if (rows := _carriers(snapshot, name)) and rows <= closed}
        return frozenset(found - self._in_flavors()) if found else frozenset()

    def _in_flavors(self) -> set[str]:
        """The names of resource classes and traits in flavors."""
        flavors = self._store.flavors()
        named = {name for one in flavors for name in one.resources}
        named |= {name for one in flavors for some in one.required for name in some}
        named |= {name for one in flavors for name in one.forbidden | one.root_required}
        groups = [group for one in flavors for group in one.groups]
        named |= {name for one in groups for name in one.resources}
        named |= {name for one in groups for some in one.required for name in some}
        return named


def _carriers(snapshot: Snapshot, name: str) -> set[int]:
    """Rows of the providers that have a resource class or a trait."""
    columns, mask = snapshot.classes.get(name), snapshot.traits.get(name)
    rows = set[int]() if columns is None else set(columns.rows.tolist())
    return rows if mask is None else rows | set(np.flatnonzero(mask).tolist())


def names_for(store: Store, caller: Caller) -> LedgerNames:
    """The ledger's names as far as a caller may know them."""
    return LedgerNames(store, None if caller.operator else caller.project_id)


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
        known = sorted(one.name for one in store.flavors())
        unknown = UnknownName("flavor", name, path=path, known=known)
        if not did_you_mean(name, known):
            unknown.message += f"; there are: {_some(known)}"
            unknown.args = (unknown.message,)
        raise unknown from error


def known_flavor(store: Store, name: str) -> Flavor:
    """The flavor with this id or name.

    Raises:
        NotFound: there is none; the most similar one is named, or else some.
    """
    try:
        found = store.flavor(name)
    except NotFound:
        found = None
    if found is not None and name in {found.id, found.name}:
        return found
    names = sorted(one.name for one in store.flavors())
    raise NotFound("flavor", name, did_you_mean(name, names) or f"; there are: {_some(names)}")


def _some(names: Sequence[str]) -> str:
    return ", ".join(first_of(names, _TOLD)) or "none"


_TOLD: Final = 8
"""Flavors that a message names."""
