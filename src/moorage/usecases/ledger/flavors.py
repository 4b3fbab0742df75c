"""Flavors: write, delete, and load from Nova's listings.

All callers read flavors, operators write them. Read are the rows of `openstack flavor list --long
-f json` and the flavors of Nova's API. RAM is in MiB, Disk and Ephemeral in GiB, Swap in MiB (or an
empty string). What a server of the flavor asks of Placement follows in `domain.nova`; extra specs
that are not known are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.domain.changes import Changeset, DeleteFlavor, PutFlavor
from moorage.domain.errors import (
    DuplicateName,
    InvalidDescription,
    MoorageError,
    UnknownName,
)
from moorage.domain.nova.flavors import nova_flavor
from moorage.domain.nova_servers import FlavorSize
from moorage.usecases.shared.access import require_operator
from moorage.usecases.shared.role_resolution import LedgerNames, check_group, known_flavor
from moorage.usecases.tickets.places import stands_for_places

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moorage.domain.flavors import Flavor
    from moorage.domain.nova.server_request import NovaRules
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller


_PROPERTY: Final = re.compile(r"\s*([^=,\s]+)\s*=\s*'([^']*)'\s*(?:,|$)")
_DIGITS: Final = 12
_MOST: Final = 2**31 - 1
"""The largest number of a flavor, as on Placement's wire."""
_LONGEST: Final = 255
"""Longest name in characters; Nova's limit."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """The names of a flavor's fields in one kind of listing."""

    id: str
    name: str
    memory: str
    disk: str
    ephemeral: str
    vcpus: str
    swap: str
    specs: str

    @property
    def needed(self) -> frozenset[str]:
        return frozenset({self.id, self.name, self.memory, self.disk, self.ephemeral, self.vcpus})


_CLIENT: Final = _Columns(
    *("ID", "Name", "RAM", "Disk", "Ephemeral", "VCPUs", "Swap", "Properties")
)
"""The columns of the `openstack` client."""
_API: Final = _Columns(
    *("id", "name", "ram", "disk", "OS-FLV-EXT-DATA:ephemeral", "vcpus", "swap", "extra_specs")
)
"""The fields of Nova's API."""


@dataclass(frozen=True, slots=True)
class UnreadableFlavor:
    """A flavor of a listing that was not loaded."""

    row: int
    """Its index in the listing, from 0."""
    id: str
    name: str
    path: str | None
    why: str


def refused(row: object, index: int, error: MoorageError) -> UnreadableFlavor:
    """A row of a listing with the error that refused it."""
    fields = row if isinstance(row, Mapping) else {}
    columns = _columns(fields)
    said = {"ID": fields.get(columns.id), "Name": fields.get(columns.name)}
    texts = {key: str(one)[:_LONGEST] for key, one in said.items() if isinstance(one, str | int)}
    path = error.path if isinstance(error, InvalidDescription | UnknownName) else None
    return UnreadableFlavor(index, texts.get("ID", ""), texts.get("Name", ""), path, error.message)


def read_row(row: object, path: str, rules: NovaRules) -> Flavor:
    """Read one flavor.

    Raises:
        InvalidDescription: a missing field, a value of another type, or an extra spec that is not
            known or contradicts another one.
    """
    if not isinstance(row, Mapping):
        raise InvalidDescription("a flavor is an object", path=path)
    of = _columns(row)
    for column in sorted(of.needed - set(row)):
        raise InvalidDescription(f"column {column} is missing", path=f"{path}.{column}")
    if hides_specs(row):
        raise InvalidDescription(
            "extra_specs is missing: this user may not see extra specs, or they were read with a"
            " microversion below 2.61",
            path=f"{path}.{of.specs}",
        )
    size = FlavorSize(
        vcpus=_number(row[of.vcpus], f"{path}.{of.vcpus}"),
        memory_mb=_number(row[of.memory], f"{path}.{of.memory}"),
        root_gb=_number(row[of.disk], f"{path}.{of.disk}"),
        ephemeral_gb=_number(row[of.ephemeral], f"{path}.{of.ephemeral}"),
        swap_mb=_number(row.get(of.swap) or 0, f"{path}.{of.swap}"),
    )
    return nova_flavor(
        _text(row[of.id], f"{path}.{of.id}"),
        _text(row[of.name], f"{path}.{of.name}"),
        size,
        read_properties(row.get(of.specs), f"{path}.{of.specs}"),
        rules,
        f"{path}.{of.specs}",
    )


def hides_specs(row: Mapping[object, object]) -> bool:
    """Whether a flavor of Nova's API comes without its extra specs; without any they are `{}`."""
    return _columns(row) is _API and _API.specs not in row


def _columns(row: Mapping[object, object]) -> _Columns:
    return _API if "vcpus" in row else _CLIENT


def read_properties(source: object, path: str) -> dict[str, str]:
    """Read properties: a mapping, or text such as `hw:cpu_policy='dedicated', a='b'`.

    Raises:
        InvalidDescription: the source is neither.
    """
    if source is None or source == "":
        return {}
    if isinstance(source, Mapping):
        return {str(name): str(value) for name, value in source.items()}
    if not isinstance(source, str):
        raise InvalidDescription("Properties must be an object or text", path=path)
    found, at = {}, 0
    while at < len(source):
        match = _PROPERTY.match(source, at)
        if match is None:
            raise InvalidDescription(
                f"Properties cannot be read from here: {source[at : at + 40]!r}", path=path
            )
        found[match[1]] = match[2]
        at = match.end()
    return found


def _number(value: object, path: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return value
    what, said = path.rpartition(".")[2], str(value)[:_LONGEST]
    raise InvalidDescription(f"{what} must be a whole number, not {said!r}", path=path)


def _text(value: object, path: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value and len(value) <= _LONGEST:
        return value
    raise InvalidDescription(f"{path.rpartition('.')[2]} must be a name", path=path)


def put_flavors(env: UseCaseEnvironment, caller: Caller, flavors: Sequence[Flavor]) -> None:
    """Write flavors, all or none; a stored flavor with the same id is replaced.

    Raises:
        Forbidden: the caller is no operator.
        UnknownName: a resource class or trait that the ledger does not have.
        DuplicateName: another flavor has the name.
    """
    require_operator(caller)
    known = LedgerNames(env.store, None)
    names: dict[str, str] = {}
    for index, flavor in enumerate(flavors):
        _check_names(known, flavor, f"flavors[{index}]")
        if names.setdefault(flavor.name, flavor.id) != flavor.id:
            raise DuplicateName("flavor", flavor.name)
    for other in env.store.flavors():
        if names.get(other.name, other.id) != other.id:
            raise DuplicateName("flavor", other.name)
    env.store.commit(Changeset(tuple(PutFlavor(flavor) for flavor in flavors)))


@dataclass(frozen=True, slots=True)
class FlavorLoadResult:
    """The flavors loaded from a listing, and those refused."""

    flavors: tuple[Flavor, ...]
    refused: tuple[UnreadableFlavor, ...]


def load_flavors(
    env: UseCaseEnvironment, caller: Caller, rows: Sequence[object]
) -> FlavorLoadResult:
    """Write the flavors of Nova's listing; unreadable ones are returned, and the others written.

    Flavors of tickets and reservations are left out: Moorage itself makes and deletes them.

    Raises:
        Forbidden: the caller is no operator.
    """
    require_operator(caller)
    listing = read_listing(env, rows, env.store.flavors())
    if listing.flavors:
        env.store.commit(Changeset(tuple(PutFlavor(flavor) for flavor in listing.flavors)))
    return listing


def read_listing(
    env: UseCaseEnvironment, rows: Sequence[object], beside: Iterable[Flavor]
) -> FlavorLoadResult:
    """Read the flavors of Nova's listing, without those of tickets and reservations.

    One that has the name of another flavor, of the listing or of those `beside` it, is refused.
    """
    known = LedgerNames(env.store, None)
    taken = {other.name: other.id for other in beside}
    found: dict[str, Flavor] = {}
    out: list[UnreadableFlavor] = []
    for index, row in enumerate(rows):
        path = f"flavors[{index}]"
        try:
            flavor = read_row(row, path, env.limits.nova)
            if any(stands_for_places(env.store, name) for name in flavor.resources):
                continue
            _check_names(known, flavor, path)
        except (InvalidDescription, UnknownName) as error:
            out.append(refused(row, index, error))
            continue
        if taken.setdefault(flavor.name, flavor.id) != flavor.id:
            out.append(refused(row, index, DuplicateName("flavor", flavor.name)))
            continue
        found[flavor.id] = flavor
    return FlavorLoadResult(tuple(found.values()), tuple(out))


def _check_names(known: LedgerNames, flavor: Flavor, path: str) -> None:
    known.check_classes(frozenset(flavor.resources), f"{path}.resources")
    known.check_traits(frozenset().union(*flavor.required), f"{path}.required")
    known.check_traits(flavor.forbidden, f"{path}.forbidden")
    known.check_traits(flavor.root_required, f"{path}.root_required")
    for group in flavor.groups:
        check_group(group, known, f"{path}.groups")


def delete_flavor(env: UseCaseEnvironment, caller: Caller, name: str) -> None:
    """Delete a flavor; ensembles keep its values of when they were described.

    Raises:
        Forbidden: the caller is no operator.
        NotFound: there is no flavor with this id or name.
    """
    require_operator(caller)
    flavor = known_flavor(env.store, name)
    env.store.commit(Changeset((DeleteFlavor(flavor.id),)))
